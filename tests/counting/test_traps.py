"""The fourteen ways in which public calculators were found wrong, each held to its right figure."""

import pytest

from inferlab.accelerator import Accelerator
from inferlab.accounting import ENGINE, TEXT
from inferlab.architecture import MLA, Architecture, MoE
from inferlab.matmul import matmul
from inferlab.roofline import ridge_point
from inferlab.step import Sequence, attention_pairs, decode, distinct_experts, prefill, step


def scores(model, sequences, accounting=ENGINE) -> int:
    return step(model, sequences, accounting).components["attention_scores_values"].flops


def test_trap_01_packed_requests_do_not_attend_to_each_other():
    # Two requests of 100 tokens are 10,100 causal pairs; one of 200 would be 20,100.
    model = Architecture.preset("LLaMA-7B")
    a_pair = 4 * 32 * 4096
    assert scores(model, [Sequence(100), Sequence(100)]) == a_pair * 10_100
    assert scores(model, prefill(100, batch=2)) == a_pair * 10_100
    assert scores(model, prefill(200)) == a_pair * 20_100


def test_trap_02_causal_attention_computes_half_the_square():
    # Llama-2-7B at 8,192 tokens, 35.2 TFLOP a square: the public report's 422 against 211 TFLOP are
    # twelve of them, forward and backward over a batch of four.
    model = Architecture.preset("Llama-2-7B")
    square = scores(model, prefill(8192), ENGINE.but(pairs="full"))
    causal = scores(model, prefill(8192))
    assert square == 4 * 32 * 4096 * 8192**2
    assert causal == 4 * 32 * 4096 * 8192 * 8193 // 2
    assert (12 * square, 12 * causal) == (
        pytest.approx(422e12, rel=1e-3),
        pytest.approx(211e12, rel=1e-3),
    )


def test_trap_03_a_cached_prefix_is_attended_to_but_not_computed_again():
    # 1000 new tokens on a prefix of 3000: (4000^2 - 3000^2) / 2 and half a diagonal, not 1000^2 / 2.
    assert attention_pairs(1000, 3000) == (4000**2 - 3000**2) // 2 + 500
    model = Architecture.preset("Llama-3.1-8B")
    chunked = scores(model, [Sequence(3000, 0)]) + scores(model, [Sequence(1000, 3000)])
    assert chunked == scores(model, prefill(4000))


def test_trap_04_gqa_caches_kv_heads_and_attends_with_query_heads():
    model = Architecture.preset("Llama-3-70B")
    assert model.kv_elements_per_token == 80 * 2 * 8 * 128
    everywhere = model.but(kv_heads=64)
    assert everywhere.kv_elements_per_token == 8 * model.kv_elements_per_token
    assert scores(everywhere, decode(1000)) == scores(model, decode(1000))


@pytest.mark.parametrize(
    "name, head_dim, guessed",
    [("Mistral-Small-24B", 128, 160), ("gpt-oss-20b", 64, 45), ("Gemma-3-12B", 256, 240),
     ("Qwen3-235B-A22B", 128, 64)],
)  # fmt: skip
def test_trap_05_head_dim_is_not_hidden_over_heads(name, head_dim, guessed):
    model = Architecture.preset(name)
    assert model.hidden // model.heads == guessed
    assert model.head_dim == head_dim
    assert model.attention_matrices["q"] == (model.hidden, model.heads * head_dim)


def test_trap_06_mla_caches_the_latent_and_the_rotary_key():
    # 61 layers x (512 + 64) elements x 2 bytes, not 2 x 61 x 512 x 2.
    model = Architecture.preset("DeepSeek-V3")
    assert model.kv_bytes(1) == 70_272


def test_trap_07_windowed_layers_stop_growing():
    model = Architecture.preset("gpt-oss-20b")
    assert model.windowed_layers == 12
    full_length = 24 * 2 * 8 * 64 * 100_000
    kept = 12 * 2 * 8 * 64 * (100_000 + 127)
    assert model.kv_elements(100_000) == kept
    assert full_length / kept == pytest.approx(1.996, abs=0.002)
    # A step over a cache longer than the window reads and attends to the window only.
    work = step(model, decode(100_000))
    assert work.kv_read == 2 * kept
    assert work.components["attention_scores_values"].flops == 12 * 4 * 64 * 64 * (100_001 + 128)


def test_trap_08_a_batch_streams_the_distinct_experts_that_it_reaches():
    # Of 256 experts, 8 a token, 36 tokens reach about 174: not all 256, and not 36 x 8 = 288.
    assert float(distinct_experts(256, 8, 36)) == pytest.approx(174.4, abs=0.1)
    model = Architecture.preset("Mixtral-8x7B")
    expert = 3 * 4096 * 14336
    one = step(model, decode(100)).components["ffn"].weights
    assert one == 2 * 32 * 2 * expert
    eight = step(model, decode(100, batch=8)).components["ffn"].weights
    assert eight == round(2 * 32 * expert * 8 * (1 - 0.75**8))
    assert 2 * 32 * 2 * expert < eight < 2 * 32 * 8 * expert


def test_trap_09_a_gated_ffn_has_three_matrices():
    model = Architecture.preset("LLaMA-7B")
    tokens = 10
    ffn = step(model, prefill(tokens)).components["ffn"].flops
    assert ffn == tokens * 32 * 2 * 3 * 4096 * 11008
    assert step(model.but(gated=False), prefill(tokens)).components["ffn"].flops == ffn * 2 // 3
    # Its intermediate results have the width of the FFN, not the hidden size.
    unfused = step(model, prefill(tokens), ENGINE.but(activations="unfused")).components["ffn"]
    assert unfused.activations == 2 * tokens * 32 * (2 * 4096 + 6 * 11008)


def test_trap_10_fused_attention_reads_keys_and_values_once_and_writes_no_square():
    model = Architecture.preset("LLaMA-7B")
    for length in (1000, 2000):
        work = step(model, prefill(length)).components["attention_scores_values"]
        assert work.kv_write == 2 * length * 32 * 2 * 4096
        assert work.activations == 0
    both = step(model, decode(3000)).kv_read
    assert both == 2 * 3000 * 32 * (4096 + 4096)  # keys and values
    square = step(model, prefill(3000), ENGINE.but(pairs="full", activations="unfused-scores"))
    fused = step(model, prefill(3000), ENGINE.but(pairs="full", activations="unfused"))
    assert square.activations - fused.activations == 2 * 4 * 32 * 32 * 3000**2


def test_trap_11_the_embedding_is_a_gather_and_the_head_is_not_free():
    model = Architecture.preset("LLaMA-7B")
    table = 32000 * 4096
    with_head = step(model, decode(3000)).weights
    assert with_head == 2 * (model.parameters.total - table - model.parameters.groups["norms"])
    assert with_head == 13_214_154_752  # 13.215 GB with the norms, which are no matrices
    assert with_head - step(model, decode(3000), ENGINE.but(logits="none")).weights == 2 * table
    # A tied table is streamed once, for the head.
    tied = Architecture.preset("Llama-3.2-1B")
    matrices = tied.parameters.total - tied.parameters.groups["norms"]
    assert step(tied, decode(100)).weights == 2 * matrices


def test_trap_12_peaks_are_dense():
    assert Accelerator.preset("A100-SXM-80GB").peak("bf16") == 312e12  # 624 with sparsity
    assert Accelerator.preset("H100-SXM").peak("bf16") == 989.4e12  # 1,979
    assert Accelerator.preset("H100-PCIe").peak("bf16") == 756.5e12  # 1,513
    assert Accelerator.preset("RTX-4090").peak("bf16") == 165.2e12  # 330.3 with sparsity
    assert Accelerator.preset("L40S").peak("fp8") == 733e12  # 1,466


def test_trap_13_factors_and_units():
    # FLOP = 2 MAC.
    assert matmul(3, 5, 7).flops == 2 * 3 * 5 * 7
    # Llama-3.1-405B, 8 KV heads: a thousand tokens are 0.516 GB.
    assert Architecture.preset("Llama-3.1-405B").kv_bytes(1000) == 516_096_000
    # Bytes of memory traffic over bytes a second: no GB, no GiB in between.
    assert ridge_point(Accelerator.preset("A100-SXM-40GB")) == pytest.approx(312e12 / 1555e9)


def test_trap_14_definitions_of_parameters():
    model = Architecture.preset("LLaMA-7B")
    assert model.parameters.total == 6_738_415_616
    # 2 P a token is not the cost of a token: no lookup, no norms, but attention over the context.
    dense = 2 * (model.parameters.total - 32000 * 4096 - model.parameters.groups["norms"])
    assert step(model, decode(0)).flops == dense + 4 * 32 * 4096
    assert step(model, decode(3000)).flops == dense + 4 * 32 * 4096 * 3001
    # Active parameters leave out the experts that a token skips, and nothing else.
    moe = Architecture.preset("Mixtral-8x7B")
    routed = moe.parameters.groups["routed_experts"]
    assert moe.parameters.total - moe.parameters.active == routed * 6 // 8


def test_the_texts_batch_of_two_requests():
    """41.0 TFLOP as two prompts of 1500 tokens, 43.4 as the one of 3000 that the text counts."""
    ideal = Architecture.preset("LLaMA-7B-text")
    assert step(ideal, prefill(3000), TEXT).flops == pytest.approx(43.3733e12, rel=1e-5)
    assert step(ideal, prefill(1500, batch=2), TEXT).flops == pytest.approx(41.014e12, rel=1e-4)


def test_shared_experts_pass_every_token_and_are_streamed_once():
    sizes = dict(name="m", layers=3, hidden=8, ffn=16, heads=2, kv_heads=1, head_dim=4, vocab=11)
    with_shared = Architecture(**sizes, moe=MoE(experts=4, active=1, ffn=6, layers=2, shared_ffn=5))
    without = Architecture(**sizes, moe=MoE(experts=4, active=1, ffn=6, layers=2))
    for tokens in (1, 7):
        shared, bare = (
            step(model, prefill(tokens)).components["ffn"] for model in (with_shared, without)
        )
        assert shared.flops - bare.flops == tokens * 2 * 2 * 3 * 8 * 5
        assert shared.weights - bare.weights == 2 * 2 * 3 * 8 * 5


def test_mla_without_query_compression_projects_queries_directly():
    mla = MLA(q_rank=None, kv_rank=6, nope_dim=4, rope_dim=2, v_dim=5)
    model = Architecture(
        name="m", layers=1, hidden=8, ffn=16, heads=3, kv_heads=3, head_dim=6, vocab=11, mla=mla
    )
    assert model.attention_matrices["q"] == (8, 3 * 6)
    assert model.kv_elements_per_token == 6 + 2
