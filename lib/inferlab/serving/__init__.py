"""A serving engine that one can watch: requests, policies, a prefix cache, and what they cost.

    from inferlab.serving import StepModel, ChunkedPrefill, chat_trace, simulate
    model = StepModel.preset("Llama-3.1-8B", "H100-SXM")
    result = simulate(chat_trace(conversations=20, rate=0.5, seed=1), model, ChunkedPrefill(512))
    result.summary()

Chapters 5, 10, 11 and 12. Times are roofline bounds unless efficiencies are given: a simulated
engine is as good as its datasheet, and what it shows is the order of things, not milliseconds.
"""

from inferlab.serving.model import Cost, StepModel
from inferlab.serving.policies import (
    ChunkedPrefill,
    ContinuousBatching,
    PrefillFirst,
    StaticBatching,
    TwoPools,
)
from inferlab.serving.radix import RadixTree, longest_common_prefix
from inferlab.serving.requests import Request, Segment, token_count
from inferlab.serving.results import (
    PHASES,
    RequestRecord,
    Result,
    Span,
    Step,
    percentile,
    prefill_share,
    spans_by_request,
)
from inferlab.serving.simulate import simulate
from inferlab.serving.traces import (
    Lognormal,
    agent_trace,
    chat_trace,
    poisson_trace,
    rag_trace,
    read_trace,
)

__all__ = [
    "PHASES",
    "ChunkedPrefill",
    "ContinuousBatching",
    "Cost",
    "Lognormal",
    "PrefillFirst",
    "RadixTree",
    "Request",
    "RequestRecord",
    "Result",
    "Segment",
    "Span",
    "StaticBatching",
    "Step",
    "StepModel",
    "TwoPools",
    "agent_trace",
    "chat_trace",
    "longest_common_prefix",
    "percentile",
    "poisson_trace",
    "prefill_share",
    "rag_trace",
    "read_trace",
    "simulate",
    "spans_by_request",
    "token_count",
]
