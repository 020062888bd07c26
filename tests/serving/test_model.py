"""The step model is the library's own roofline of the library's own step, only faster."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferlab.accounting import ENGINE, TEXT
from inferlab.quantities import InputError
from inferlab.roofline import roofline
from inferlab.serving import StepModel
from inferlab.step import Sequence, step
from serving.machines import A100, LLAMA_7B, SHAPES, TINY_GPU

MODELS = {
    (name, accounting): StepModel(architecture=shape, accelerator=TINY_GPU, accounting=accounting)
    for name, shape in SHAPES.items()
    for accounting in (
        ENGINE,
        TEXT,
        ENGINE.but(activations="unfused"),
        ENGINE.but(mla="reexpand", logits="all"),
        ENGINE.but(kv_read=False, kv_write=False, activations="none"),
    )
}
chunks = st.lists(st.tuples(st.integers(1, 40), st.integers(0, 40)), max_size=5)
decodes = st.lists(st.integers(1, 60), max_size=8)


@pytest.mark.parametrize("key", MODELS, ids=lambda key: f"{key[0]}-{id(key[1])}")
@given(chunks=chunks, decodes=decodes)
@settings(max_examples=40, deadline=None)
def test_a_step_costs_what_the_library_says(key, chunks, decodes):
    model = MODELS[key]
    batch = [Sequence(new, cached) for new, cached in chunks]
    batch += [Sequence(1, cached) for cached in decodes]
    if not batch:
        return
    work = step(model.architecture, batch, model.accounting)
    cost = model.cost(chunks, len(decodes), sum(decodes), decodes)
    assert cost.flops == work.flops
    assert cost.bytes == work.bytes
    assert cost.seconds == float(roofline(work, TINY_GPU).time_s)


@pytest.mark.parametrize("share", ["compute_efficiency", "memory_efficiency", "memory_fraction"])
def test_a_share_above_one_is_refused(share):
    with pytest.raises(InputError, match=f"{share} is 90"):
        StepModel(architecture=LLAMA_7B, accelerator=A100, **{share: 90})


def test_efficiencies_and_overhead_are_passed_on():
    model = StepModel(
        architecture=LLAMA_7B,
        accelerator=A100,
        compute_efficiency=0.6,
        memory_efficiency=0.8,
        overhead_s=0.002,
    )
    for batch, cost in (
        ([Sequence(3000)], model.cost([(3000, 0)])),
        ([Sequence(1, 3000, 4)], model.cost(decodes=4, decode_cached=12000)),
    ):
        time = roofline(
            step(LLAMA_7B, batch), A100, compute_efficiency=0.6, memory_efficiency=0.8
        ).time_s
        assert cost.seconds == pytest.approx(time + 0.002, rel=1e-15)


def test_only_a_window_needs_every_length():
    sums = {name: MODELS[name, ENGINE].sums_suffice for name in SHAPES}
    assert sums == {
        "full attention": True,
        "sliding window": False,
        "experts": True,
        "latent attention": True,
    }


def test_memory_holds_what_the_weights_leave():
    # 0.9 x 40 GB - 1.7 GB of workspace - 13,476,831,232 bytes of weights, at 524,288 bytes a token.
    assert StepModel(architecture=LLAMA_7B, accelerator=A100).kv_tokens == 39717
    # The whole memory but the workspace, and a cache of one byte an element.
    assert (
        StepModel(architecture=LLAMA_7B, accelerator=A100, memory_fraction=1, kv="fp8").kv_tokens
        == (40_000_000_000 - 1_700_000_000 - 13_476_831_232) // 262_144
    )


def test_what_a_quantization_leaves_in_16_bits_takes_its_room():
    # 8,030,261,248 parameters of one byte; the head's 525,336,576 and the norms' 266,240 of two.
    model = StepModel.preset("Llama-3.1-8B-Instruct-FP8", "A100-SXM-40GB", weights="fp8")
    assert model.kv_tokens == (34_300_000_000 - 8_555_864_064) // 131_072


def test_a_model_that_does_not_fit_is_refused():
    with pytest.raises(InputError, match=r"13\.5 GB of 7\.3 GB"):
        StepModel(architecture=LLAMA_7B, accelerator=A100.but(capacity=10e9))
    with pytest.raises(InputError, match="capacity of A100 is not known"):
        StepModel(architecture=LLAMA_7B, accelerator=A100.but(capacity=None))


def test_presets_by_name():
    assert StepModel.preset("LLaMA-7B", "A100-SXM-40GB").kv_tokens == 39717
    with pytest.raises(InputError, match="unknown accelerator 'A1000'"):
        StepModel.preset("LLaMA-7B", "A1000")
