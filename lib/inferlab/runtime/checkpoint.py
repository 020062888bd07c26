"""Read a GGUF file: the shapes, the numbers and the vocabulary of a Llama-family model.

A GGUF file (the format of llama.cpp) is a list of named fields and a list of named tensors.
Quantized tensors are expanded to fp32 here; the decoder computes in fp32 only.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from inferlab.architecture import Architecture
from inferlab.quantities import InputError
from inferlab.runtime.decoder import Decoder, Layer

# The GGUF name of each parameter of a layer.
LAYER_TENSORS = {
    "attention_norm": "attn_norm",
    "q": "attn_q",
    "k": "attn_k",
    "v": "attn_v",
    "output": "attn_output",
    "ffn_norm": "ffn_norm",
    "gate": "ffn_gate",
    "up": "ffn_up",
    "down": "ffn_down",
}


@dataclass(frozen=True)
class Checkpoint:
    """An opened GGUF file: `fields` by name, `tensors` by name (not expanded yet)."""

    path: Path
    fields: dict[str, Any]
    tensors: dict[str, Any]

    def field(self, name, default=None):
        """The value of a field; InputError where it is missing and there is no default."""
        if name not in self.fields:
            if default is None:
                raise InputError(f"{self.path.name} has no field {name}: the file is incomplete")
            return default
        try:
            return self.fields[name].contents()
        except UnicodeDecodeError as error:
            raise InputError(
                f"{self.path.name} is damaged: {name} is no text ({error}); fetch it again"
            ) from None

    def array(self, name, *shape):
        """A tensor expanded to fp32, of the given shape; InputError where it is not so."""
        import gguf.quants

        if name not in self.tensors:
            raise InputError(f"{self.path.name} has no tensor {name}: the file is incomplete")
        tensor = self.tensors[name]
        try:
            array = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        except NotImplementedError:
            raise InputError(
                f"{name} of {self.path.name} is stored as {tensor.tensor_type.name}, which this "
                "reader cannot expand: use a file in F32, F16, BF16, Q8_0 or a Q4, Q5 or K type"
            ) from None
        if array.shape != shape:
            raise InputError(
                f"{name} of {self.path.name} has shape {array.shape}: expected {shape}"
            )
        return np.array(array, np.float32)  # a copy, so that the file need not stay open

    def matrix(self, name, inputs, outputs):
        """A tensor as (inputs, outputs) in memory; the file stores a matrix by its outputs."""
        return np.ascontiguousarray(self.array(name, outputs, inputs).T)


def open_checkpoint(path):
    """Open a GGUF file. Raises InputError for a file that is not one, or is cut short."""
    path = Path(path).expanduser()
    if not path.is_file():
        raise InputError(f"{path} is not a file: give the path of a GGUF model")
    with open(path, "rb") as file:
        magic = file.read(4)
    if magic != b"GGUF":
        raise InputError(
            f"{path} begins with {magic!r}: expected a GGUF file, which begins b'GGUF'"
        )
    try:
        reader = _reader()(path)
    except (ValueError, IndexError, KeyError, TypeError, OverflowError, OSError) as error:
        raise InputError(f"{path} is damaged or cut short ({error}): fetch it again") from None
    return Checkpoint(path, reader.fields, {tensor.name: tensor for tensor in reader.tensors})


def _reader():
    import gguf

    class Reader(gguf.GGUFReader):
        """gguf's reader on a plain array. A memmap makes each of a vocabulary's hundred thousand
        small reads twice as slow."""

        @property
        def data(self):
            return self._data

        @data.setter
        def data(self, mapped):
            self._data = mapped.view(np.ndarray)

    return Reader


def read_architecture(checkpoint):
    """The `Architecture` that the file's fields describe.

    Raises InputError for a model that is not a plain Llama: another family, experts, a head that
    is rotated in part, scaled rotary positions of a kind that this decoder does not know.
    """
    name = checkpoint.path.name
    family = checkpoint.field("general.architecture")
    if family != "llama":
        raise InputError(
            f"{name} is a {family!r} model: this decoder reads the 'llama' family only"
        )

    def size(key, default=None, least=1):
        value = checkpoint.field(f"llama.{key}", default)
        if not isinstance(value, (int, np.integer)) or value < least:
            raise InputError(f"{name} has llama.{key} {value!r}: expected a number from {least} on")
        return int(value)

    if size("expert_count", 0, least=0):
        raise InputError(f"{name} is a mixture of experts: this decoder reads dense models only")
    scaling = checkpoint.field("llama.rope.scaling.type", "none")
    if scaling not in ("none", "linear"):
        raise InputError(
            f"{name} scales its rotary positions by {scaling!r}: expected none or linear"
        )
    heads, hidden = size("attention.head_count"), size("embedding_length")
    head_dim = size("attention.key_length", hidden // heads)
    for key in ("attention.value_length", "rope.dimension_count"):
        if (found := size(key, head_dim)) != head_dim:
            raise InputError(
                f"{name} has llama.{key} {found}: this decoder needs head_dim {head_dim}"
            )
    if head_dim % 2:
        raise InputError(f"{name} has heads of width {head_dim}: rotary positions need an even one")
    if "token_embd.weight" not in checkpoint.tensors:
        raise InputError(f"{name} has no tensor token_embd.weight: the file is incomplete")
    return Architecture(
        name=checkpoint.path.stem,  # the field general.name is often a training run's
        layers=size("block_count"),
        hidden=hidden,
        ffn=size("feed_forward_length"),
        heads=heads,
        kv_heads=size("attention.head_count_kv", heads),
        head_dim=head_dim,
        vocab=int(checkpoint.tensors["token_embd.weight"].shape[1]),
        tied="output.weight" not in checkpoint.tensors,
        max_positions=size("context_length"),
        weight_dtype="fp32",
        source=f"GGUF file {name}",
    )


def read_decoder(checkpoint):
    """The `Decoder` of a file, all parameters in fp32 (4 bytes each, in memory).

    Raises InputError where the file is not a plain Llama model or holds tensors that this decoder
    would silently leave out, such as biases.
    """
    a = read_architecture(checkpoint)
    d, q_width, kv_width = a.hidden, a.heads * a.head_dim, a.kv_heads * a.head_dim
    if a.layers > len(checkpoint.tensors):
        raise InputError(
            f"{checkpoint.path.name} has llama.block_count {a.layers} and"
            f" {len(checkpoint.tensors)} tensors: expected several for each; fetch it again"
        )
    shapes = {
        "attention_norm": (d,),
        "q": (d, q_width),
        "k": (d, kv_width),
        "v": (d, kv_width),
        "output": (q_width, d),
        "ffn_norm": (d,),
        "gate": (d, a.ffn),
        "up": (d, a.ffn),
        "down": (a.ffn, d),
    }
    names = {
        (index, part): f"blk.{index}.{tensor}.weight"
        for index in range(a.layers)
        for part, tensor in LAYER_TENSORS.items()
    }
    known = {*names.values(), "token_embd.weight", "output_norm.weight", "output.weight"}
    if unknown := sorted(set(checkpoint.tensors) - known - {"rope_freqs.weight"}):
        raise InputError(
            f"{checkpoint.path.name} holds {unknown[0]!r} and {len(unknown) - 1} more tensors that a "
            "plain Llama decoder has no place for: this decoder cannot run it"
        )

    def part(index, name):
        shape = shapes[name]
        read = checkpoint.matrix if len(shape) == 2 else checkpoint.array
        return read(names[index, name], *shape)

    embedding = checkpoint.array("token_embd.weight", a.vocab, d)
    return Decoder(
        a,
        embedding=embedding,
        layers=[Layer(**{name: part(i, name) for name in shapes}) for i in range(a.layers)],
        final_norm=checkpoint.array("output_norm.weight", d),
        head=embedding.T if a.tied else checkpoint.matrix("output.weight", d, a.vocab),
        frequencies=_frequencies(checkpoint, a.head_dim),
        norm_epsilon=float(checkpoint.field("llama.attention.layer_norm_rms_epsilon", 1e-5)),
        context_length=a.max_positions,
    )


def _frequencies(checkpoint, head_dim):
    """Radians a position for each pair of a head: base^(-2 i / d_h), slowed where the file says.

    llama.cpp stores q and k of this family with the two halves of each head interleaved, so that
    the pairs that turn together are neighbours.
    """
    base = float(checkpoint.field("llama.rope.freq_base", 10000.0))
    frequencies = base ** (-np.arange(0, head_dim, 2) / head_dim)
    if "rope_freqs.weight" in checkpoint.tensors:  # Llama 3.1 and later
        frequencies = frequencies / checkpoint.array("rope_freqs.weight", head_dim // 2)
    if checkpoint.field("llama.rope.scaling.type", "none") == "linear":
        frequencies = frequencies / float(checkpoint.field("llama.rope.scaling.factor", 1.0))
    return frequencies
