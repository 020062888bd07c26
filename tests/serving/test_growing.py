"""The committed timings of a growing prompt are whole, and say what chapters 10 and 11 say of them."""

from types import SimpleNamespace

from inferlab.machine.growing import ADDED, CALLS, START, prompts, recorded_growth, time_growing


def test_the_record_has_every_call_twice():
    record = recorded_growth()
    assert record.prompts == [START + ADDED * call for call in range(CALLS)]
    assert len(record.anew_s) == len(record.reused_s) == CALLS
    assert all(seconds > 0 for seconds in record.anew_s + record.reused_s)


def test_the_cache_saves_most_of_the_time():
    record = recorded_growth()
    tokens = sum(record.prompts) / record.prompts[-1]
    measured = sum(record.anew_s) / sum(record.reused_s)
    assert tokens / 2 < measured < 2 * tokens


def test_each_prompt_begins_with_the_one_before():
    growing = prompts(1000, calls=3)
    assert [len(prompt) for prompt in growing] == [64, 128, 192]
    assert growing[2][:128] == growing[1] and growing[1][:64] == growing[0]
    assert all(0 <= token < 1000 for token in growing[2])


def test_a_new_record_names_the_model_that_ran():
    decoder = SimpleNamespace(
        architecture=SimpleNamespace(name="mine", vocab=100),
        new_cache=lambda tokens: None,
        logits=lambda ids, cache=None: None,
    )
    model = SimpleNamespace(decoder=decoder, architecture=decoder.architecture)
    assert time_growing(model, best_of=1).model == "mine"
