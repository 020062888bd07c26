"""Random architectures, batches and ways to count, for Hypothesis."""

from hypothesis import settings
from hypothesis import strategies as st

from inferlab.accounting import ENGINE
from inferlab.architecture import MLA, Architecture, MoE
from inferlab.step import Sequence

# How long an example takes says nothing here: other work on the machine slows it.
settings.register_profile("any time", deadline=None)
settings.load_profile("any time")


@st.composite
def architectures(draw, largest=64, kinds=("dense", "moe", "mla")):
    """Architectures of any shape whose sizes are at most about `largest`."""
    sizes = st.integers(1, largest)
    layers = draw(st.integers(1, 6))
    kv_heads = draw(st.integers(1, 4))
    kind = draw(st.sampled_from(kinds))
    fields = {
        "name": kind,
        "layers": layers,
        "hidden": draw(sizes),
        "ffn": draw(sizes),
        "heads": kv_heads * draw(st.integers(1, 4)),
        "kv_heads": kv_heads,
        "head_dim": draw(sizes),
        "vocab": draw(sizes),
    }
    for flag in (
        "gated",
        "tied",
        "qkv_bias",
        "out_bias",
        "ffn_bias",
        "head_bias",
        "norm_bias",
        "sinks",
    ):
        fields[flag] = draw(st.booleans())
    if draw(st.booleans()):
        fields |= {
            "window": draw(st.integers(1, 40)),
            "windowed_layers": draw(st.integers(0, layers)),
        }
    if draw(st.integers(0, 9)) == 0:
        fields["embedding_dim"] = draw(sizes)
    if kind == "moe":
        experts = draw(st.integers(1, 16))
        fields["moe"] = MoE(
            experts=experts,
            active=draw(st.integers(1, experts)),
            ffn=draw(sizes),
            layers=draw(st.integers(1, layers)),
            shared_ffn=draw(st.integers(0, largest)),
            bias=draw(st.booleans()),
        )
    if kind == "mla":
        fields["mla"] = MLA(
            q_rank=draw(st.none() | sizes),
            kv_rank=draw(sizes),
            nope_dim=draw(sizes),
            rope_dim=draw(sizes),
            v_dim=draw(sizes),
            bias=draw(st.booleans()),
        )
    return Architecture(**fields)


def sequences(longest=60):
    """One sequence of a step."""
    return st.builds(Sequence, st.integers(1, longest), st.integers(0, longest), st.integers(1, 5))


def batches(longest=60):
    """A packed batch."""
    return st.lists(sequences(longest), min_size=1, max_size=5)


accountings = st.builds(
    ENGINE.but,
    pairs=st.sampled_from(["causal", "full"]),
    logits=st.sampled_from(["last", "all", "none"]),
    activations=st.sampled_from(["layer", "unfused", "unfused-scores", "none"]),
    mla=st.sampled_from(["absorbed", "expanded", "reexpand"]),
)
