"""`inferlab generate` and `inferlab measure`, as a user types them."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from inferlab.accelerator import Accelerator
from inferlab.cli import main

CAPITAL = next(
    case
    for case in json.loads(
        (Path(__file__).parents[1] / "data" / "oracle" / "smollm2.json").read_text("utf-8")
    )["cases"]
    if case["name"] == "capital"
)


def test_generate_as_json(capsys):
    assert main(["generate", CAPITAL["prompt"], "--max-tokens", "24", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert set(report) == {
        "prompt_ids", "ids", "text", "stopped_by", "top", "mean_nll", "timing",
    }  # fmt: skip
    assert report["prompt_ids"] == CAPITAL["ids"]
    assert report["ids"] == CAPITAL["greedy_ids"]
    assert report["text"] == CAPITAL["greedy_text"]
    assert report["stopped_by"] == "eos"
    assert [token for token, _ in report["top"]] == CAPITAL["last_top10_ids"]
    assert report["mean_nll"] == pytest.approx(CAPITAL["mean_nll"], abs=1e-3)
    assert set(report["timing"]) == {"prefill_s", "decode_s"}
    assert all(seconds > 0 for seconds in report["timing"].values())


def test_generate_streams_text_without_the_stop_token(capsys):
    arguments = ["generate", "What is the capital of France?", "--chat", "--max-tokens", "24"]
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert out == "The capital of France is Paris.\n"
    assert err.startswith("37 prompt tokens in ")
    assert "7 decode steps" in err
    assert err.endswith("stopped by eos\n")


def test_one_token_has_no_loss(tiny_file, capsys):
    path, _ = tiny_file()
    assert main(["generate", "a", "--model", str(path), "--max-tokens", "1", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["mean_nll"] is None
    assert report["timing"]["decode_s"] == 0
    assert report["stopped_by"] == "length"


def test_sampling_can_be_repeated(tiny_file, capsys):
    path, _ = tiny_file()
    texts = []
    for seed in ("1", "1", "2"):
        sampling = ["--temperature", "1.5", "--top-p", "0.9", "--seed", seed]
        assert main(["generate", "abc", "--model", str(path), "--json", *sampling]) == 0
        texts.append(json.loads(capsys.readouterr().out)["ids"])
    assert texts[0] == texts[1] != texts[2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([""], "the prompt is empty"),
        (["a", "--max-tokens", "0"], "max_tokens is 0"),
        (["a", "--temperature", "-1"], "temperature is -1.0"),
        (["a", "--temperature", "nan"], "temperature is nan"),
        (["a", "--top-p", "0"], "top_p is 0.0"),
        (["a", "--seed", "-1"], "seed is -1"),
        (["a" * 65], "the prompt has 65 tokens: this model takes at most 64"),
        (["\udcff"], "not valid Unicode"),
    ],
)
def test_input_that_cannot_be_used(tiny_file, capsys, arguments, message):
    path, _ = tiny_file()
    assert main(["generate", *arguments, "--model", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("inferlab: ")
    assert message in err
    assert err.count("\n") == 1


def test_a_model_file_that_is_none(tmp_path, capsys):
    assert main(["generate", "a", "--model", str(tmp_path / "none.gguf")]) == 2
    assert "is not a file" in capsys.readouterr().err


def test_a_missing_model_names_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("INFERLAB_MODEL_DIR", str(tmp_path))
    assert main(["generate", "a"]) == 2
    assert "run `make model`" in capsys.readouterr().err


@pytest.fixture
def small_measurements(monkeypatch):
    """Measure at sizes that take milliseconds."""
    from inferlab.machine import hardware

    defaults = {"stream_bytes": 2**20, "sizes": (16, 64)}
    monkeypatch.setattr(hardware.measure, "__kwdefaults__", {"repeats": 2} | defaults)
    monkeypatch.setattr(hardware.measure_matvec, "__defaults__", (256, 2))


def test_measure_prints_and_saves_a_machine(small_measurements, tmp_path, capsys):
    path = tmp_path / "mine.toml"
    assert main(["measure", "--threads", "1", "--save", str(path)]) == 0
    out = capsys.readouterr().out
    for word in ("1 thread", "bandwidth", "GB/s", "fp32 peak", "FLOP/s", "ridge", "best of 2"):
        assert word in out
    (machine,) = Accelerator.from_toml(path).values()
    assert f"{machine.peak('fp32') / machine.bandwidth:.4g}"[:4] in out


def test_measure_refuses(small_measurements, tmp_path, capsys):
    assert main(["measure", "--threads", "0"]) == 2
    assert main(["measure", "--save", str(tmp_path / "no" / "where.toml")]) == 2
    assert capsys.readouterr().err.count("\n") == 2


def test_a_record_that_was_interrupted_leaves_the_old_one(tmp_path, monkeypatch):
    from inferlab import runtime
    from inferlab.cli import measure
    from inferlab.machine import timings

    def record_now(model, threads, note):
        if threads == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(runtime, "load", lambda: SimpleNamespace(architecture=None))
    monkeypatch.setattr(timings, "record_now", record_now)
    monkeypatch.setattr(measure, "_show", lambda record, architecture: None)
    path = tmp_path / "record.json"
    path.write_text('{"runs": {}}')
    assert main(["measure", "--record", str(path)]) == 130
    assert path.read_text() == '{"runs": {}}'


def test_a_record_is_refused_before_anything_is_timed(tmp_path, capsys, monkeypatch):
    from inferlab import runtime

    monkeypatch.setattr(runtime, "load", lambda: pytest.fail("it went on"))
    path = tmp_path / "mine.json"
    assert main(["measure", "--record", str(path), "--save", str(path)]) == 2
    assert "--save and --record" in capsys.readouterr().err
    path.write_text("[]")
    assert main(["measure", "--record", str(path)]) == 2
    assert "mine.json holds no record of timings: give another path" in capsys.readouterr().err
