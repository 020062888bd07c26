"""From scores to tokens: sampling, stopping, batches."""

import numpy as np
import pytest

from inferlab.quantities import InputError
from inferlab.runtime.generation import generate, losses, probabilities, top

# ln 5, ln 3, ln 2: probabilities one half, three tenths, one fifth.
LOGITS = np.log(np.array([0.3, 0.5, 0.2], np.float32))


def test_softmax():
    assert probabilities(LOGITS) == pytest.approx([0.3, 0.5, 0.2])


def test_temperature_sharpens_and_flattens():
    # squares 9, 25, 4 of 38; at zero the largest takes all
    assert probabilities(LOGITS, 0.5) == pytest.approx([9 / 38, 25 / 38, 4 / 38])
    assert probabilities(LOGITS, 1e6) == pytest.approx([1 / 3] * 3, abs=1e-5)
    assert probabilities(LOGITS, 0).tolist() == [0, 1, 0]


def test_top_p_keeps_the_fewest_tokens_that_reach_it():
    assert probabilities(LOGITS, top_p=0.4).tolist() == [0, 1, 0]
    assert probabilities(LOGITS, top_p=0.7) == pytest.approx([3 / 8, 5 / 8, 0])
    assert probabilities(LOGITS, top_p=0.9) == pytest.approx([0.3, 0.5, 0.2])
    assert probabilities(LOGITS, top_p=1.0) == pytest.approx([0.3, 0.5, 0.2])
    # temperature first, then the nucleus: 25/38 alone reaches 0.6
    assert probabilities(LOGITS, 0.5, 0.6).tolist() == [0, 1, 0]


def test_huge_logits_do_not_overflow():
    assert probabilities(np.array([1e4, -1e4, 0], np.float32), 0.1).tolist() == [1, 0, 0]


@pytest.mark.parametrize(
    ("temperature", "top_p"),
    [(-0.1, 1), (float("nan"), 1), (float("inf"), 1), (1, 0), (1, 1.1), (1, float("nan"))],
)
def test_sampling_that_makes_no_sense(tiny, temperature, top_p):
    with pytest.raises(InputError, match="expected a number"):
        probabilities(LOGITS, temperature, top_p)
    with pytest.raises(InputError, match="expected a number"):
        generate(tiny.decoder, [[5]], temperature=temperature, top_p=top_p)


def test_top_breaks_ties_by_id():
    assert top(np.array([1.0, 3.0, 3.0, 2.0]), 3) == [(1, 3.0), (2, 3.0), (3, 2.0)]


def test_a_seed_repeats_and_sampling_varies(tiny):
    def run(seed):
        (answer,) = generate(tiny.decoder, [[5, 6]], max_tokens=20, temperature=1.5, seed=seed)
        return answer.ids

    assert run(3) == run(3)
    assert len({tuple(run(seed)) for seed in range(4)}) > 1


def test_samples_follow_the_distribution(tiny):
    p = probabilities(tiny.decoder.logits([5, 6]), 0.5)
    answers = generate(tiny.decoder, [[5, 6]] * 2000, max_tokens=1, temperature=0.5, seed=0)
    best = int(p.argmax())
    share = np.mean([answer.ids[0] == best for answer in answers])
    # five standard deviations of a share of 2000 draws
    assert abs(share - p[best]) < 5 * np.sqrt(p[best] * (1 - p[best]) / 2000)


def test_stops_at_a_stop_token_and_keeps_it(tiny):
    (free,) = generate(tiny.decoder, [[5, 6]], max_tokens=8)
    stop = free.ids[3]
    first = free.ids.index(stop)
    (answer,) = generate(tiny.decoder, [[5, 6]], max_tokens=8, stop={stop})
    assert answer.ids == free.ids[: first + 1]
    assert (free.stopped_by, answer.stopped_by) == ("length", "eos")


def test_the_first_token_comes_from_prefill_and_the_last_is_not_fed_back(tiny):
    (answer,) = generate(tiny.decoder, [[5, 6, 7]], max_tokens=8)
    assert len(answer.ids) == 8
    assert len(answer.step_s) == 7
    assert answer.cache.length == 3 + 8 - 1
    assert answer.decode_s == sum(answer.step_s)
    (one,) = generate(tiny.decoder, [[5, 6, 7]], max_tokens=1)
    assert (len(one.ids), one.step_s, one.cache.length) == (1, [], 3)


def test_the_context_ends_an_answer(tiny):
    for prompt, picked in ((60, 5), (64, 1)):  # the tiny model takes 64 tokens
        (answer,) = generate(tiny.decoder, [[5] * prompt], max_tokens=100)
        assert answer.stopped_by == "context"
        assert len(answer.ids) == picked
        assert answer.cache.length == 64


def test_a_batch_answers_as_each_prompt_alone_and_shrinks(tiny):
    prompts = [[5, 6, 7], [80], [9, 200, 41, 3]]
    alone = [generate(tiny.decoder, [p], max_tokens=12)[0].ids for p in prompts]
    stop = {alone[0][2]}
    tokens = []
    batch = generate(
        tiny.decoder, prompts, max_tokens=12, stop=stop,
        on_token=lambda index, token: tokens.append((index, token)),
    )  # fmt: skip
    for index, (answer, ids) in enumerate(zip(batch, alone, strict=True)):
        end = next((i + 1 for i, token in enumerate(ids) if token in stop), 12)
        assert answer.ids == ids[:end]
        assert [token for i, token in tokens if i == index] == answer.ids
    assert batch[0].stopped_by == "eos"


@pytest.mark.parametrize("max_tokens", [0, -3, 1.5, True, None])
def test_lengths_that_make_no_sense(tiny, max_tokens):
    with pytest.raises(InputError, match="expected a whole number from 1 on"):
        generate(tiny.decoder, [[5]], max_tokens=max_tokens)


def test_prompts_that_cannot_be_used(tiny):
    with pytest.raises(InputError, match="the prompt is empty"):
        generate(tiny.decoder, [[5], []])
    with pytest.raises(InputError, match="has 65 tokens: this model takes at most 64"):
        generate(tiny.decoder, [[5] * 65])
    with pytest.raises(InputError, match="seed is -1"):
        generate(tiny.decoder, [[5]], seed=-1)


def test_losses_are_the_negative_log_of_what_came(tiny):
    ids = [5, 6, 7, 5, 200]
    expected = []
    for position in range(1, 5):
        p = probabilities(tiny.decoder.logits(ids[:position]))
        expected.append(-np.log(p[ids[position]]))
    assert losses(tiny.decoder, ids) == pytest.approx(expected, rel=1e-4)


def test_losses_of_a_long_text_are_computed_in_pieces(smollm2):
    ids = smollm2.tokenizer.encode("the cat sat on the mat and " * 40)
    assert len(ids) > 256
    logits = smollm2.decoder.logits(ids, positions="all")
    whole = [-np.log(probabilities(row)[i]) for row, i in zip(logits, ids[1:], strict=False)]
    assert losses(smollm2.decoder, ids) == pytest.approx(whole, abs=1e-3)


def test_losses_of_one_token_are_none(tiny):
    assert losses(tiny.decoder, [5]).size == 0
    assert losses(tiny.decoder, []).size == 0
