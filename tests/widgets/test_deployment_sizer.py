"""The sizing page: pasted configs are read as Python reads them, and its bound is the library's."""

import json
import re
from pathlib import Path

import pytest

from inferlab.accelerator import Accelerator
from inferlab.architecture import Architecture
from inferlab.cost import price_per_million_tokens
from inferlab.deployment import (
    Deployment,
    bound,
    memory,
    running,
    sequences_that_fit,
    single_changes,
)
from inferlab.quantities import InputError
from inferlab.widgets import DeploymentSizer
from inferlab.widgets.deployment_sizer import ACCELERATORS, MODELS, shape

DATA = Path(__file__).resolve().parents[1] / "data"
ORACLE = {
    record["name"]: record["config"]
    for record in json.loads((DATA / "oracle" / "models.json").read_text("utf-8"))
}
LLAMA = ORACLE["Llama-3.1-8B"]


@pytest.fixture
def read(javascript):
    """read(text, ...): what the page makes of each pasted text, {"value": ...} or {"error": ...}."""
    module = DeploymentSizer.module()

    def call(*texts):
        return javascript(
            """async ([module, texts]) => {
                const url = URL.createObjectURL(new Blob([module], { type: "text/javascript" }));
                const { read } = await import(url);
                return texts.map((text) => {
                    try { return { value: read(text) }; } catch (error) { return { error: error.message }; }
                });
            }""",
            [module, texts],
        )

    return call


def but(**changes):
    """Llama-3.1-8B's config with some keys changed; a value of ... takes the key out."""
    return json.dumps({k: v for k, v in (LLAMA | changes).items() if v is not ...})


@pytest.mark.needs("chromium")
def test_a_config_is_read_as_python_reads_it_or_refused(read):
    """Every config of the oracle; what is refused has something that the page does not count."""
    results = dict(zip(ORACLE, read(*map(json.dumps, ORACLE.values())), strict=True))
    taken = {name for name, result in results.items() if "value" in result}
    assert {"LLaMA-7B", "Llama-3.1-8B", "Qwen2.5-7B", "Qwen3-8B"} <= taken
    for name, config in ORACLE.items():
        model = Architecture.from_hf_config(config)
        if name in taken:
            theirs = results[name]["value"]
            assert theirs | {"name": ""} == shape(model) | {
                "name": "",
                "context": theirs["context"],
            }
            assert theirs["context"] in (model.max_positions, 1)
        else:
            assert results[name]["error"].count("inferlab estimate") == 1
            assert (
                model.moe or model.mla or model.window or not model.gated or model.learned_positions
                or config["model_type"] not in ("llama", "qwen2", "qwen3", "mistral")
            ), results[name]  # fmt: skip


@pytest.mark.needs("chromium")
@pytest.mark.parametrize(
    "text, says",
    [
        ("{", "not JSON"),
        ("", "not JSON"),
        ("[1]", "no config"),
        ("null", "no config"),
        (but(num_local_experts=8), "mixture of experts"),
        (but(kv_lora_rank=512), "latent attention"),
        (but(model_type="mistral", sliding_window=4096), "sliding window"),
        (but(model_type="mistral"), "has no sliding_window"),
        (but(model_type="qwen2", use_sliding_window=True), "sliding window"),
        (but(layer_types=["full_attention", "linear_attention"]), "whole context"),
        (but(text_config={}), "multimodal"),
        (but(quantization_config={"quant_method": "fp8"}), "published quantized"),
        (but(model_type="mamba"), 'does not know the model_type "mamba"'),
        (but(model_type="constructor"), "does not know the model_type"),
        (but(model_type=...), "does not know the model_type (missing)"),
        (but(hidden_size=...), "has no hidden_size"),
        (but(vocab_size="many"), 'vocab_size is "many"'),
        (but(num_hidden_layers=0), "num_hidden_layers is 0"),
        (but(num_key_value_heads=5), "32 heads cannot share 5 KV heads"),
        (but(hidden_size=4097, head_dim=...), "not a multiple of the 32 heads"),
    ],
)
def test_what_the_page_cannot_count_is_refused_in_words(read, text, says):
    (result,) = read(text)
    assert says in result["error"]
    assert len(result["error"]) < 260


@pytest.mark.needs("chromium")
def test_biases_and_ties_are_counted(read):
    texts = [
        but(attention_bias=True, mlp_bias=True),
        but(tie_word_embeddings=True, num_key_value_heads=..., head_dim=...),
        json.dumps(ORACLE["Qwen3-8B"] | {"attention_bias": True}),
        json.dumps(ORACLE["Mistral-7B-v0.1"] | {"sliding_window": None}),
    ]
    for text, result in zip(texts, read(*texts), strict=True):
        assert (
            result["value"]["P"] == Architecture.from_hf_config(json.loads(text)).parameters.total
        )


@pytest.mark.needs("chromium")
def test_a_pasted_config_changes_the_result(show):
    visit = show(DeploymentSizer())
    page = visit.page
    page.get_by_text("paste its config.json").click()
    page.locator("textarea").fill(json.dumps(ORACLE["Qwen3-8B"]))
    assert page.locator(".il-said").inner_text() == "Read: your qwen3."
    assert page.locator(".il-sentence").inner_text().startswith("your qwen3 on one A100-SXM-40GB")
    d = Deployment(
        architecture=Architecture.from_hf_config(ORACLE["Qwen3-8B"]),
        accelerator=Accelerator.preset("A100-SXM-40GB"),
        kv="bf16",
    )
    assert f"{bound(d, 3000, 200, 8).tpot_s * 1e3:.1f} ms a token" in page.locator(".il-sentence").inner_text()  # fmt: skip
    assert visit.errors == []


@pytest.mark.parametrize("weights, kv", [("bf16", "bf16"), ("fp8", "fp8"), ("int4", "bf16")])
@pytest.mark.parametrize("model", MODELS)
def test_is_the_bound_of_the_library(model, weights, kv):
    widget, architecture = DeploymentSizer(), Architecture.preset(model)
    for machine in ACCELERATORS:
        for gpus, batch in ((1, 1), (1, 300), (2, 5), (4, 64)):
            try:
                d = Deployment(
                    architecture=architecture, accelerator=Accelerator.preset(machine), gpus=gpus,
                    weights=weights, kv=kv,
                )  # fmt: skip
            except InputError as error:
                assert re.search("evenly", str(error))
                continue
            widget.values = widget.values | {
                "model": model, "machine": machine, "gpus": gpus, "weights": weights, "cache": kv,
                "B": batch,
            }  # fmt: skip
            times, held = bound(d, 3000, 200, batch), memory(d, 3199, batch)
            expected = {
                "parameters": architecture.parameters.total,
                "weights": held.weights,
                "free": held.free,
                "fit": sequences_that_fit(d, 3199),
                "running": running(d, 3000, 200, batch),
                "ttft": times.ttft_s,
                "tpot": times.tpot_s,
                "tokens_per_s": times.tokens_per_s,
                "usd": price_per_million_tokens(2.5, times.tokens_per_s, gpus),
            }
            found = {name: widget.compute(name) for name in expected}
            assert found == pytest.approx({k: float(v) for k, v in expected.items()}, rel=1e-9)


@pytest.mark.needs("chromium")
@pytest.mark.parametrize(
    "goal, best",
    [("cost", "int4 weights"), ("time per token", "2 GPUs"), ("time to first token", "2 GPUs")],
)
def test_advises_the_single_change_that_python_finds_best(show, goal, best):
    start = DeploymentSizer(goal=goal)
    llama = Deployment(
        architecture=Architecture.preset("LLaMA-7B"),
        accelerator=Accelerator.preset("A100-SXM-40GB"),
        kv="bf16",
    )
    value = {
        "cost": lambda d, e: price_per_million_tokens(2.5, e.tokens_per_s, d.gpus),
        "time per token": lambda d, e: e.tpot_s,
        "time to first token": lambda d, e: e.ttft_s,
    }[goal]
    changed = {
        name: value(d, bound(d, 3000, 200, batch))
        for name, (d, batch) in single_changes(llama, 8).items()
    }
    assert min(changed, key=changed.get) == best
    page = show(start).page
    assert f"Change first: {best} lowers" in page.locator(".il-sentence").inner_text()
    names = page.locator(".il-table td:first-child").all_inner_texts()
    assert [name.removesuffix(" ←") for name in names] == ["as set", *changed]


@pytest.mark.needs("chromium")
def test_advice_where_nothing_fits_or_heads_do_not_divide(show):
    def says(**settings):
        return show(DeploymentSizer(**settings)).page.locator(".il-sentence").inner_text()

    heavy = {"model": "Llama-3.1-70B", "machine": "A100-SXM-40GB"}
    assert "Does not fit" in says(**heavy, gpus=2)
    assert "No single change below makes it fit" in says(**heavy, gpus=1)
    assert "that make it fit, int4 weights gives" in says(**heavy, gpus=2)
    assert "9 heads cannot be shared evenly by 2 GPUs" in says(model="SmolLM2-135M", gpus=2)
