"""Text to token ids and back, with the vocabulary and merges that a GGUF file carries."""

import codecs
from dataclasses import dataclass

from inferlab.quantities import InputError

# Token types of a GGUF vocabulary.
NORMAL, CONTROL, USER_DEFINED = 1, 3, 4

# Byte-level BPE first cuts a text into words. Each family cuts differently.
GPT2_WORDS = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# Families whose words are looked up whole before they are merged from pieces.
IGNORE_MERGES = ("llama-bpe", "llama3")


def _byte_characters():
    """GPT-2's one visible character for each of the 256 bytes, as {character: byte}."""
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in visible]
    return {chr(byte): byte for byte in visible} | {
        chr(256 + index): byte for index, byte in enumerate(hidden)
    }


BYTE_OF = _byte_characters()


@dataclass(frozen=True)
class Vocabulary:
    """What a file says about its tokens.

    tokens: the text form of each id. types: GGUF type of each id. merges: pairs in order of rank.
    cut: how words are cut (`tokenizer.ggml.pre`). begin: id put before every text, or None.
    stop: ids that end an answer. chat_template: a Jinja template, or None.
    """

    tokens: list
    types: list
    merges: list
    cut: str
    begin: int | None
    stop: frozenset
    chat_template: str | None


def read_tokenizer(checkpoint):
    """The `Tokenizer` of an opened GGUF file.

    Raises InputError for a file without a vocabulary, or with one that is not byte-level BPE.
    """
    kind = checkpoint.field("tokenizer.ggml.model")
    if kind != "gpt2":
        raise InputError(
            f"{checkpoint.path.name} has a {kind!r} tokenizer: this reader knows byte-level BPE "
            "('gpt2') only; give the model token ids"
        )
    tokens = checkpoint.field("tokenizer.ggml.tokens")
    types = checkpoint.field("tokenizer.ggml.token_type", [NORMAL] * len(tokens))
    if len(types) != len(tokens):
        raise InputError(
            f"{checkpoint.path.name} has {len(tokens)} tokens and {len(types)} token types: "
            "expected as many; the file is damaged"
        )

    def id_of(name):
        found = checkpoint.field(f"tokenizer.ggml.{name}_token_id", -1)
        if found not in range(-1, len(tokens)):
            raise InputError(
                f"{checkpoint.path.name} has {name}_token_id {found}: expected a number below"
                f" {len(tokens)}, one of its tokens; the file is damaged"
            )
        return int(found)

    begin, stop = id_of("bos"), frozenset({id_of("eos"), id_of("eot")}) - {-1}
    return Tokenizer(
        Vocabulary(
            tokens=tokens,
            types=types,
            merges=[tuple(m.split(" ", 1)) for m in checkpoint.field("tokenizer.ggml.merges")],
            cut=checkpoint.field("tokenizer.ggml.pre", "default"),
            begin=begin if checkpoint.field("tokenizer.ggml.add_bos_token", False) else None,
            stop=stop,
            chat_template=checkpoint.field("tokenizer.chat_template", "") or None,
        )
    )


class Tokenizer:
    """A byte-level BPE tokenizer: what is no word falls back to smaller pieces, down to bytes.

    A byte that the vocabulary has no token for is left out, as in the reference implementation
    (SmolLM2 lacks six control characters and the first byte of unassigned planes).
    """

    def __init__(self, vocabulary):
        from tokenizers import AddedToken, Tokenizer, models

        self.vocabulary = vocabulary
        ids = {token: index for index, token in enumerate(vocabulary.tokens)}
        try:
            model = models.BPE(
                ids, vocabulary.merges, ignore_merges=vocabulary.cut in IGNORE_MERGES
            )
        except Exception as error:  # tokenizers raises bare Exception
            reason = str(error).partition("\n")[0]
            raise InputError(
                f"the vocabulary and merges do not fit each other ({reason})"
            ) from None
        self._bpe = Tokenizer(model)
        self._bpe.pre_tokenizer = _word_cutter(vocabulary.cut)
        for kind, special in ((CONTROL, True), (USER_DEFINED, False)):
            self._bpe.add_tokens(
                [
                    AddedToken(token, special=special, normalized=False)
                    for token, type_ in zip(vocabulary.tokens, vocabulary.types, strict=True)
                    if type_ == kind
                ]
            )
        self.control = frozenset(i for i, kind in enumerate(vocabulary.types) if kind == CONTROL)

    @property
    def stop(self):
        """The ids that end an answer."""
        return self.vocabulary.stop

    def encode(self, text):
        """The token ids of a text, as it is: control tokens written in it are recognised.

        A token that the file wants before every text is put there. Raises InputError for text
        that is not valid Unicode (a lone surrogate).
        """
        begin = self.vocabulary.begin
        return ([] if begin is None else [begin]) + self._encode(text)

    def _encode(self, text, control=True):
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InputError(
                f"the text {text!r} is not valid Unicode: give text whose characters are whole"
            ) from None
        # tokenizers spells the switch from the other side: control tokens read as plain text.
        self._bpe.encode_special_tokens = not control
        return self._bpe.encode(text, add_special_tokens=False).ids

    def chat(self, message):
        """The token ids of a message in the model's chat template, up to where the answer begins.

        Control tokens that the template writes are recognised. Those in the message itself are
        read as plain text, so that a message cannot end its own turn and speak for the model.
        Raises InputError for a model without a template, or one that cannot be filled in.
        """
        if any(self.vocabulary.tokens[i] in message for i in self.control):
            before, after = self._fill_template("\x00").split("\x00", 1)
            return self._encode(before) + self._encode(message, control=False) + self._encode(after)
        return self._encode(self._fill_template(message))

    def _fill_template(self, message):
        import jinja2.sandbox

        if self.vocabulary.chat_template is None:
            raise InputError("this model has no chat template: leave out --chat")
        tokens, begin = self.vocabulary.tokens, self.vocabulary.begin
        environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True
        )
        try:
            return environment.from_string(self.vocabulary.chat_template).render(
                messages=[{"role": "user", "content": message}],
                add_generation_prompt=True,
                bos_token="" if begin is None else tokens[begin],
                eos_token=tokens[min(self.stop)] if self.stop else "",
            )
        except Exception as error:  # a template may do whatever an expression can
            raise InputError(f"the model's chat template cannot be filled in ({error})") from None

    def bytes_of(self, token_id):
        """The bytes that a token stands for. A token may hold part of a UTF-8 character."""
        if token_id >= len(self.vocabulary.tokens):
            return b""  # a row that pads the embedding table to a round size
        token = self.vocabulary.tokens[token_id]
        if self.vocabulary.types[token_id] != NORMAL or not BYTE_OF.keys() >= {*token}:
            return token.encode()  # not written in byte-level characters
        return bytes(BYTE_OF[character] for character in token)

    def decode(self, token_ids):
        """The text of some ids, control tokens included; broken UTF-8 shows as U+FFFD."""
        return b"".join(self.bytes_of(i) for i in token_ids).decode("utf-8", "replace")

    def pieces(self, token_ids):
        """The text of each id by itself, for display."""
        return [self.decode([i]) for i in token_ids]

    def text_stream(self):
        """A `TextStream` that turns ids into text while they arrive."""
        return TextStream(self)


class TextStream:
    """Text piece by piece. The bytes of a token wait until their UTF-8 character is complete."""

    def __init__(self, tokenizer):
        self._tokenizer = tokenizer
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token_id):
        """The text that this token completes, perhaps none yet."""
        return self._decoder.decode(self._tokenizer.bytes_of(token_id))

    def finish(self):
        """What is left at the end: U+FFFD for a character that never became complete."""
        return self._decoder.decode(b"", final=True)


def _word_cutter(cut):
    from tokenizers import Regex, pre_tokenizers

    def split(pattern):
        return pre_tokenizers.Split(Regex(pattern), "isolated")

    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    cutters = {
        "smollm": [pre_tokenizers.Digits(individual_digits=True), split(GPT2_WORDS)],
        "default": [split(GPT2_WORDS)],
        "gpt-2": [split(GPT2_WORDS)],
        "llama-bpe": [split(LLAMA3_WORDS)],
        "llama3": [split(LLAMA3_WORDS)],
    }
    if cut not in cutters:
        raise InputError(
            f"the tokenizer cuts words by the rule {cut!r}: this reader knows {', '.join(cutters)}"
        )
    return pre_tokenizers.Sequence([*cutters[cut], byte_level])
