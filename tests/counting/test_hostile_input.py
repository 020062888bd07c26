"""What hostile configs and surroundings broke once: a count or one sentence, never a traceback."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from inferlab.architecture import Architecture
from inferlab.cli import main
from inferlab.quantities import InputError
from inferlab.runtime.generation import probabilities

BIN = Path(sys.executable).with_name("inferlab")
SIZES = {
    "model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
    "num_attention_heads": 4, "vocab_size": 100,
}  # fmt: skip


def test_the_first_qwen_counts_half_its_intermediate_size():
    config = {
        "model_type": "qwen", "hidden_size": 4096, "intermediate_size": 22016, "kv_channels": 128,
        "num_attention_heads": 32, "num_hidden_layers": 32, "vocab_size": 151936, "no_bias": True,
        "tie_word_embeddings": False, "max_position_embeddings": 32768,
    }  # fmt: skip
    model = Architecture.from_hf_config(config)
    # Qwen-7B as published: 7,721,324,544 parameters in its checkpoint.
    assert model.parameters.total == 7_721_324_544


@pytest.mark.filterwarnings("ignore:.*only the language model")
@pytest.mark.parametrize("model_type", [["llama"], {"a": 1}, 7])
def test_a_model_type_that_is_no_text_is_refused(model_type):
    with pytest.raises(InputError, match="model_type"):
        Architecture.from_hf_config({"model_type": model_type, "text_config": {}})


def test_a_layer_number_of_thousands_of_digits_names_no_layer():
    left = [f"model.layers.{'9' * 5000}.mlp"]
    quantization = {"quant_method": "fp8", "ignored_layers": left}
    with pytest.warns(UserWarning, match="leaves part of mlp"):
        model = Architecture.from_hf_config(SIZES | {"quantization_config": quantization})
    assert model.kept_in_16_bits == ()


@pytest.mark.parametrize(
    "text", ['{"hidden_size": 64, "hidden_size": 32}', '{"text_config": {"a": 1, "a": 1}}']
)
def test_a_key_given_twice_is_refused(tmp_path, text):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(InputError, match=r"has the key '\w+' twice"):
        Architecture.from_hf_config(tmp_path)


def test_a_folder_named_like_a_preset_is_not_passed_over_in_silence(tmp_path, monkeypatch, capsys):
    (tmp_path / "gpt2").mkdir()
    (tmp_path / "gpt2" / "config.json").write_text(json.dumps(SIZES))
    monkeypatch.chdir(tmp_path)
    assert main(["count", "gpt2"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("GPT-2\n") and "for what lies at that path give ./gpt2" in err
    for path in ("./gpt2", "gpt2/"):
        assert main(["count", path]) == 0
        out, err = capsys.readouterr()
        assert out.startswith("gpt2\n") and err == ""


def test_the_active_parameters_of_a_dense_model_are_explained(capsys):
    assert main(["count", "LLaMA-7B", "--explain", "--json"]) == 0
    rows = {row["quantity"]: row for row in json.loads(capsys.readouterr().out)["explain"]}
    assert rows["active parameters"]["result"] == 6_738_415_616


@pytest.mark.filterwarnings("error")
def test_a_temperature_next_to_nothing_takes_the_likeliest_token_without_a_warning():
    logits = np.array([1.0, 3.0, 2.0], np.float32)
    assert probabilities(logits, temperature=1e-320).tolist() == [0, 1, 0]


def test_help_says_which_steps_the_ways_of_mla_are_for(capsys):
    with pytest.raises(SystemExit):
        main(["count", "--help"])
    assert "a chunk such as 512:2048" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    "where, said", [(">&-", "output is closed"), (">/dev/full", "No space left")]
)
def test_output_that_cannot_be_written_is_said(where, said):
    done = subprocess.run(
        f"exec {BIN} count GPT-2 {where}", shell=True, stderr=subprocess.PIPE, text=True
    )
    assert done.returncode == 2
    assert said in done.stderr and done.stderr.count("\n") == 1


def test_an_interrupt_while_commands_load_ends_quietly():
    code = (
        "import os, signal, sys\n"
        # As in a terminal; what starts in the background is born deaf to interrupts.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from inferlab.cli import main\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name == 'inferlab.presets': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "sys.exit(main(['count', 'GPT-2']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (128 + signal.SIGINT, "", "")
