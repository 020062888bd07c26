"""What hostile lengths, rows, fits and preset files broke once: a number or one sentence, never else."""

import json
import re

import pytest

from inferlab import calibration, measurements
from inferlab.accelerator import Accelerator
from inferlab.architecture import Architecture
from inferlab.cli import main
from inferlab.deployment import Deployment, memory
from inferlab.quantities import InputError, format_rate

GROUP = {
    "accelerator": "L4",
    "engine": None,
    "efficiency": dict.fromkeys(calibration.PRIOR, 0.5),
    "kv": "bf16",
    "served": False,
    "prefill_fitted": True,
    "rows": {"r1": 0.1},
}


def said(capsys, *arguments):
    """The sentence that a command is refused with."""
    code = main(list(arguments))
    out, err = capsys.readouterr()
    assert (code, out, err.count("\n")) == (2, "", 1), err
    return err


def printed(capsys, *arguments):
    assert main(list(arguments)) == 0
    return capsys.readouterr().out


# --- lengths -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "machine", "prompt", "output", "positions"),
    [
        ("GPT-2", "H100-SXM", 1, 1500, 1500),
        ("GPT-2", "H100-SXM", 1024, 2, 1025),
        ("OPT-350M", "L4", 1024, 1500, 2523),
    ],
)
def test_an_answer_longer_than_the_position_table_is_refused(
    capsys, model, machine, prompt, output, positions
):
    found = said(
        capsys, "estimate", model, machine, "--input", str(prompt), "--output", str(output)
    )
    assert f"{positions} positions do not fit {model}" in found


@pytest.mark.parametrize(("prompt", "output"), [(1024, 1), (1023, 2), (1, 1024)])
def test_an_answer_that_just_fits_the_position_table_is_estimated(capsys, prompt, output):
    lengths = ["--input", str(prompt), "--output", str(output)]
    assert "TTFT" in printed(capsys, "estimate", "GPT-2", "H100-SXM", *lengths)


@pytest.mark.parametrize(
    ("model", "machine", "batch", "output"),
    [("GPT-2", "A100-SXM-80GB", 1, 1), ("Gemma-2-27B", "H100-SXM", 2, 2)],
)
def test_the_first_token_never_comes_sooner_for_a_longer_prompt(model, machine, batch, output):
    d = Deployment(architecture=Architecture.preset(model), accelerator=Accelerator.preset(machine))
    group = calibration.find(machine)
    times = [group.estimate(d, prompt, output, batch).ttft_s for prompt in (*range(1, 9), 64, 512)]
    assert times == sorted(times)


# --- what is printed ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        "DeepSeek-V3 H100-NVL --gpus 16 --input 8192 --output 1000 --weights fp16 --kv fp8 --batch 1024",
        "LLaMA-65B A100-PCIe-40GB --gpus 4 --input 8192 --output 128 --weights fp16 --kv fp8 --batch 256",
        "LLaMA-7B A100-SXM-40GB --input 3000 --output 200 --batch 160",
        "LLaMA-7B A100-SXM-40GB --input 3000 --output 200 --batch 14",
        "LLaMA-7B A100-SXM-40GB --input 3000 --output 200",
    ],
)
def test_the_equation_of_an_explanation_holds(capsys, arguments):
    shown = printed(capsys, "estimate", *arguments.split(), "--explain")
    *_, quotient, result = shown.splitlines()[-1].split(" = ")
    # What is printed is arithmetic, but for its signs and units.
    term = quotient.replace(" s", "").replace("x", "*")
    assert re.fullmatch(r"[0-9. */+()e-]+", term)
    assert eval(term) == pytest.approx(float(result), rel=2e-3)


def test_rates_below_one_keep_their_digits():
    assert format_rate(0.7412) == "0.741 tokens/s"
    assert [format_rate(rate) for rate in (99.94, 99.96)] == ["99.9 tokens/s", "100 tokens/s"]


def test_help_says_how_waves_and_prefills_count(capsys):
    with pytest.raises(SystemExit):
        main(["estimate", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "ttft_s + (output-1) x step of a wave x batch/wave" in text
    assert "tokens_per_s counts each prefill once" in text


# --- a tied table -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["lm_head", "model.embed_tokens"])
def test_a_tied_table_kept_under_either_name_is_kept_in_memory(name):
    tensors = {"config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "float"}}}}
    model = Architecture.from_hf_config(
        {
            "model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192,
            "num_attention_heads": 32, "num_hidden_layers": 16, "num_key_value_heads": 8,
            "vocab_size": 128256, "tie_word_embeddings": True,
            "quantization_config": tensors | {"quant_method": "compressed-tensors", "ignore": [name]},
        }
    )  # fmt: skip
    # Llama-3.2-1B: 973,078,528 parameters of layers at a byte; the table and 33 norms at two.
    d = Deployment(architecture=model, accelerator=Accelerator.preset("H100-SXM"), weights="fp8")
    assert memory(d, 1).weights == 973_078_528 + 2 * (128256 * 2048 + 33 * 2048)


# --- rows to fit on ---------------------------------------------------------------------------------

ROW = dict(
    id="r", model="LLaMA-7B", hardware="L4", n_gpu="1", engine="vllm", weight_dtype="bf16",
    kv_dtype="bf16", batch="1", input_len="16", output_len="16", metric="TPOT", value="88",
    unit="ms", source="made up",
)  # fmt: skip


def rows(tmp_path, *changes, columns=measurements.COLUMNS):
    lines = [",".join(columns)]
    lines += [",".join((ROW | {"id": f"r{i}"} | row).values()) for i, row in enumerate(changes)]
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize("unit, value", [("s", "0.088"), ("us", "88000"), ("ms", "88")])
def test_a_time_is_read_in_its_unit(tmp_path, unit, value):
    (row,) = measurements.read(rows(tmp_path, {"unit": unit, "value": value}))
    assert row.value == pytest.approx(0.088)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([{"unit": "zz"}], "line 2: the unit of TPOT is 'zz': expected s or ms or us"),
        ([{"unit": ""}], "line 2: the unit of TPOT is ''"),
        ([{"metric": "decode_throughput"}], "line 2: the unit of decode_throughput is 'ms'"),
        ([{}, {"id": "r0"}], "line 3: the id 'r0' is that of line 2 too"),
        ([{"source": "a, b"}], "line 2: ' b' is beyond the last column"),
        ([{"source": "x" * 140_000}], "field larger than field limit"),
        ([{"value": "1e-320"}], "line 2: the value is 1e-320"),
        ([{"n_gpu": "0"}], "line 2: n_gpu is 0"),
        ([{"n_gpu": "²"}], "line 2: '²' is not a number"),
    ],
)
def test_a_file_of_rows_that_is_wrong_is_refused_with_its_line(tmp_path, changes, message):
    with pytest.raises(InputError, match=re.escape(message)):
        measurements.read(rows(tmp_path, *changes))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"batch": "²"}, "its batch is '²'"),
        ({"batch": "9" * 26}, "its batch is '9"),
        ({"batch": "0"}, "a batch of 0"),
        ({"output_len": "0"}, "of 0 output tokens"),
        ({"input_len": "² cached + 3"}, "'²' is not a number"),
        # 8 ms in another unit: a file fitted on it would be refused when it is read.
        ({"value": "0.000008"}, "it beats its bound: check its value and unit"),
        ({"unit": "s", "value": "8000"}, "it reaches next to nothing of its bound"),
    ],
)
def test_a_row_that_cannot_be_fitted_says_why(tmp_path, change, why):
    (row,) = measurements.read(rows(tmp_path, change))
    assert why in calibration.left_out_because(row)


def test_the_line_of_a_wrong_row_is_that_of_the_file(tmp_path):
    path = rows(tmp_path, {}, {"value": "x"})
    header, first, second = path.read_text("utf-8").splitlines()
    path.write_text("\n".join([header, "", first, "", second]), "utf-8")
    with pytest.raises(InputError, match="line 5: the value is 'x'"):
        measurements.read(path)


def test_columns_that_are_not_read_are_said(tmp_path):
    path = rows(tmp_path, {"comment": "x"}, columns=(*measurements.COLUMNS, "comment"))
    with pytest.warns(UserWarning, match="not read: comment"):
        measurements.read(path)


def test_a_file_of_rows_without_end_is_refused():
    with pytest.raises(InputError, match="is larger than"):
        measurements.read("/dev/zero")


# --- a fit of one's own -----------------------------------------------------------------------------


def change_of_efficiency(**values):
    return {"efficiency": GROUP["efficiency"] | values}


@pytest.mark.parametrize(
    "change",
    [
        change_of_efficiency(memory="a"),
        change_of_efficiency(memory=0),
        change_of_efficiency(memory=-1),
        change_of_efficiency(memory=2.0),
        change_of_efficiency(memory=float("nan")),
        change_of_efficiency(memory=True),
        change_of_efficiency(layer_s=-1e-6),
        change_of_efficiency(layer_s=10**400),
        change_of_efficiency(speed=1),
        {"efficiency": [1]},
        {"rows": ["r1"]},
        {"rows": {}},
        {"rows": {"r1": "good"}},
        {"rows": {"r1": None}},
        {"rows": {"r1": float("inf")}},
        {"accelerator": ["L4"]},
        {"engine": 7},
        {"served": "x"},
        {"prefill_fitted": None},
        {"kv": "zz"},
        {"kv": ["bf16"]},
        {"speed": 1},
    ],
    ids=str,
)
def test_a_calibration_with_one_senseless_field_is_refused(tmp_path, change):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"groups": [GROUP]}))
    assert calibration.read(path)["L4", None].efficiency.memory == 0.5
    path.write_text(json.dumps({"groups": [GROUP | change]}))
    with pytest.raises(InputError, match="is not a calibration"):
        calibration.read(path)


@pytest.mark.parametrize("text", ['{"groups": {}}', '{"groups": []}', "[]", "7", '{"groups": [7]}'])
def test_a_calibration_without_groups_is_refused(tmp_path, text):
    (tmp_path / "mine.json").write_text(text)
    with pytest.raises(InputError, match="is not a calibration"):
        calibration.read(tmp_path / "mine.json")


def test_a_calibration_that_is_no_small_json_is_refused(tmp_path):
    (tmp_path / "deep.json").write_text("[" * 100_000)
    for path, message in ((tmp_path / "deep.json", "is not JSON"), ("/dev/zero", "is larger than")):
        with pytest.raises(InputError, match=message):
            calibration.read(path)


# --- a preset file of one's own ---------------------------------------------------------------------

CONFIG = """config = { model_type = "llama", hidden_size = 64, intermediate_size = 128, \
num_hidden_layers = 2, num_attention_heads = 4, vocab_size = 100 }"""


@pytest.mark.parametrize(
    ("command", "text", "message"),
    [
        ("ridge m", f"[accelerators.m]\npeaks = {{bf16 = 1}}\nbandwidth = 1{'0' * 370}", "bandwidth is 1000"),
        ("ridge m", "[accelerators.m]\npeaks = {bf16 = 1e300}\nbandwidth = 1e12", "peak of bf16 is 1e+300"),
        ("ridge m", "[accelerators.m]\npeaks = {bf16 = 1}\nbandwidth = 1e-300", "bandwidth is 1e-300"),
        ("ridge m", "[accelerators.m]\npeaks = {bf16 = 1}\nbandwidth = 1\nsources = {peaks = 3}", "sources is"),
        ("count m", f"[models.m]\n{CONFIG}\nbut = {{layers = '1e99999'}}", "'1e99999' is not a size"),
        ("count m", f"[models.m]\n{CONFIG}\nbut = {{layers = 10001}}", "layers is 10001"),
        ("count m", f"[models.m]\n{CONFIG}\nbut = {{ffn = 1e300}}", "ffn is 1e+300"),
        ("count m", f"[models.m]\n{CONFIG}\naliases = [['x']]", "'aliases' (a list of texts)"),
        ("count z", f"[models.m]\n{CONFIG}\naliases = [3]", "'aliases' (a list of texts)"),
    ],
)  # fmt: skip
def test_a_preset_out_of_all_measure_is_refused(
    capsys, tmp_path, monkeypatch, command, text, message
):
    own = tmp_path / "own.toml"
    own.write_text(text)
    monkeypatch.setenv("INFERLAB_PRESETS", str(own))
    assert message in said(capsys, *command.split())
