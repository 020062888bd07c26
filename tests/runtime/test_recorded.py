"""The recorded next-token scores, against the model that they are from."""

import numpy as np
import pytest

from inferlab.runtime import recorded
from inferlab.runtime.generation import probabilities


def test_the_record_is_what_the_model_says(smollm2):
    now, committed = recorded.record(smollm2), recorded.next_tokens()
    assert now.keys() == committed.keys()
    for name, entry in committed.items():
        assert entry["prompt"] == now[name]["prompt"]
        assert [text for text, _ in entry["tokens"]] == [text for text, _ in now[name]["tokens"]]
        logits = [logit for _, logit in entry["tokens"]]
        assert logits == pytest.approx([logit for _, logit in now[name]["tokens"]], abs=2e-3)
        # ten by themselves and the tail make the vocabulary
        assert 10 + sum(count for _, count in entry["tail"]) == 49_152


@pytest.mark.parametrize(("temperature", "error"), [(0.1, 0.01), (1, 0.001), (2, 0.025)])
def test_chances_from_the_record_are_those_of_all_logits(smollm2, temperature, error):
    for entry in recorded.next_tokens().values():
        logits = smollm2.decoder.logits(smollm2.tokenizer.encode(entry["prompt"]))
        expected = np.sort(probabilities(logits, temperature))[::-1][0]
        ten = np.array([logit for _, logit in entry["tokens"]])
        tail = np.array(entry["tail"])
        weights = np.exp((ten - ten[0]) / temperature)
        rest = tail[:, 1] @ np.exp((tail[:, 0] - ten[0]) / temperature)
        assert weights[0] / (weights.sum() + rest) == pytest.approx(expected, rel=error)
