"""Which GGUF files load, and in which sentence the others are refused."""

import numpy as np
import pytest

from inferlab.quantities import InputError
from inferlab.runtime import load
from inferlab.runtime.checkpoint import open_checkpoint
from inferlab.runtime.generation import generate

IDS = [5, 80, 200, 17]


@pytest.mark.parametrize("dtype", ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"])
@pytest.mark.parametrize("tied", [True, False])
def test_every_usual_dtype_loads_to_what_was_written(tiny_file, dtype, tied):
    path, matrices = tiny_file(dtype=dtype, tied=tied)
    decoder = load(path).decoder
    assert np.array_equal(decoder.embedding, matrices["token_embd"])
    assert np.array_equal(decoder.head.T, matrices["token_embd" if tied else "output"])
    assert np.array_equal(decoder.layers[1].down.T, matrices["blk.1.ffn_down"])
    assert np.array_equal(decoder.layers[0].k.T, matrices["blk.0.attn_k"])
    assert np.isfinite(decoder.logits(IDS)).all()


def test_shapes_come_from_the_file(tiny_file):
    path, _ = tiny_file(layers=3, heads=6, kv_heads=3, head_dim=8, ffn=40, tied=False)
    a = load(path).architecture
    assert (a.layers, a.heads, a.kv_heads, a.head_dim, a.ffn, a.hidden) == (3, 6, 3, 8, 40, 64)
    assert (a.vocab, a.tied, a.max_positions, a.name) == (262, False, 64, path.stem)


REFUSED = {
    "another family": ({"family": "qwen2"}, "'qwen2' model"),
    "experts": ({"extra_fields": [("add_uint32", "llama.expert_count", 8)]}, "mixture of experts"),
    "yarn": (
        {"extra_fields": [("add_string", "llama.rope.scaling.type", "yarn")]},
        "rotary positions by 'yarn'",
    ),
    "partly rotated heads": (
        {"extra_fields": [("add_uint32", "llama.rope.dimension_count", 8)]},
        "rope.dimension_count 8",
    ),
    "biases": (
        {"extra_tensors": [("blk.0.attn_q.bias", np.zeros(64, np.float32))]},
        "holds 'blk.0.attn_q.bias'",
    ),
    "a missing tensor": ({"leave_out": ["blk.1.ffn_up"]}, "no tensor blk.1.ffn_up.weight"),
    "a missing table": ({"leave_out": ["token_embd"]}, "no tensor token_embd.weight"),
    "no layers": ({"layers": 0}, "llama.block_count 0"),
    "odd heads": ({"head_dim": 15}, "heads of width 15"),
    "heads that do not share evenly": ({"heads": 4, "kv_heads": 3}, "4 query heads"),
}


@pytest.mark.parametrize(("changes", "message"), REFUSED.values(), ids=REFUSED)
def test_models_that_are_not_plain_llamas(tiny_file, changes, message):
    path, _ = tiny_file(**changes)
    with pytest.raises(InputError, match=message) as refusal:
        load(path)
    assert "\n" not in str(refusal.value)


def test_a_shape_that_contradicts_the_fields(tiny_file):
    path, _ = tiny_file(
        leave_out=["blk.0.attn_k"],
        extra_tensors=[("blk.0.attn_k.weight", np.zeros((16, 64), np.float32))],
    )
    with pytest.raises(InputError, match=r"attn_k.weight of .* has shape \(16, 64\): expected"):
        load(path)


@pytest.mark.parametrize("keep", [0, 3, 4, 20, 500, 5000, 0.5, 0.999])
def test_a_file_that_was_cut_short(tiny_file, keep):
    path, _ = tiny_file()
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * keep) if isinstance(keep, float) else keep])
    with pytest.raises(InputError, match=r"cut short|expected a GGUF"):
        load(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"extra_fields": [("add_bos_token_id", 10**6)]},
            "bos_token_id 1000000: expected a number",
        ),
        ({"extra_fields": [("add_eot_token_id", 9999)]}, "eot_token_id 9999: expected a number"),
        ({"chat_template": "{{ 1 / 0 }}"}, r"cannot be filled in \(division by zero\)"),
    ],
)
def test_a_vocabulary_that_cannot_be_used(tiny_file, changes, message):
    path, _ = tiny_file(**changes)
    with pytest.raises(InputError, match=message):
        load(path).tokenizer.chat("hello")


@pytest.mark.parametrize(
    ("found", "put", "message"),
    [
        (b"<|endoftext|>", b"\xff|endoftext|>", "tokens is no text"),
        (b"block_count\x04\0\0\0\2\0\0\0", b"block_count\x04\0\0\0\2\0\0\x6f", "block_count 18"),
        (b"output_norm.weight", b"output\x0anorm.weight", "holds 'output"),
        (b"h e", b"h_e", "do not fit each other"),
    ],
)
def test_a_file_with_a_damaged_byte(tiny_file, found, put, message):
    path, _ = tiny_file()
    data = path.read_bytes()
    assert data.count(found) == 1
    path.write_bytes(data.replace(found, put))
    with pytest.raises(InputError, match=message) as refusal:
        load(path).tokenizer.encode("hello")
    assert "\n" not in str(refusal.value)


def test_weights_that_are_no_numbers_are_said(tiny_file):
    path, _ = tiny_file(
        leave_out=["output_norm"],
        extra_tensors=[("output_norm.weight", np.full(64, np.nan, np.float32))],
    )
    decoder = load(path).decoder
    for temperature in (0.0, 1.0):
        with pytest.raises(InputError, match="logits are no numbers"):
            generate(decoder, [[5]], max_tokens=1, temperature=temperature)


def test_a_file_of_another_format(tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(b"PK\x03\x04 this is a zip archive")
    with pytest.raises(InputError, match="expected a GGUF file"):
        open_checkpoint(path)


def test_a_path_that_is_no_file(tmp_path):
    for path in (tmp_path, tmp_path / "absent.gguf"):
        with pytest.raises(InputError, match="is not a file"):
            load(path)
