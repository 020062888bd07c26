"""Memory, tensor parallelism and bounds of a deployment, against sums done by hand."""

import numpy as np
import pytest

from inferlab.accelerator import Accelerator
from inferlab.architecture import Architecture
from inferlab.deployment import (
    Deployment,
    bottleneck,
    bound,
    ceilings,
    compute_dtype,
    experts_read,
    kv_bytes,
    memory,
    running,
    sequences_that_fit,
    share,
    smaller_kv,
    step_bound,
)
from inferlab.quantities import InputError
from inferlab.step import decode, prefill


def on(model, machine, **kwargs):
    return Deployment(
        architecture=Architecture.preset(model), accelerator=Accelerator.preset(machine), **kwargs
    )


class TestTrap15TensorParallel:
    """Two all-reduces a layer, of activations; KV heads floored at one; the latent on every GPU."""

    def test_two_all_reduces_a_layer_of_the_activations(self):
        part = share(on("Llama-2-70B", "H100-SXM", gpus=4), decode(1000, 32))
        assert part.messages == 160
        # 32 tokens of 8,192 values at 2 bytes; a ring of 4 moves 2 x 3/4 of them.
        assert part.message_bytes == 32 * 8192 * 2 * 1.5

    def test_one_gpu_sends_nothing(self):
        part = share(on("Llama-2-70B", "H100-SXM"), decode(1000))
        assert (part.messages, part.message_bytes) == (0, 0)

    def test_an_all_reduce_takes_its_latency_and_its_bytes(self):
        machine = Accelerator.preset("H100-SXM").but(link_latency=10e-6)
        d = Deployment(architecture=Architecture.preset("LLaMA-7B"), accelerator=machine, gpus=2)
        network = ceilings(d, decode(0))["network"]
        assert network == pytest.approx(64 * (10e-6 + 4096 * 2 / 450e9))

    @pytest.mark.parametrize(("gpus", "share_of_kv"), [(1, 1), (2, 1 / 2), (8, 1 / 8), (16, 1 / 8)])
    def test_a_gpu_holds_at_least_one_kv_head(self, gpus, share_of_kv):
        d = on("Llama-3.1-70B", "H100-SXM", gpus=gpus)
        assert kv_bytes(d, 1, "bf16") == 2 * 80 * 8 * 128 * 2 * share_of_kv

    def test_the_latent_of_mla_is_on_every_gpu(self):
        # 61 layers x (512 + 64) values x 2 bytes, however many GPUs.
        assert {kv_bytes(on("DeepSeek-V3", "H200", gpus=n), 1, "bf16") for n in (1, 8)} == {70272}

    def test_weights_and_work_are_divided(self):
        one, four = (
            share(on("Llama-2-70B", "H100-SXM", gpus=n), prefill(512)).work for n in (1, 4)
        )
        assert four.flops * 4 == one.flops
        assert four.weights * 4 == one.weights

    def test_heads_that_do_not_divide_are_refused(self):
        with pytest.raises(InputError, match="3 GPUs cannot share the 32 heads"):
            on("LLaMA-7B", "H100-SXM", gpus=3)

    def test_no_link_no_second_gpu(self):
        with pytest.raises(InputError, match="no link"):
            on("LLaMA-7B", "M1-Pro", gpus=2)


class TestTrap16MemoryFit:
    """An engine has less than the card: the part it may take, less what it keeps for itself."""

    def test_vllm_on_a_24_gib_card(self):
        # LLMServingSim PR 59: vLLM cached 41,408 tokens of Llama-3.1-8B where 0.9 of the card, all
        # of it for KV, would have held about 54,400.
        card = Accelerator.preset("RTX-4090").but(capacity=24 * 2**30)
        d = Deployment(architecture=Architecture.preset("Llama-3.1-8B"), accelerator=card)
        assert sequences_that_fit(d, 1, reserved=0) == pytest.approx(54_400, rel=1e-3)
        assert sequences_that_fit(d, 1) == pytest.approx(41_408, rel=2e-3)

    @pytest.mark.parametrize("fraction", [90, -1, 0])
    def test_a_share_of_the_card_is_a_share(self, fraction):
        d = Deployment(
            architecture=Architecture.preset("LLaMA-7B"),
            accelerator=Accelerator.preset("A100-SXM-40GB"),
        )
        with pytest.raises(InputError, match=f"fraction is {fraction}"):
            memory(d, 3000, fraction=fraction)

    def test_the_whole_card_would_not_have_fitted(self):
        d = on("Llama-3.1-8B", "RTX-4090")
        tokens = sequences_that_fit(d, 1, fraction=1, reserved=0)
        assert memory(d, tokens, fraction=1, reserved=0).fits
        assert not memory(d, tokens).fits

    def test_nothing_is_lost(self):
        m = memory(on("LLaMA-7B", "A100-SXM-40GB"), 3000, 2)
        assert m.weights == 13_476_831_232  # 6,738,415,616 parameters
        assert m.kv == 2 * 1_572_864_000
        assert m.weights + m.kv + m.reserved + m.free == pytest.approx(40e9)

    def test_seventy_billion_need_two_cards(self):
        fits = {n: memory(on("Llama-2-70B", "A100-SXM-80GB", gpus=n), 2048).fits for n in (1, 2)}
        assert fits == {1: False, 2: True}
        # Beside 69.0 GB of weights on each of two, 0.9 of 80 GB less 1.7 GB leaves 1.3 GB.
        assert not memory(on("Llama-2-70B", "A100-SXM-80GB", gpus=2), 8192).fits

    def test_a_machine_of_unknown_capacity(self):
        machine = Accelerator(name="x", peaks={"bf16": 1e12}, bandwidth=1e11)
        d = Deployment(architecture=Architecture.preset("LLaMA-7B"), accelerator=machine)
        assert running(d, 10, 10, 64) == 64
        with pytest.raises(InputError, match="no capacity"):
            memory(d, 10)


class TestBound:
    def test_the_running_example(self):
        # 13,214,154,752 bytes of matrices (no token table) + 3000 x 524,288 read + 524,288 written,
        # at 1,555 GB/s.
        d = on("LLaMA-7B", "A100-SXM-40GB")
        seconds = step_bound(d, decode(3000))
        assert seconds == pytest.approx((13_214_154_752 + 3001 * 524_288) / 1.555e12, rel=1e-9)
        # Linear layers 2 x 6,476,005,376 x 3000, causal attention 4 x 4096 x 32 x 3000 x 3001/2, head.
        flops = 2 * 6_476_005_376 * 3000 + 4 * 4096 * 32 * 4_501_500 + 2 * 4096 * 32000
        assert bound(d, 3000, 200).ttft_s == pytest.approx(flops / 312e12, rel=1e-9)

    def test_throughput_is_tokens_over_the_whole_time(self):
        e = bound(on("LLaMA-7B", "A100-SXM-80GB"), 128, 100, 8)
        assert e.tokens_per_s == pytest.approx(800 / (e.ttft_s + 99 * e.tpot_s))

    def test_each_phase_names_its_ceiling(self):
        d = on("LLaMA-7B", "A100-SXM-40GB")
        assert bottleneck(d, 3000, 200) == {"prefill": "compute", "decode": "memory"}
        assert bottleneck(d, 100, 200)["prefill"] == "memory"

    def test_a_slow_link_is_a_ceiling(self):
        machine = Accelerator.preset("H100-SXM").but(link_bandwidth=5e9)
        d = Deployment(architecture=Architecture.preset("LLaMA-7B"), accelerator=machine, gpus=8)
        # 64 all-reduces of 1.75 x 2 x 4,096 bytes a token: 0.55 s for 3,000 tokens, 0.2 ms for one.
        assert bottleneck(d, 3000, 100) == {"prefill": "network", "decode": "memory"}

    def test_a_batch_beyond_memory_waits(self):
        d = on("LLaMA-7B", "A100-SXM-40GB")
        # A sequence of 3,100 tokens takes 1.625 GB. 40 GB less 13.477 GB of weights hold 16; of 90 %
        # of the card, less 1.7 GB, 12.
        assert running(d, 3000, 200, 100, fraction=1, reserved=0) == 16
        assert running(d, 3000, 200, 100) == 12
        fitting, waiting = bound(d, 3000, 200, 12), bound(d, 3000, 200, 160)
        assert waiting.tpot_s == fitting.tpot_s
        whole_card = 160 * 200 / (waiting.ttft_s + 199 * 10 * step_bound(d, decode(3100, 16)))
        assert waiting.tokens_per_s == pytest.approx(whole_card)

    def test_arrays_sweep(self):
        d = on("LLaMA-7B", "A100-SXM-80GB")
        batches = np.array([1, 8, 64])
        swept = step_bound(d, decode(1000, batches))
        assert swept == pytest.approx([step_bound(d, decode(1000, int(b))) for b in batches])

    @pytest.mark.parametrize("lengths", [(0, 1, 1), (1, 0, 1), (1, 1, 0), (1.5, 1, 1)])
    def test_lengths_are_checked(self, lengths):
        with pytest.raises(InputError):
            bound(on("LLaMA-7B", "A100-SXM-80GB"), *lengths)


@pytest.mark.parametrize(
    ("weights", "machine", "runs_in"),
    [
        ("bf16", "A100-SXM-80GB", "bf16"),
        ("fp8", "H100-SXM", "fp8"),
        ("fp8", "A100-SXM-80GB", "bf16"),
        ("int4", "A100-SXM-80GB", "bf16"),  # expanded to 16 bits first
        ("int8", "A100-SXM-80GB", "int8"),
        ("nvfp4", "B200", "fp4"),
        ("nvfp4", "H100-SXM", "fp8"),
    ],
)
def test_the_arithmetic_keys_the_peak(weights, machine, runs_in):
    assert compute_dtype(weights, Accelerator.preset(machine)) == runs_in


def test_an_open_cache_is_the_smaller_in_use():
    assert [smaller_kv(w) for w in ("bf16", "fp8", "int4")] == ["bf16", "fp8", "fp8"]
    open_, stated = (share(on("Llama-3.1-8B", "H100-SXM", weights="fp8", kv=kv), decode(1000))
                     for kv in (None, "bf16"))  # fmt: skip
    assert stated.work.kv_read == 2 * open_.work.kv_read


def test_experts_are_an_expectation_between_its_bounds():
    read = experts_read(Architecture.preset("Mixtral-8x7B"), 4)
    assert float(read["expected"]) == pytest.approx(8 * (1 - 0.75**4))
    assert (read["least"], read["most"]) == (2, 8)
    assert experts_read(Architecture.preset("LLaMA-7B"), 4) is None


class TestTrap19BandwidthOverModelSize:
    """Bandwidth / model size is the speed of one short sequence, and nothing else."""

    def test_it_holds_for_one_sequence(self):
        d = on("LLaMA-7B", "A100-SXM-80GB")
        assert 1 / step_bound(d, decode(1)) == pytest.approx(2.039e12 / 13.214e9, rel=1e-3)

    def test_a_batch_and_its_cache_change_it(self):
        d = on("LLaMA-7B", "A100-SXM-80GB")
        rate = 64 / step_bound(d, decode(1000, 64))
        # 13.2 GB of weights and 64 x 0.525 GB of cache: neither 154 nor 64 x 154.
        assert rate == pytest.approx(64 * 2.039e12 / (13.214e9 + 64 * 1001 * 524_288), rel=1e-3)

    def test_int4_is_a_quarter_of_bf16_not_an_eighth(self):
        sizes = [
            memory(on("LLaMA-7B", "A100-SXM-80GB", weights=w), 1).weights for w in ("bf16", "int4")
        ]
        assert sizes == [13_476_831_232, 3_369_207_808]
