"""`inferlab estimate` and `inferlab fit`, as a user calls them."""

import json

import pytest

from inferlab import measurements
from inferlab.cli import main


def run(capsys, *arguments):
    code = main(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err


def report(capsys, *arguments):
    code, out, _ = run(capsys, "estimate", *arguments, "--json")
    assert code == 0
    return json.loads(out)


def test_the_keys(capsys):
    found = report(capsys, "Llama-3.1-70B", "H100-SXM", "--gpus", "4", "--batch", "16", "--input",
                   "1024", "--output", "1024", "--weights", "fp8", "--engine", "vllm")  # fmt: skip
    assert {"fits", "memory", "bound", "calibrated", "bottleneck"} <= set(found)
    assert {"weights", "kv", "free"} <= set(found["memory"])
    times = {"ttft_s", "tpot_s", "tokens_per_s"}
    assert set(found["bound"]) == times
    assert times | {"fitted_on", "error"} <= set(found["calibrated"])
    assert found["bottleneck"] == {"prefill": "compute-bound", "decode": "memory-bound"}
    assert found["fits"] is True
    assert "m209" in found["calibrated"]["fitted_on"]
    # Row m209 measured 13.192 ms.
    assert found["calibrated"]["tpot_s"] == pytest.approx(13.192e-3, rel=0.05)
    assert found["bound"]["tpot_s"] < 13.192e-3
    bound, fitted = found["bound"], found["calibrated"]
    total = bound["ttft_s"] + 1023 * bound["tpot_s"]
    assert bound["tokens_per_s"] == pytest.approx(16 * 1024 / total)
    assert fitted["tokens_per_s"] > 16 * 1024 / (fitted["ttft_s"] + 1023 * fitted["tpot_s"])


def test_what_the_engine_may_take_changes_what_runs_at_a_time(capsys):
    common = ["LLaMA-7B", "A100-SXM-80GB", "--batch", "64", "--input", "3000", "--engine", "vllm"]
    much, little = (report(capsys, *common, "--memory-fraction", f) for f in ("0.9", "0.5"))
    # 0.9 x 80 GB - 13.5 GB - 1.7 GB hold 35 caches of 3,064 tokens and 1.61 GB; 0.5 x 80 GB hold 15.
    assert [r["settings"]["running"] for r in (much, little)] == [35, 15]
    assert [r["calibrated"]["running"] for r in (much, little)] == [35, 15]
    for name in ("bound", "calibrated"):
        assert little[name]["tpot_s"] < much[name]["tpot_s"]
    assert little["ceilings"]["decode"]["memory"] < much["ceilings"]["decode"]["memory"]


def test_a_model_that_misses_by_little_may_fit_a_real_card(capsys):
    told = "by less than some cards have beyond their datasheet"
    assert told in run(capsys, "estimate", "Llama-3.1-70B", "H100-SXM", "--gpus", "2")[1]
    assert told not in run(capsys, "estimate", "Llama-3.1-70B", "H100-SXM")[1]
    assert told not in run(capsys, "estimate", "Llama-3.1-70B", "H100-SXM", "--gpus", "4")[1]


def test_nothing_fitted_is_null(capsys):
    assert report(capsys, "LLaMA-7B", "T4", "--compute", "fp16")["calibrated"] is None


def test_an_open_cache_is_small_in_the_bound_and_large_in_memory(capsys):
    open_ = report(capsys, "Llama-3.1-8B", "H100-SXM", "--weights", "fp8", "--batch", "64")
    small = report(
        capsys, "Llama-3.1-8B", "H100-SXM", "--weights", "fp8", "--batch", "64", "--kv", "fp8"
    )
    large = report(
        capsys, "Llama-3.1-8B", "H100-SXM", "--weights", "fp8", "--batch", "64", "--kv", "bf16"
    )
    assert open_["bound"] == small["bound"] != large["bound"]
    assert open_["memory"] == large["memory"] != small["memory"]


def test_published_names_are_understood(capsys):
    row = next(r for r in measurements.published() if r.id == "m025")
    found = report(capsys, row.model, row.hardware, "--gpus", "8", "--weights", row.weight_dtype,
                   "--input", "5", "--output", "200", "--engine", row.engine)  # fmt: skip
    assert found["calibrated"]["tpot_s"] == pytest.approx(1 / 90.77, rel=0.1)
    assert (
        report(capsys, "GPT-style 13B", "A100-40GB")["settings"]["accelerator"] == "A100-SXM-40GB"
    )


def test_experts_are_shown_with_their_bounds(capsys):
    found = report(capsys, "DeepSeek-V3", "H200", "--gpus", "8", "--batch", "64")
    assert found["experts"]["least"] == 8
    assert found["experts"]["least"] < found["experts"]["expected"] < found["experts"]["most"]
    assert found["fits"] is False


def test_the_text_for_people(capsys):
    code, out, _ = run(
        capsys, "estimate", "LLaMA-7B", "A100-SXM-80GB", "--input", "3000", "--explain"
    )
    assert code == 0
    for words in (
        "fits",
        "bound",
        "calibrated",
        "typical error",
        "decode memory-bound",
        "tokens/s =",
    ):
        assert words in out
    code, out, _ = run(capsys, "estimate", "Llama-2-70B", "H100-SXM")
    assert "does not fit" in out
    assert "too much" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["LLaMA-7", "B200"], "did you mean"),
        (["LLaMA-7B", "B2000"], "unknown accelerator"),
        (["LLaMA-7B", "B200", "--gpus", "3"], "heads"),
        (["LLaMA-7B", "B200", "--engine", "vlm"], "unknown engine"),
        (["LLaMA-7B", "B200", "--engine", ""], "unknown engine ''"),
        (["LLaMA-7B", "M1-Pro", "--gpus", "2"], "no link"),
        (["LLaMA-7B", "Groq-3-LPU"], "no 'bf16' peak"),
        (["LLaMA-7B", "B200", "--calibration", "/nowhere"], "cannot be read"),
    ],
)
def test_one_sentence_for_what_cannot_be_used(capsys, arguments, message):
    code, out, err = run(capsys, "estimate", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["--gpus", "0"],
        ["--output", "0"],
        ["--batch", "-1"],
        ["--weights", "fp7"],
        ["--memory-fraction", "2"],
    ],
)
def test_bad_arguments_exit_with_2(capsys, arguments):
    with pytest.raises(SystemExit) as exit:
        main(["estimate", "LLaMA-7B", "B200", *arguments])
    assert exit.value.code == 2


def test_fit_reads_rows_and_estimate_uses_them(capsys, tmp_path):
    rows = tmp_path / "rows.csv"
    head = ",".join(measurements.COLUMNS)
    # A machine that always takes twice its bound: 13.2 GB at 300 GB/s are 44 ms.
    lines = [
        f"r{i},LLaMA-7B,L4,1,vllm,bf16,bf16,1,{16 * i},16,TPOT,{88 + i},ms,made up"
        for i in range(1, 7)
    ]
    rows.write_text("\n".join([head, *lines]))
    fitted = tmp_path / "mine.json"
    code, out, _ = run(capsys, "fit", str(rows), "--write", str(fitted), "--json")
    assert code == 0
    (group,) = json.loads(out)["groups"]
    assert group["accelerator"] == "L4"
    assert group["error"] < 0.02
    found = report(
        capsys, "LLaMA-7B", "L4", "--output", "16", "--calibration", str(fitted), "--input", "64"
    )
    assert found["calibrated"]["tpot_s"] == pytest.approx(92e-3, rel=0.02)


def test_fit_says_which_rows_it_cannot_use(capsys, tmp_path):
    rows = tmp_path / "rows.csv"
    line = "r1,LLaMA-7B,Abacus,1,vllm,bf16,bf16,1,16,16,TPOT,88,ms,made up"
    rows.write_text("\n".join([",".join(measurements.COLUMNS), line]))
    code, _, err = run(capsys, "fit", str(rows))
    assert code == 2
    assert "r1: unknown accelerator 'Abacus'" in err


def test_fit_needs_five_rows(capsys, tmp_path):
    rows = tmp_path / "rows.csv"
    rows.write_text(",".join(measurements.COLUMNS) + "\n")
    code, _, err = run(capsys, "fit", str(rows))
    assert code == 2
    assert "5 rows" in err
