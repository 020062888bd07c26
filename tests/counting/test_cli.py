"""The commands as processes: stable JSON, readable text, explanations that add up, and one sentence
with exit code 2 for anything that cannot be used."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from inferlab.accounting import ENGINE
from inferlab.architecture import Architecture
from inferlab.step import Sequence, decode, prefill, step

BIN = Path(sys.executable).with_name("inferlab")
LLAMA = {
    "model_type": "llama", "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
    "max_position_embeddings": 2048,
}  # fmt: skip


def run(*arguments, **options) -> subprocess.CompletedProcess:
    return subprocess.run(
        [BIN, *map(str, arguments)], capture_output=True, text=True, timeout=60, **options
    )


def answer(*arguments) -> dict:
    """The JSON that a command prints."""
    done = run(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def refused(*arguments, **options) -> str:
    """The one sentence that a command ends with, having printed nothing else."""
    done = run(*arguments, **options)
    assert done.returncode == 2, done
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1 and "Traceback" not in done.stderr, done.stderr
    assert len(done.stderr) < 700
    return done.stderr


# --- count ---


def test_the_documented_keys_and_the_running_example():
    report = answer("count", "LLaMA-7B", "--decode", 3000)
    assert report["model"] == "LLaMA-7B"
    assert report["params"] == {
        "total": 6738415616, "embedding": 131072000, "lm_head": 131072000, "active": 6738415616
    }  # fmt: skip
    assert report["kv_bytes_per_token"] == 524288
    # From the oracle: decode_flops and decode_breakdown at 3000.
    assert report["flops"] == {
        "total": 14787543040, "attention_scores_values": 1573388288,
        "attention_projections": 4294967296, "ffn": 8657043456, "router": 0, "lm_head": 262144000,
    }  # fmt: skip
    assert report["bytes"] == {
        "weights": 13214154752, "kv_read": 1572864000, "kv_write": 524288, "activations": 524288,
        "total": 14788067328,
    }  # fmt: skip
    assert report["arithmetic_intensity"] == pytest.approx(14787543040 / 14788067328, rel=1e-12)


def test_without_a_step_only_the_model_is_counted():
    report = answer("count", "Llama-3.1-8B")
    assert report["params"]["total"] == 8030261248
    assert report["flops"] is report["bytes"] is report["arithmetic_intensity"] is None


def test_a_config_file_counts_like_the_preset(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA))
    found, preset = (answer("count", model, "--prefill", 128) for model in (path, "LLaMA-7B"))
    assert found.pop("model") == tmp_path.name
    assert preset.pop("model") == "LLaMA-7B"
    assert found == preset


def test_a_name_may_have_its_publisher_before_it():
    assert answer("count", "meta-llama/Llama-3.1-8B")["model"] == "Llama-3.1-8B"


def test_flags_change_what_they_say():
    model = Architecture.preset("DeepSeek-V3")
    report = answer(
        "count", "DeepSeek-V3", "--step", "512:0,1:3000,7:100", "--attention", "full", "--logits", "all",
        "--weights", "fp8", "--kv", "fp8", "--compute", "fp32", "--mla", "expanded",
        "--activations", "unfused",
    )  # fmt: skip
    accounting = ENGINE.but(pairs="full", logits="all", mla="expanded", activations="unfused")
    batch = [*prefill(512), *decode(3000), Sequence(7, 100)]
    work = step(model, batch, accounting, weights="fp8", kv="fp8", compute="fp32")
    assert report["flops"]["total"] == work.flops
    assert report["bytes"]["total"] == work.bytes
    assert report["kv_bytes_per_token"] == 61 * 128 * (192 + 128)
    bounds = report["weights_bounds"]
    assert bounds["least"] < report["bytes"]["weights"] < bounds["most"]


def test_quantized_configs_bring_their_dtype_and_the_flag_overrides_it(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA | {"quantization_config": {"quant_method": "awq", "bits": 4}}))
    quantized = answer("count", path, "--decode", 10)
    assert quantized["settings"]["weights"] == "int4"
    assert quantized["bytes"]["weights"] * 4 == 13214154752
    assert quantized["kv_bytes_per_token"] == 524288
    assert (
        answer("count", path, "--decode", 10, "--weights", "bf16")["bytes"]["weights"]
        == 13214154752
    )


def test_beyond_the_nominal_context_is_counted_with_a_note():
    done = run("count", "LLaMA-7B", "--prefill", 3000, "--json")
    assert done.returncode == 0
    assert "3,000 positions are more than the 2,048" in json.loads(done.stdout)["notes"][0]
    assert done.stderr.startswith("note: 3,000 positions")


def test_an_unknown_family_is_counted_with_a_visible_warning(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA | {"model_type": "brandnew"}))
    done = run("count", path)
    assert done.returncode == 0
    assert "'brandnew' is not known: read as a llama" in done.stderr


@pytest.mark.parametrize(
    "model", ["LLaMA-7B", "LLaMA-7B-text", "Mixtral-8x7B", "DeepSeek-V3", "gpt-oss-20b", "OPT-350M",
              "Gemma-3-27B"],
)  # fmt: skip
def test_explanations_add_up_to_what_they_explain(model):
    report = answer("count", model, "--step", "7:0,1:300,3:1500", "--explain")
    explained = {row["quantity"]: row for row in report["explain"]}
    assert explained["parameters"]["result"] == report["params"]["total"]
    assert explained["KV cache a token"]["result"] == report["kv_bytes_per_token"]
    assert explained["FLOPs"]["result"] == report["flops"]["total"]
    assert explained["bytes"]["result"] == report["bytes"]["total"]
    for part, count in report["flops"].items():
        if part != "total" and count:
            assert explained[f"FLOPs of {part}"]["result"] == count, part
    names = {"weights": "weights", "KV read": "kv_read", "KV written": "kv_write",
             "activations": "activations"}  # fmt: skip
    for quantity, key in names.items():
        assert explained[quantity]["result"] == report["bytes"][key]


def test_an_explanation_shows_formula_numbers_and_result_with_unit():
    shown = run("count", "LLaMA-7B", "--decode", "3000", "--explain").stdout
    assert "L = 32 (layers), d = 4096 (hidden size)" in shown
    assert (
        "FLOPs of attention_projections\n"
        "    = L·n·(4·d·d_h·h + 4·d·d_h·h_kv)\n"
        "    = 32·1·(4·4096·128·32 + 4·4096·128·32)\n"
        "    = 4,294,967,296 FLOP (4.295 GFLOP)\n"
    ) in shown


def test_text_shows_each_number_exactly_and_in_its_unit():
    shown = run("count", "LLaMA-7B", "--decode", "3000").stdout
    assert "14,787,543,040 FLOP      14.79 GFLOP" in shown
    assert "1,572,864,000 B            1.573 GB" in shown


# --- ridge and list ---


def test_ridge_points():
    report = answer("ridge", "A100-SXM-40GB")
    assert report["ridge_point"] == pytest.approx(200.643, abs=1e-3)
    assert report["bandwidth"] == 1.555e12 and "datasheet" in report["sources"]["bandwidth"]
    assert answer("ridge", "h100 sxm", "--dtype", "fp8")["ridge_point"] == pytest.approx(
        1978.9 / 3.35
    )
    assert "312.0 TFLOP/s / 1.555 TB/s" in run("ridge", "A100-SXM-40GB", "--explain").stdout


def test_a_machine_without_16_bit_peaks_has_a_ridge_point_in_json(tmp_path):
    """As `inferlab measure --save` writes it."""
    own = tmp_path / "own.toml"
    own.write_text("[accelerators.cpu]\npeaks = {fp32 = 5e10}\nbandwidth = 1e10")
    report = answer("ridge", "cpu", "--presets", own)
    assert (report["dtype"], report["ridge_point"]) == ("fp32", 5)
    assert answer("ridge", "A100-SXM-40GB")["dtype"] == "bf16"
    assert answer("ridge", "T4")["dtype"] == "fp16"


def test_lists():
    models = {each["name"]: each for each in answer("list", "models")["models"]}
    assert models["SmolLM2-135M"]["params"] == 134515008
    assert all(each["source"] for each in models.values())
    machines = {each["name"]: each for each in answer("list", "accelerators")["accelerators"]}
    assert machines["H200"]["bandwidth"] == 4.8e12
    assert "source:" in run("list", "models", "--explain").stdout
    assert "bandwidth: NVIDIA A100 datasheet" in run("list", "accelerators", "--explain").stdout


# --- own presets ---

TINY = """
[models.tiny]
source = "my own"
config = { model_type = "llama", hidden_size = 64, intermediate_size = 128, num_hidden_layers = 2, \
num_attention_heads = 4, vocab_size = 100 }
"""

OWN = f"""
[accelerators.mine]
peaks = {{ bf16 = 100e12 }}
bandwidth = 1e12
price = 2.5
link_latency = 1e-5
{TINY}
[models.filed]
config = "config.json"
"""


def test_a_users_own_presets(tmp_path):
    own = tmp_path / "own.toml"
    own.write_text(OWN)
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    assert answer("ridge", "mine", "--presets", own)["ridge_point"] == 100
    assert answer("count", "filed", "--presets", own)["params"]["total"] == 6738415616
    mine = answer("list", "accelerators", "--presets", own)["accelerators"][0]
    assert (mine["name"], mine["price"], mine["link_latency"]) == ("mine", 2.5, 1e-5)
    environment = os.environ | {"INFERLAB_PRESETS": str(own)}
    assert "tiny" in run("list", "models", env=environment).stdout
    assert "mine" in run("list", "accelerators", env=environment).stdout


@pytest.mark.parametrize(
    "text, said",
    [
        (
            "[accelerators.x]\npeaks = {bf16 = 1e12}",
            "[accelerators.x] has no bandwidth: expected the keys peaks",
        ),
        ("[accelerators.x]\npeaks = {bf16 = -1}\nbandwidth = 1", "peak of bf16 is -1"),
        ("[accelerators.x]\npeaks = {bf16 = 1}\nbandwidth = 0", "bandwidth is 0"),
        ("[accelerators.x]\npeaks = {bf16 = nan}\nbandwidth = 1", "peak of bf16 is nan"),
        ("[accelerators.x]\npeaks = {}\nbandwidth = 1", "peaks is {}"),
        ("[accelerators.x]\npeaks = 5\nbandwidth = 1", "peaks is 5"),
        ("[accelerators.x]\npeaks = {bf17 = 1}\nbandwidth = 1", "unknown dtype 'bf17'"),
        ("[accelerators.x]\npeaks = {bf16 = 1}\nbandwidth = 1\nsources = 7", "sources is 7"),
        (f"accelerators = {list(range(9999))}", "...: expected tables"),
        (f"accelerators.x = {list(range(9999))}", "...: expected a table"),
        ("[accelerators.x]\npeaks = {bf16 = 1}\nbandwidth = '1 TB/s'", "bandwidth is '1 TB/s'"),
        (f"{TINY}but = {{moe = 5}}", "'but' has moe"),
        (f"{TINY}but = {{ffn = '1/0'}}", "'1/0' is not a size"),
        (f"{TINY}but = {{layers = -1}}", "layers is -1"),
        ("[models.x]\nconfig = 'none.json'", "cannot be read"),
        (
            "[accelerators.x]\npeaks = {bf16 = 1}\nbandwidth = 1\nspeed = 3",
            "has the unknown key 'speed'",
        ),
        ("[accelerators.x]\npeaks = {bf16 = 1}\nbandwidth = 1\nname = 'y'", "unknown key 'name'"),
        ("accelerators = 7", "accelerators is 7"),
        ("[accelerators]\nx = 7", "accelerators.x is 7"),
        ("[gpus.x]\nbandwidth = 1", "[gpus] is not known"),
        ("[models.x]\nsource = 'none'", "needs 'config'"),
        ("[models.x]\nconfig = 7", "needs 'config'"),
        ("[accelerators.x\n", "is not TOML"),
        ("\0", "is not TOML"),
    ],
)
def test_a_preset_file_that_is_wrong_is_refused(tmp_path, text, said):
    own = tmp_path / "own.toml"
    own.write_text(text)
    kind = "models" if "models" in text else "accelerators"
    assert said in refused("list", kind, "--presets", own)


def test_a_preset_file_that_is_not_there_is_refused(tmp_path):
    assert "cannot be read" in refused("list", "models", "--presets", tmp_path / "none.toml")
    assert "cannot be read" in refused("list", "models", "--presets", tmp_path)


# --- what cannot be used ---


@pytest.mark.parametrize(
    "arguments, said",
    [
        ([], "required: COMMAND"),
        (["cuont"], "invalid choice: 'cuont'"),
        (["count"], "required: MODEL"),
        (["count", "LLaMA-7"], "did you mean LLaMA-7B"),
        (["count", ""], "unknown model ''"),
        (["count", "x" * 5000], "unknown model"),
        (["count", "no/such/config.json"], "cannot be read"),
        (["count", "/"], "cannot be read"),
        (["count", "/dev/zero"], "is larger than"),
        (["count", "LLaMA-7B", "--prefill", "0"], "'0' is not above zero"),
        (["count", "LLaMA-7B", "--prefill", "-5"], "'-5' is not a whole number"),
        (["count", "LLaMA-7B", "--prefill", "1.5"], "'1.5' is not a whole number"),
        (["count", "LLaMA-7B", "--prefill", "1e6"], "'1e6' is not a whole number"),
        (["count", "LLaMA-7B", "--prefill", "nan"], "'nan' is not a whole number"),
        (["count", "LLaMA-7B", "--prefill", "9" * 400], "is not a whole number"),
        (["count", "LLaMA-7B", "--prefill", "\u0663"], "is not a whole number"),
        (["count", "LLaMA-7B", "--prefill", ""], "'' is not a whole number"),
        (["count", "LLaMA-7B", "--prefill"], "expected one argument"),
        (["count", "LLaMA-7B", "--decode", "-1"], "'-1' is not a whole number"),
        (["count", "LLaMA-7B", "--decode", "5", "--prefill", "5"], "not allowed with"),
        (["count", "LLaMA-7B", "--step", "5"], "'5' is not new:cached"),
        (["count", "LLaMA-7B", "--step", ""], "'' is not new:cached"),
        (["count", "LLaMA-7B", "--step", "1:2,"], "'' is not new:cached"),
        (["count", "LLaMA-7B", "--step", "0:7"], "'0' is not above zero"),
        (["count", "LLaMA-7B", "--step", "1:2:3"], "'2:3' is not a whole number"),
        (["count", "LLaMA-7B", "--step", "a:b"], "'a' is not a whole number"),
        (["count", "LLaMA-7B", "--weights", "int3"], "'int3' is not a dtype"),
        (["count", "LLaMA-7B", "--attention", "sparse"], "invalid choice: 'sparse'"),
        (["count", "LLaMA-7B", "--mla", "x"], "invalid choice: 'x'"),
        (["count", "LLaMA-7B", "--jso"], "unrecognized arguments: --jso"),
        (["count", "GPT-2", "--prefill", "1025"], "1025 positions do not fit GPT-2"),
        (["count", "OPT-6.7B", "--decode", "2048"], "2049 positions do not fit OPT-6.7B"),
        (["ridge"], "required: accelerator"),
        (["ridge", "A100"], "did you mean"),
        (["ridge", "Groq-3-LPU", "--dtype", "bf16"], "has no 'bf16' peak"),
        (["ridge", "H200", "--dtype", "bf17"], "'bf17' is not a dtype"),
        (["list", "gpus"], "invalid choice: 'gpus'"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "",
)
def test_arguments_that_cannot_be_used(arguments, said):
    assert said in refused(*arguments)


@pytest.mark.parametrize(
    "content, said",
    [
        ("", "is not JSON"),
        ('{"model_type": "llama", "hidden_size": 40', "is not JSON"),
        ("{}", "model_type None"),
        (json.dumps(LLAMA | {"num_hidden_layers": -32}), "num_hidden_layers is -32"),
        (json.dumps(LLAMA | {"hidden_size": 10**40}), "hidden_size is 1000"),
        (json.dumps(LLAMA | {"vocab_size": "many"}), "vocab_size is 'many'"),
        (json.dumps({"model_type": "brandnew"}), "has no hidden_size"),
        ("[" * 100_000, "is not JSON"),
    ],
    ids=["empty", "truncated", "bare", "negative", "huge", "text", "unknown", "deep"],
)
def test_configs_that_cannot_be_used(tmp_path, content, said):
    path = tmp_path / "config.json"
    path.write_text(content)
    assert said in refused("count", path, "--prefill", 10, "--json")


# --- the surroundings of a process ---


def test_a_reader_that_stops_reading_ends_it_quietly():
    done = subprocess.run(
        f"{BIN} list models --explain | head -c 10", shell=True, capture_output=True, text=True
    )
    assert done.stderr == "" and len(done.stdout) == 10


def test_a_terminal_of_few_characters_gets_all_the_same():
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = run("count", "LLaMA-7B", "--explain", env=environment)
    assert done.returncode == 0 and "V?d" in done.stdout


def test_help_says_what_the_keys_are():
    assert "kv_bytes_per_token" in run("count", "--help").stdout
    assert "[accelerators.my-gpu]" in run("list", "--help").stdout
    assert "count" in run("--help").stdout


def test_a_command_loads_only_what_it_needs():
    code = (
        "import sys; from inferlab.cli import main; main(['count', 'LLaMA-7B', '--decode', '9']);"
        "print([name for name in ('numpy', 'sympy', 'matplotlib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_missing_extra_is_named(tmp_path):
    (tmp_path / "gguf.py").write_text("raise ModuleNotFoundError('No module', name='gguf')")
    code = (
        "import sys; import inferlab.cli as cli; import types\n"
        "module = types.ModuleType('inferlab.cli.generate')\n"
        "def run(args): import gguf\n"
        "def add_parser(subparsers): subparsers.add_parser('generate').set_defaults(run=run)\n"
        "module.add_parser = add_parser; sys.modules['inferlab.cli.generate'] = module\n"
        "sys.exit(cli.main(['generate']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 2
    assert "needs the package gguf: install it with pip install 'inferlab[local]'" in done.stderr
