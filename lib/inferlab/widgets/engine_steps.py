"""Three requests in a serving engine, one step at a time, under four policies (chapter 5)."""

from __future__ import annotations

import html

from inferlab.widgets.explorer import Explorer, Select, Slider

POLICIES = ("static batching", "continuous batching", "prefill first", "chunked prefill")


class EngineSteps(Explorer):
    """A recorded simulation: LLaMA-7B on an A100 40 GB serves A, B and C.

    A brings 3000 tokens and B 1500; C, with 6000, comes while they decode. The engine's accounting;
    a step takes as long as the roofline of its batch says, which the formula `step_s` works out
    again from what the step computed.
    """

    title = "A serving engine, step by step"

    @classmethod
    def controls(cls):
        return [
            Select(
                "policy",
                "Policy",
                {name: {"number": i} for i, name in enumerate(POLICIES)},
                "continuous batching",
            ),
            Slider("step", "Step", 1, cls._longest(), 1, play=0.5),
        ]

    @classmethod
    def formulas(cls):
        import sympy

        from inferlab.roofline import bound_time
        from inferlab.step import Sequence, prefill, step

        model = cls._model()
        machine = model.accelerator
        limits = machine.peak("bf16"), machine.bandwidth
        # Up to two prompts in a step, `here` or not, and B sequences with C cached tokens in all.
        here1, new1, cached1, here2, new2, cached2, decoding, held = sympy.symbols(
            "here1 new1 cached1 here2 new2 cached2 B C", positive=True
        )
        batch = [
            Sequence(new1, cached1, here1),
            Sequence(new2, cached2, here2),
            Sequence(1, held / decoding, decoding),
        ]
        work = step(model.architecture, batch)
        first = step(model.architecture, prefill(3000))
        return {
            "step_s": bound_time(sympy.expand(work.flops), sympy.expand(work.bytes), *limits),
            "prefill_a": sympy.Float(float(bound_time(first.flops, first.bytes, *limits))),
        }

    @classmethod
    def data(cls):
        return {name: _recorded(result) for name, result in cls._results().items()}

    @classmethod
    def _model(cls):
        from inferlab.accelerator import Accelerator
        from inferlab.architecture import Architecture
        from inferlab.serving import StepModel

        return StepModel(
            architecture=Architecture.preset("LLaMA-7B"),
            accelerator=Accelerator.preset("A100-SXM-40GB"),
        )

    @classmethod
    def _results(cls):
        from inferlab.serving import (
            ChunkedPrefill,
            ContinuousBatching,
            PrefillFirst,
            Request,
            StaticBatching,
            simulate,
        )

        trace = [
            Request.of("A", 3000, 30),
            Request.of("B", 1500, 30, arrival=0.06),
            Request.of("C", 6000, 10, arrival=0.25),
        ]
        policies = (StaticBatching(2), ContinuousBatching(), PrefillFirst(), ChunkedPrefill(512))
        model = cls._model()
        return {
            name: simulate(trace, model, policy)
            for name, policy in zip(POLICIES, policies, strict=True)
        }

    @classmethod
    def _longest(cls):
        return max(len(result.steps) for result in cls._results().values())

    def table(self):
        """What the four policies end in, for readers without scripts."""
        from inferlab.quantities import format_duration as show

        rows = "".join(
            f"<tr><td>{html.escape(name)}</td>"
            + "".join(f"<td>{show(result[id].ttft)}</td>" for id in "ABC")
            + "".join(f"<td>{show(result.longest_stall(id))}</td>" for id in "ABC")
            + f"<td>{show(result.makespan)}</td></tr>"
            for name, result in type(self).explorer()._results().items()
        )
        heads = [
            "Policy",
            *(f"TTFT of {id}" for id in "ABC"),
            *(f"Longest stall of {id}" for id in "ABC"),
            "All done after",
        ]
        return (
            f"<table><caption>{self.title}: three requests under four policies</caption><thead><tr>"
            + "".join(f"<th scope='col'>{head}</th>" for head in heads)
            + f"</tr></thead><tbody>{rows}</tbody></table>"
        )


def _recorded(result):
    """Steps, spans and token times as JSON."""
    return {
        "steps": [
            {
                "start": step.start, "end": step.end, "chunks": [list(chunk) for chunk in step.chunks],
                "decodes": step.decode_tokens, "cached": step.decode_cached, "kv": step.kv_tokens,
                "waiting": step.waiting,
            }
            for step in result.steps
        ],
        "spans": [[span.request, span.phase, span.start, span.end] for span in result.spans],
        "tokens": {record.id: result.token_times(record.id) for record in result.requests},
        "ttft": {record.id: record.ttft for record in result.requests},
        "stall": {record.id: result.longest_stall(record.id) for record in result.requests},
    }  # fmt: skip
