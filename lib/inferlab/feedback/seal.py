"""Answers and hints sealed so that a file can tell right from wrong without showing either.

For each value of the right answer the file holds a salted digest; each named mistake's hint is
encrypted with a key derived from the wrong answer that it belongs to. Whoever gives that answer
gets that hint. A number with few plausible values can be found by trying: it is a seal, not a
secret, and no mark depends on it.
"""

from __future__ import annotations

import hashlib
import hmac

ITERATIONS = 4000


def stretch(text: str, salt: bytes, iterations: int = ITERATIONS) -> bytes:
    """A key from a text: PBKDF2-HMAC-SHA256, 32 bytes."""
    if hasattr(hashlib, "pbkdf2_hmac"):
        return hashlib.pbkdf2_hmac("sha256", text.encode(), salt, iterations)
    return _stretch_in_python(text.encode(), salt, iterations)


def _stretch_in_python(password: bytes, salt: bytes, iterations: int) -> bytes:
    """The same without OpenSSL, which Python in a browser may lack."""
    keyed = hmac.new(password, digestmod=hashlib.sha256)

    def once(message: bytes) -> bytes:
        mac = keyed.copy()
        mac.update(message)
        return mac.digest()

    block = once(salt + b"\0\0\0\1")
    total = int.from_bytes(block)
    for _ in range(iterations - 1):
        block = once(block)
        total ^= int.from_bytes(block)
    return total.to_bytes(32)


def digest(text: str, salt: bytes) -> str:
    """What the file holds of a right value."""
    return hmac.new(stretch(text, salt), b"right", "sha256").hexdigest()[:32]


def seal(message: str, text: str, salt: bytes) -> str:
    """`message` encrypted and authenticated under `text`, as hex."""
    key = stretch(text, salt)
    data = message.encode()
    return (_tag(key, data) + _xor(data, key)).hex()


def unseal(sealed: list[str], text: str, salt: bytes) -> str | None:
    """The first of the sealed messages that opens under `text`, or None."""
    key = stretch(text, salt)
    for item in sealed:
        raw = bytes.fromhex(item)
        data = _xor(raw[16:], key)
        if hmac.compare_digest(raw[:16], _tag(key, data)):
            return data.decode()
    return None


def _tag(key: bytes, data: bytes) -> bytes:
    return hmac.new(key, b"hint" + data, "sha256").digest()[:16]


def _xor(data: bytes, key: bytes) -> bytes:
    blocks = -(-len(data) // 32)
    stream = b"".join(hmac.new(key, b"stream%d" % i, "sha256").digest() for i in range(blocks))
    return bytes(a ^ b for a, b in zip(data, stream, strict=False))
