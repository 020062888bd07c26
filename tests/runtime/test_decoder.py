"""The decoder on a tiny random model: against a second implementation, and its own promises."""

import numpy as np
import pytest

from inferlab.accounting import ENGINE
from inferlab.quantities import InputError
from inferlab.runtime import load
from inferlab.runtime.decoder import Tally
from inferlab.step import Sequence, decode, prefill, step

IDS = [5, 80, 200, 17, 17, 99, 3, 250, 41]


def slow_logits(matrices, ids, heads, kv_heads, head_dim, layers, base=10000.0, factors=None):
    """Logits at every position, in float64, token by token and head by head.

    Written from the published definition (rotate-half rotary positions, one query at a time), not
    from the library. The file interleaves the two halves of each q and k head, which is undone.
    """

    def get(name):
        return matrices[name].astype(np.float64)

    def norm(x, weight):
        return x / np.sqrt(np.mean(x**2) + 1e-5) * weight

    def halves(rows, count):
        return rows.reshape(count, head_dim // 2, 2, -1).swapaxes(1, 2).reshape(rows.shape)

    def rotated(x, position):
        frequency = base ** (-np.arange(0, head_dim, 2) / head_dim)
        angle = position * (frequency if factors is None else frequency / factors)
        cos, sin = np.tile(np.cos(angle), 2), np.tile(np.sin(angle), 2)
        first, second = np.split(x, 2)
        return x * cos + np.concatenate([-second, first]) * sin

    stream = [get("token_embd")[i] for i in ids]
    for layer in range(layers):
        w = {n: get(f"blk.{layer}.{n}") for n in ("attn_norm", "attn_v", "attn_output", "ffn_norm",
                                                 "ffn_gate", "ffn_up", "ffn_down")}  # fmt: skip
        wq = halves(get(f"blk.{layer}.attn_q"), heads)
        wk = halves(get(f"blk.{layer}.attn_k"), kv_heads)
        keys, values = [], []
        for position, x in enumerate(stream):
            normed = norm(x, w["attn_norm"])
            keys.append([rotated(k, position) for k in (wk @ normed).reshape(kv_heads, -1)])
            values.append((w["attn_v"] @ normed).reshape(kv_heads, -1))
            mixed = []
            for head, q in enumerate((wq @ normed).reshape(heads, -1)):
                shared = head // (heads // kv_heads)
                q = rotated(q, position)
                scores = np.array([q @ k[shared] for k in keys]) / np.sqrt(head_dim)
                weights = np.exp(scores - scores.max())
                weights /= weights.sum()
                mixed.append(sum(p * v[shared] for p, v in zip(weights, values, strict=True)))
            x = x + w["attn_output"] @ np.concatenate(mixed)
            normed = norm(x, w["ffn_norm"])
            gate = w["ffn_gate"] @ normed
            stream[position] = x + w["ffn_down"] @ (
                gate / (1 + np.exp(-gate)) * (w["ffn_up"] @ normed)
            )
    head = get("output" if "output" in matrices else "token_embd")
    return np.array([head @ norm(x, get("output_norm")) for x in stream])


SHAPES = {
    "grouped, tied": {},
    "one KV head": {"heads": 6, "kv_heads": 1},
    "as many KV heads": {"heads": 4, "kv_heads": 4, "tied": False},
    "wide heads": {"heads": 2, "kv_heads": 1, "head_dim": 64, "layers": 3, "tied": False},
}


@pytest.mark.parametrize("changes", SHAPES.values(), ids=SHAPES)
def test_logits_equal_a_slow_second_implementation(tiny_file, changes):
    path, matrices = tiny_file(**changes)
    sizes = {"heads": 4, "kv_heads": 2, "head_dim": 16, "layers": 2} | {
        key: value for key, value in changes.items() if key != "tied"
    }
    expected = slow_logits(matrices, IDS, **sizes)
    found = load(path).decoder.logits(IDS, positions="all")
    assert np.abs(found - expected).max() < 1e-3 * np.abs(expected).max()


def test_slowed_rotary_positions(tiny_file):
    factors = np.linspace(1, 8, 8).astype(np.float32)
    path, matrices = tiny_file(extra_tensors=[("rope_freqs.weight", factors)])
    expected = slow_logits(matrices, IDS, 4, 2, 16, 2, factors=factors)
    found = load(path).decoder.logits(IDS, positions="all")
    assert np.abs(found - expected).max() < 1e-3 * np.abs(expected).max()
    plain = slow_logits(matrices, IDS, 4, 2, 16, 2)
    assert np.abs(found - plain).max() > 1e-2 * np.abs(expected).max()


def test_linear_scaling_of_positions(tiny_file):
    fields = [
        ("add_string", "llama.rope.scaling.type", "linear"),
        ("add_float32", "llama.rope.scaling.factor", 4.0),
    ]
    path, matrices = tiny_file(extra_fields=fields)
    expected = slow_logits(matrices, IDS, 4, 2, 16, 2, factors=np.full(8, 4.0))
    found = load(path).decoder.logits(IDS, positions="all")
    assert np.abs(found - expected).max() < 1e-3 * np.abs(expected).max()


def test_one_pass_equals_one_token_at_a_time(tiny):
    together = tiny.decoder.logits(IDS, positions="all")
    cache = tiny.decoder.new_cache(len(IDS))
    apart = np.array([tiny.decoder.logits([i], cache) for i in IDS])
    assert np.abs(together - apart).max() < 1e-4


def test_later_tokens_change_nothing_before_them(tiny):
    whole = tiny.decoder.logits(IDS, positions="all")
    assert np.abs(tiny.decoder.logits(IDS[:4], positions="all") - whole[:4]).max() < 1e-4


def test_a_packed_step_equals_its_sequences_alone(tiny):
    cache_a, cache_b = tiny.decoder.new_cache(20), tiny.decoder.new_cache(20)
    tiny.decoder.logits(IDS[:5], cache_a)
    tiny.decoder.logits(IDS[:2], cache_b)
    packed = tiny.decoder.step([([7], cache_a), (IDS, None), ([8, 9, 10], cache_b)])
    alone = [[*IDS[:5], 7], IDS, [*IDS[:2], 8, 9, 10]]
    for row, ids in zip(packed, alone, strict=True):
        assert np.abs(row - tiny.decoder.logits(ids)).max() < 1e-4
    assert (cache_a.length, cache_b.length) == (6, 5)


@pytest.mark.parametrize(
    ("sequences", "positions"),
    [
        (prefill(9), "last"),
        (prefill(9), "all"),
        (prefill(1), "last"),
        (decode(9), "last"),
        (decode(9, 3), "last"),
        ([Sequence(4, 9)], "last"),
        ([Sequence(4, 9), Sequence(9, 0), Sequence(1, 2, 2)], "all"),
    ],
)
@pytest.mark.parametrize("which", ["tiny", "smollm2"])
def test_the_tally_equals_the_count(request, which, sequences, positions):
    """What was multiplied, read and written is what `step` says, to the last integer."""
    model = request.getfixturevalue(which)
    decoder = model.decoder
    batch = []
    for s in sequences:
        for _ in range(s.count):
            cache = decoder.new_cache(20)
            if s.cached:
                decoder.logits(IDS[: s.cached], cache)
            batch.append((IDS[: s.new], cache))
    decoder.tally = Tally()
    decoder.step(batch, positions)
    assert decoder.tally.work() == step(
        model.architecture,
        sequences,
        ENGINE.but(pairs="full", logits=positions),
        weights="fp32",
        kv="fp32",
        compute="fp32",
    )


def test_the_real_model_has_the_published_shapes(smollm2):
    # config.json of SmolLM2-135M-Instruct; 134,515,008 parameters as transformers counts them.
    a = smollm2.architecture
    assert (a.layers, a.hidden, a.ffn, a.heads, a.kv_heads, a.head_dim, a.vocab) == (
        30, 576, 1536, 9, 3, 64, 49152,
    )  # fmt: skip
    assert a.tied
    assert a.parameters.total == 134_515_008


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([], "one or more token ids"),
        ([[1, 2]], "one or more token ids"),
        (["a"], "one or more token ids"),
        ([1.5], "one or more token ids"),
        ([-1], "token id -1 is outside the vocabulary of 0 to 261"),
        ([3, 262], "token id 262 is outside the vocabulary of 0 to 261"),
        ([1] * 65, "room for 64"),
    ],
)
def test_token_ids_that_cannot_be_used(tiny, ids, message):
    with pytest.raises(InputError, match=message):
        tiny.decoder.logits(ids)


def test_many_token_ids_that_cannot_be_used_make_a_short_message(tiny):
    with pytest.raises(InputError, match="one or more token ids") as error:
        tiny.decoder.logits(["token"] * 999)
    assert len(str(error.value)) < 200


def test_a_full_cache_refuses_and_stays_as_it_was(tiny):
    cache = tiny.decoder.new_cache(3)
    tiny.decoder.logits([4, 5], cache)
    with pytest.raises(InputError, match="room for 3"):
        tiny.decoder.logits([6, 7], cache)
    assert cache.length == 2


def test_two_sequences_of_a_step_cannot_share_a_cache(tiny):
    cache = tiny.decoder.new_cache(8)
    with pytest.raises(InputError, match="share one cache"):
        tiny.decoder.step([([4, 5], cache), ([6], cache)])
    assert cache.length == 0


@pytest.mark.parametrize("capacity", [0, -1, 65])
def test_caches_that_the_model_cannot_use(tiny, capacity):
    with pytest.raises(InputError, match="this model takes 1 to 64"):
        tiny.decoder.new_cache(capacity)
