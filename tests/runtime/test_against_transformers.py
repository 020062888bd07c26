"""The NumPy model against another implementation: `data/oracle/smollm2.json` (transformers, fp32)."""

import json
from pathlib import Path

import numpy as np
import pytest

from inferlab.runtime.generation import generate, losses, prefill, top

ORACLE = json.loads(
    (Path(__file__).parents[1] / "data" / "oracle" / "smollm2.json").read_text("utf-8")
)
CASES = {case["name"]: case for case in ORACLE["cases"]}
LOGIT = 2e-2  # absolute


def assert_top_ten(logits, case):
    assert [token for token, _ in top(logits)] == case["last_top10_ids"]
    assert np.abs(logits[case["last_top10_ids"]] - case["last_top10_logits"]).max() < LOGIT


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


def test_token_ids(smollm2, case):
    assert smollm2.tokenizer.encode(case["prompt"]) == case["ids"]


def test_text_of_the_answer(smollm2, case):
    assert smollm2.tokenizer.decode(case["greedy_ids"]) == case["greedy_text"]


def test_logits_of_one_pass(smollm2, case):
    assert_top_ten(smollm2.decoder.logits(case["ids"]), case)


def test_logits_one_token_at_a_time_with_the_cache(smollm2, case):
    cache = smollm2.decoder.new_cache(len(case["ids"]))
    for token in case["ids"]:
        logits = smollm2.decoder.logits([token], cache)
    assert cache.length == len(case["ids"])
    assert_top_ten(logits, case)


def test_logits_of_a_prompt_in_pieces(smollm2, case, monkeypatch):
    monkeypatch.setattr("inferlab.runtime.generation.PREFILL_CHUNK", 5)
    cache = smollm2.decoder.new_cache(len(case["ids"]))
    assert_top_ten(prefill(smollm2.decoder, case["ids"], cache), case)


def test_logits_of_all_prompts_packed_into_one_step(smollm2):
    logits = smollm2.decoder.step([(case["ids"], None) for case in CASES.values()])
    for row, case in zip(logits, CASES.values(), strict=True):
        assert_top_ten(row, case)


def test_mean_loss(smollm2, case):
    assert losses(smollm2.decoder, case["ids"]).mean() == pytest.approx(case["mean_nll"], abs=1e-3)


def test_greedy_answer_alone(smollm2, case):
    (answer,) = generate(smollm2.decoder, [case["ids"]], max_tokens=24, stop=smollm2.tokenizer.stop)
    assert answer.ids == case["greedy_ids"]
    assert answer.stopped_by == ("eos" if case["name"] == "capital" else "length")


def test_greedy_answers_batched(smollm2):
    answers = generate(
        smollm2.decoder,
        [case["ids"] for case in CASES.values()],
        max_tokens=24,
        stop=smollm2.tokenizer.stop,
    )
    for answer, case in zip(answers, CASES.values(), strict=True):
        assert answer.ids == case["greedy_ids"]


def test_greedy_answer_without_a_cache(smollm2, case):
    ids = list(case["ids"])
    for expected in case["greedy_ids"]:
        token = int(smollm2.decoder.logits(ids).argmax())
        assert token == expected
        ids.append(token)


def test_chat_wraps_the_question_as_the_oracle_did(smollm2):
    assert smollm2.tokenizer.chat("What is the capital of France?") == CASES["capital"]["ids"]
