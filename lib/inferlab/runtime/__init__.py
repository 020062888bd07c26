"""A real language model in plain NumPy: the file, the tokenizer, the decoder, the loop.

    from inferlab.runtime import load
    model = load()
    model.tokenizer.encode("The quick brown fox")
    model.decoder.logits([504, 2365, 6354])

Needs the extra `inferlab[local]`; nothing of it is imported before `load` is called.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any


@dataclass(frozen=True)
class Model:
    """A loaded model: `decoder`, `tokenizer` (read when first asked for) and the file they are from."""

    decoder: Any
    checkpoint: Any

    @property
    def architecture(self):
        """The shapes, as `inferlab.step` counts them."""
        return self.decoder.architecture

    @cached_property
    def tokenizer(self):
        """The file's tokenizer; InputError where the file has none that this library reads."""
        from inferlab.runtime.tokenizer import read_tokenizer

        return read_tokenizer(self.checkpoint)


def load(path=None):
    """Load a GGUF model of the Llama family, by default the one that `make model` fetches.

    Parameters are expanded to fp32: 4 bytes each, 0.54 GB for the default model. Raises InputError
    for a file that cannot be used, and where the default model is missing, with the command to run.
    """
    from inferlab.runtime.checkpoint import open_checkpoint, read_decoder
    from inferlab.runtime.fetch import model_path

    checkpoint = open_checkpoint(model_path() if path is None else path)
    return Model(read_decoder(checkpoint), checkpoint)
