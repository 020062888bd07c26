"""A tiny random model in a real GGUF file, for tests that need no knowledge of the world."""

import numpy as np
import pytest

import inferlab.machine
import inferlab.runtime
from inferlab.runtime.tokenizer import BYTE_OF

CONTROL_TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
CHAT_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
MERGES = ["Ġ t", "h e", "Ġt he"]


def write_tiny(
    path, *, layers=2, hidden=64, ffn=96, heads=4, kv_heads=2, head_dim=16, context=64, tied=True,
    dtype="F32", seed=0, extra_fields=(), extra_tensors=(), leave_out=(), family="llama",
    chat_template=CHAT_TEMPLATE, token_types=None,
):  # fmt: skip
    """Write a random Llama to `path` with gguf's own writer; return its matrices as written.

    The returned arrays are what the file holds after quantization, by GGUF name, in (outputs,
    inputs) order.
    """
    import gguf

    random = np.random.default_rng(seed)
    tokens = [*CONTROL_TOKENS, *BYTE_OF, *(m.replace(" ", "") for m in MERGES)]
    writer = gguf.GGUFWriter(path, family)
    writer.add_name("tiny")
    for key, value in {
        "block_count": layers,
        "context_length": context,
        "embedding_length": hidden,
        "feed_forward_length": ffn,
        "attention.head_count": heads,
        "attention.head_count_kv": kv_heads,
        "attention.key_length": head_dim,
        "attention.value_length": head_dim,
    }.items():
        writer.add_uint32(f"{family}.{key}", value)
    writer.add_float32(f"{family}.rope.freq_base", 10000.0)
    writer.add_float32(f"{family}.attention.layer_norm_rms_epsilon", 1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    types = [3] * len(CONTROL_TOKENS) + [1] * (len(tokens) - len(CONTROL_TOKENS))
    writer.add_token_types(token_types or types)
    writer.add_token_merges(MERGES)
    writer.add_eos_token_id(2)
    if chat_template:
        writer.add_chat_template(chat_template)
    for add, *values in extra_fields:
        getattr(writer, add)(*values)

    shapes = {"token_embd": (len(tokens), hidden), "output_norm": (hidden,)}
    if not tied:
        shapes["output"] = (len(tokens), hidden)
    for i in range(layers):
        shapes |= {
            f"blk.{i}.attn_norm": (hidden,),
            f"blk.{i}.attn_q": (heads * head_dim, hidden),
            f"blk.{i}.attn_k": (kv_heads * head_dim, hidden),
            f"blk.{i}.attn_v": (kv_heads * head_dim, hidden),
            f"blk.{i}.attn_output": (hidden, heads * head_dim),
            f"blk.{i}.ffn_norm": (hidden,),
            f"blk.{i}.ffn_gate": (ffn, hidden),
            f"blk.{i}.ffn_up": (ffn, hidden),
            f"blk.{i}.ffn_down": (hidden, ffn),
        }
    type_ = gguf.GGMLQuantizationType[dtype]
    written = {}
    for name, shape in shapes.items():
        array = random.normal(0, 0.3, shape).astype(np.float32)
        if len(shape) == 1:
            array += 1
            kind = gguf.GGMLQuantizationType.F32
        else:
            kind = type_
        data = gguf.quants.quantize(array, kind)
        written[name] = gguf.quants.dequantize(data, kind).reshape(shape)
        if name not in leave_out:
            writer.add_tensor(f"{name}.weight", data, raw_dtype=kind)
    for name, array in extra_tensors:
        writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return written


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Matrix products on one thread: several test workers would only get in each other's way."""
    with inferlab.machine.threads(1):
        yield


@pytest.fixture
def tiny_file(tmp_path):
    """A function that writes a tiny model and returns (path, its matrices)."""

    def write(**changes):
        path = tmp_path / f"tiny{len(list(tmp_path.iterdir()))}.gguf"
        return path, write_tiny(path, **changes)

    return write


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """A loaded tiny model with grouped heads and a tied head."""
    path = tmp_path_factory.mktemp("tiny") / "tiny.gguf"
    write_tiny(path)
    return inferlab.runtime.load(path)


@pytest.fixture(scope="session")
def smollm2():
    """The real model. Where it is missing the test fails with the command that fetches it."""
    return inferlab.runtime.load()
