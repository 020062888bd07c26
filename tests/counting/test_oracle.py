"""Counts equal those of code that other people wrote, as integers, with no tolerance.

tests/data/oracle: real model classes of transformers, the 20 models of the oracle. tests/data/further:
the same library on variants of each family and on every shipped model.
"""

import json
from pathlib import Path

import pytest

from inferlab.accounting import ENGINE
from inferlab.architecture import Architecture
from inferlab.hf_config import ConfigWarning
from inferlab.step import decode, prefill, step

DATA = Path(__file__).parents[1] / "data"
ORACLE = {m["name"]: m for m in json.loads((DATA / "oracle" / "models.json").read_text())}
FURTHER = json.loads((DATA / "further" / "models.json").read_text())
WAYS = {"absorbed": "absorbed", "expanded": "cache_expanded_kv", "reexpand": "as_hf_reexpand"}

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*attention in chunks:inferlab.hf_config.ConfigWarning"
)
oracle = pytest.mark.parametrize("name", ORACLE)
variant = pytest.mark.parametrize("name", FURTHER["small"])


def both(name) -> list[Architecture]:
    """The model as the oracle's config gives it, and as it ships."""
    return [Architecture.from_hf_config(ORACLE[name]["config"]), Architecture.preset(name)]


def flops(model, sequences, **changes) -> dict:
    """FLOPs by component and in total, each a plain int."""
    work = step(model, sequences, ENGINE.but(**changes))
    counts = {"total": work.flops} | {part: each.flops for part, each in work.components.items()}
    assert {type(count) for count in counts.values()} == {int}
    return counts


def grouped(breakdown) -> dict:
    """The oracle's groups under our names."""
    ffn = breakdown["routed_experts"] + breakdown["dense_mlp_and_shared_experts"]
    return {
        part: breakdown[part]
        for part in ("attention_scores_values", "attention_projections", "router", "lm_head")
    } | {"ffn": ffn}


def test_the_oracle_holds_twenty_models():
    assert len(ORACLE) == 20


@oracle
def test_parameters(name):
    expected = ORACLE[name]
    groups = expected["params_by_group"]
    for model in both(name):
        counted = model.parameters
        assert counted.total == expected["params_total"]
        assert counted.embedding == expected["params_embedding"]
        assert counted.lm_head == expected["params_lm_head"]
        assert counted.active == expected["params_active"]
        assert counted.groups["attention"] == groups["attention"]
        assert (
            counted.groups["dense_ffn_and_shared_experts"] == groups["dense_mlp_and_shared_experts"]
        )
        for group in (
            "token_embedding",
            "position_embedding",
            "routed_experts",
            "router",
            "norms",
            "lm_head",
        ):
            assert counted.groups[group] == groups[group], group


@oracle
def test_kv_cache(name):
    expected = ORACLE[name]
    for model in both(name):
        assert model.kv_elements_per_token == expected["kv_elements_per_token"]
        for length, count in expected["kv_elements_at"].items():
            assert model.kv_elements(int(length)) == count
        if "kv_elements_per_token_mla_expanded" in expected:
            expanded = model.layers * model.kv_elements_per_layer("expanded")
            assert expanded == expected["kv_elements_per_token_mla_expanded"]


@oracle
def test_prefill_under_full_attention(name):
    expected = ORACLE[name]
    lengths = [length for length, counts in expected["prefill_flops"].items() if counts]
    assert lengths
    for model in both(name):
        for length in lengths:
            for logits in ("all", "last"):
                counts = flops(model, prefill(int(length)), pairs="full", logits=logits)
                assert counts.pop("total") == expected["prefill_flops"][length][f"{logits}_logits"]
                groups = grouped(expected["prefill_breakdown"][length])
                if logits == "last":
                    groups["lm_head"] //= int(length)
                assert counts == groups


@oracle
def test_causal_attention_of_a_prefill(name):
    for model in both(name):
        for length, count in ORACLE[name]["prefill_attention_causal"].items():
            if count is not None:
                assert flops(model, prefill(int(length)))["attention_scores_values"] == count


@oracle
def test_decode(name):
    expected = ORACLE[name]
    variants = expected.get("mla_decode_variants")
    for model in both(name):
        for length, count in expected["decode_flops"].items():
            if count is None:
                continue
            if variants:
                for way, key in WAYS.items():
                    assert (
                        flops(model, decode(int(length)), mla=way)["total"] == variants[length][key]
                    )
            counts = flops(model, decode(int(length)), mla="reexpand")
            assert counts.pop("total") == count
            assert counts == grouped(expected["decode_breakdown"][length])


@variant
def test_parameters_of_each_variant(name):
    expected = FURTHER["small"][name]
    counted = Architecture.from_hf_config(expected["config"]).parameters
    assert counted.total == expected["params"]["total"]
    assert counted.embedding == expected["params"]["embedding"]
    assert counted.lm_head == expected["params"]["lm_head"]
    assert counted.groups["routed_experts"] == expected["params"]["routed"]


@variant
def test_flops_of_each_variant(name):
    expected = FURTHER["small"][name]
    model = Architecture.from_hf_config(expected["config"])
    for length, counts in expected["prefill"].items():
        sequences = prefill(int(length))
        assert flops(model, sequences, pairs="full", logits="all")["total"] == counts["all"]
        assert flops(model, sequences, pairs="full", logits="last")["total"] == counts["last"]
        assert flops(model, sequences, logits="all")["lm_head"] == counts["lm_head"]
    for length, count in expected["decode"].items():
        assert flops(model, decode(int(length)), mla="reexpand")["total"] == count


@variant
def test_cache_of_each_variant(name):
    expected = FURTHER["small"][name]
    model = Architecture.from_hf_config(expected["config"])
    for length, count in expected["cache_elements"].items():
        # That code stores a grouped Falcon's keys and values once for each query head: a copy that
        # no engine makes.
        copies = model.heads // model.kv_heads if name.startswith("falcon, grouped") else 1
        assert model.kv_elements(int(length)) * copies == count


@pytest.mark.parametrize("name", FURTHER["masked"])
def test_a_window_leaves_the_pairs_that_the_mask_lets_through(name):
    expected = FURTHER["masked"][name]
    model = Architecture.from_hf_config(expected["config"])
    assert model.windowed_layers
    for length, pairs in expected["pairs"].items():
        counts = flops(model, prefill(int(length)))
        # Queries with keys, then weights with values: 2 FLOPs an element of each head.
        assert counts["attention_scores_values"] == pairs * 2 * 2 * model.heads * model.head_dim


@pytest.mark.parametrize("name", FURTHER["full_size"])
@pytest.mark.filterwarnings("ignore::inferlab.hf_config.ConfigWarning")
def test_published_shapes_at_full_size(name):
    expected = FURTHER["full_size"][name]
    counted = Architecture.from_hf_config(expected["config"]).parameters
    assert (counted.total, counted.groups["routed_experts"]) == (
        expected["params"]["total"],
        expected["params"]["routed"],
    )


def test_every_shipped_model_at_full_size():
    # InternLM's code is not in that library, and LLaMA-7B-text is no published model.
    assert set(Architecture.names()) - set(FURTHER["presets"]) == {"InternLM-20B", "LLaMA-7B-text"}
    for name, expected in FURTHER["presets"].items():
        counted = Architecture.preset(name).parameters
        assert counted.total == expected["total"], name
        assert counted.embedding == expected["embedding"], name
        assert counted.lm_head == expected["lm_head"], name
        assert counted.groups["routed_experts"] == expected["routed"], name


@pytest.mark.filterwarnings("ignore:.*leaves out:inferlab.hf_config.ConfigWarning")
def test_a_nested_text_config_says_what_is_left_out():
    with pytest.warns(ConfigWarning, match="only the language model"):
        Architecture.from_hf_config(FURTHER["full_size"]["gemma-3-4b-it"]["config"])
