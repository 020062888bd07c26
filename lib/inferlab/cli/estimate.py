"""`inferlab estimate`: fit, time and throughput of a model on accelerators (chapters 9 and 13)."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from inferlab import calibration, measurements
from inferlab.cli import arguments
from inferlab.deployment import (
    MEMORY_FRACTION,
    Deployment,
    answering,
    bottleneck,
    bound,
    ceilings,
    experts_read,
    memory,
    mid_context,
    running,
    smaller_kv,
    step_bound,
)
from inferlab.quantities import InputError, format_duration, format_rate, format_si
from inferlab.step import decode, prefill

EPILOG = """\
examples:
  inferlab estimate LLaMA-7B A100-SXM-40GB --input 3000 --output 200
  inferlab estimate Llama-3.1-70B H100-SXM --gpus 4 --weights fp8 --batch 32 --engine vllm --json

The bound is what the datasheet allows: no engine can be faster. The calibrated estimate is what
an engine reaches, fitted to published measurements; null where none were.

JSON keys (seconds and bytes):
  fits        whether weights and the cache of the whole batch at its longest fit, in the datasheet's
              GB; most HBM has up to 7 % more (an H100 of 80 GB reports 81,559 MiB to nvidia-smi)
  memory      on each GPU: weights; kv; reserved (what an engine keeps); free (below zero: too much)
  bound       ttft_s (first token of the whole batch's prefill), tpot_s (a step at context
              input + output/2), tokens_per_s: batch x output / (ttft_s + (output-1) tpot_s). Of a
              batch that memory cannot hold, tpot_s is the step of settings.running sequences (of
              all, where not even one fits), and tokens_per_s counts the waves in which the batch
              decodes, as large as the whole card holds: settings.wave sequences and
              ttft_s + (output-1) x step of a wave x batch/wave seconds
  calibrated  the same, in waves of calibrated.running sequences. Where an engine works so, tpot_s
              holds the prefills of other requests between a request's tokens; tokens_per_s counts
              each prefill once: batch x output / (ttft_s + (output-1) x step x batch/running).
              fitted_on (the measured rows), error (median leave-one-out relative error), error_p90,
              group (accelerator, engine). ttft_s is null where no row tells
  bottleneck  of prefill and decode: compute-bound, memory-bound or network-bound
  ceilings    of prefill and decode: seconds that compute, memory and network need at least
  experts     of a mixture of experts: distinct experts that a decode step reads a layer (expected
              under uniform routing, which the times take; least; most); else null
  settings    model, accelerator, gpus, batch, running (sequences that decode at the same time),
              wave (those that the whole card could hold, for the bound's tokens_per_s), input,
              output, weights, compute, kv_bound, kv_memory (16 bits unless --kv says otherwise; a
              bound takes the smaller that is in use)
"""


# The share by which a card's memory exceeds its datasheet where that says GB and means GiB, as for
# most HBM.
_UNDERSTATED = 2**30 / 1e9 - 1


def add_parser(subparsers):
    """Add the `estimate` command."""
    parser = subparsers.add_parser(
        "estimate",
        help="time, memory and throughput of a model on accelerators",
        description="Whether a model fits on accelerators, and how fast a batch of requests can be.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", metavar="MODEL", help=arguments.MODEL_HELP)
    parser.add_argument(
        "accelerator", metavar="ACCELERATOR", help="by name: see `inferlab list accelerators`"
    )
    for name, default, of, meaning in (
        ("--gpus", 1, arguments.above_zero, "accelerators, sharing each layer (tensor parallel)"),
        ("--batch", 1, arguments.above_zero, "requests at the same time"),
        ("--input", 1024, arguments.whole, "prompt tokens a request"),
        ("--output", 128, arguments.above_zero, "output tokens a request"),
    ):
        parser.add_argument(
            name, type=of, default=default, metavar="N", help=f"{meaning} (default: %(default)s)"
        )
    parser.add_argument(
        "--weights",
        type=_dtype,
        metavar="DTYPE",
        help="dtype of the weights (default: as published)",
    )
    parser.add_argument("--kv", type=_dtype, metavar="DTYPE", help="dtype of the KV cache")
    parser.add_argument(
        "--compute", type=_dtype, metavar="DTYPE",
        help="dtype of the arithmetic (default: the fastest that the weights can run in)",
    )  # fmt: skip
    parser.add_argument("--engine", help="the serving engine, for the calibrated estimate")
    parser.add_argument(
        "--memory-fraction", type=_fraction, default=MEMORY_FRACTION, metavar="F",
        help="share of the memory that the engine takes (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--calibration", metavar="FILE", help="a fit of your own (`inferlab fit`)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--explain", action="store_true", help="show where each bound comes from")
    parser.set_defaults(run=run)
    return parser


def _dtype(text: str) -> str:
    return arguments.dtype(measurements.dtype(text))


def _fraction(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a share above 0 and up to 1")
    return value


def run(args) -> int:
    """Run the command."""
    model, notes = _model(args.model)
    d = Deployment(
        architecture=model,
        accelerator=measurements.accelerator(args.accelerator),
        gpus=args.gpus,
        weights=args.weights or model.weight_dtype,
        kv=args.kv,
        compute=args.compute,
    )
    # Nothing is generated from nothing: an empty prompt still feeds one start token.
    prompt = max(args.input, 1)
    report = _report(d, prompt, args)
    if args.json:
        print(json.dumps(report, indent=1))
    else:
        print(_text(report))
    if args.explain and not args.json:
        print(_explained(report, d))
    arguments.say(notes)
    return 0


def _model(name: str):
    """A model by its own name, or by one that published measurements use."""
    try:
        return arguments.architecture(name)
    except InputError:
        known = measurements.names()
        if name in known["models"] or name in known["shapes"]:
            return measurements.architecture(name), []
        raise


def _report(d: Deployment, prompt, args) -> dict:
    batch, output = args.batch, args.output
    d = answering(d, prompt, output, batch)
    held = None
    if d.accelerator.capacity is not None:
        held = memory(d, prompt + output - 1, batch, fraction=args.memory_fraction)
    known = calibration.read(args.calibration) if args.calibration else None
    group = calibration.find(d.accelerator.name, args.engine, known)
    taken = {"fraction": args.memory_fraction}
    together = running(d, prompt, output, batch, **taken)
    return {
        "fits": None if held is None else bool(held.fits),
        "memory": None if held is None else {k: float(v) for k, v in asdict(held).items()},
        "bound": _times(bound(d, prompt, output, batch, **taken)),
        "calibrated": _calibrated(group, d, prompt, output, batch, taken),
        "bottleneck": {
            phase: f"{ceiling}-bound"
            for phase, ceiling in bottleneck(d, prompt, output, batch, **taken).items()
        },
        "ceilings": {
            "prefill": _floats(ceilings(d, prefill(prompt, batch))),
            "decode": _floats(ceilings(d, decode(mid_context(prompt, output), together))),
        },
        "experts": _floats(experts_read(d.architecture, together)),
        "settings": {
            "model": d.architecture.name,
            "accelerator": d.accelerator.name,
            "gpus": d.gpus,
            "batch": batch,
            "running": int(together),
            "wave": int(running(d, prompt, output, batch, fraction=1, reserved=0)),
            "input": prompt,
            "output": output,
            "weights": d.weights,
            "compute": d.arithmetic,
            "kv_bound": d.kv or smaller_kv(d.weights),
            "kv_memory": d.kv or "bf16",
        },
    }


def _floats(values: dict | None) -> dict | None:
    return values and {key: float(value) for key, value in values.items()}


def _times(estimate) -> dict:
    return {key: None if v is None else float(v) for key, v in asdict(estimate).items()}


def _calibrated(group, d, prompt, output, batch, taken) -> dict | None:
    if group is None:
        return None
    return _times(group.estimate(d, prompt, output, batch, **taken)) | {
        "fitted_on": list(group.rows),
        "running": int(
            running(d, prompt, output, batch, kv=calibration.cache_dtype(d, group.kv), **taken)
        ),
        "error": group.error(),
        "error_p90": group.error(0.9),
        "group": {"accelerator": group.accelerator, "engine": group.engine, "kv": group.kv},
    }


# --- text ------------------------------------------------------------------------------------------


def _text(report: dict) -> str:
    s = report["settings"]
    kv = (
        s["kv_memory"]
        if s["kv_bound"] == s["kv_memory"]
        else f"{s['kv_bound']} or {s['kv_memory']}"
    )
    lines = [
        f"{s['model']} ({s['weights']}, KV {kv}) on {s['gpus']} x {s['accelerator']},"
        f" {s['batch']} x {s['input']} tokens in, {s['output']} out",
        _memory_line(report),
        _times_line("bound", report["bound"]),
    ]
    fitted = report["calibrated"]
    if fitted is None:
        lines.append("calibrated  nothing measured on this accelerator")
    else:
        group = fitted["group"]
        lines.append(_times_line("calibrated", fitted))
        lines.append(
            f"            fitted on {len(fitted['fitted_on'])} rows of {group['accelerator']},"
            f" {group['engine'] or 'all engines'}; typical error {fitted['error']:.0%}, nine in ten"
            f" within {fitted['error_p90']:.0%}"
        )
    lines.append(
        f"bottleneck  prefill {report['bottleneck']['prefill']},"
        f" decode {report['bottleneck']['decode']}"
    )
    if s["running"] < s["batch"]:
        fit = "1 sequence fits" if s["running"] == 1 else f"{s['running']} sequences fit"
        lines.append(f"            {fit} at a time: the others wait")
    if report["experts"]:
        e = report["experts"]
        lines.append(
            f"experts     a decode step reads {e['expected']:.1f} a layer under uniform routing"
            f" (between {e['least']:.0f} and {e['most']:.0f})"
        )
    return "\n".join(lines)


def _memory_line(report) -> str:
    held = report["memory"]
    if held is None:
        return "memory      unknown"
    shown = ", ".join(f"{format_si(held[k], 'B', 3)} {k}" for k in ("weights", "kv", "reserved"))
    rest = f"{format_si(abs(held['free']), 'B', 3)} {'free' if report['fits'] else 'too much'}"
    verdict = "fits" if report["fits"] else "does not fit"
    line = f"memory      {verdict}: on each GPU {shown}, {rest}"
    if 0 < -held["free"] <= _UNDERSTATED * sum(held.values()):
        line += (
            "\n            by less than some cards have beyond their datasheet (an H100 of 80 GB reports"
            "\n            85.5 GB): with the bytes that yours reports, describe it in a file"
        )
    return line


def _times_line(name, times) -> str:
    parts = []
    for key, label in (("ttft_s", "TTFT"), ("tpot_s", "TPOT")):
        parts.append(f"{label} {'unknown' if times[key] is None else format_duration(times[key])}")
    if times["tokens_per_s"] is not None:
        parts.append(format_rate(times["tokens_per_s"]))
    return f"{name:<12}" + ", ".join(parts)


def _explained(report, d: Deployment) -> str:
    lines = ["seconds that each phase needs at least (the bound is the largest)"]
    for phase, values in report["ceilings"].items():
        shown = ", ".join(f"{name} {format_duration(v)}" for name, v in values.items())
        lines.append(f"  {phase}: {shown}")
    b, s = report["bound"], report["settings"]
    batch, output, wave = s["batch"], s["output"], s["wave"]
    names, waves, step = "TPOT", "", b["tpot_s"]
    if not wave == s["running"] == batch:
        lines.append(f"  the whole card holds {wave} of {batch} sequences at a time")
        names, waves = "step of a wave x batch / wave", f" x {batch} / {wave}"
        d = answering(d, s["input"], output, batch)
        step = float(step_bound(d, decode(mid_context(s["input"], output), wave)))
    lines.append(
        f"tokens/s = batch x output / (TTFT + (output - 1) x {names}) = {batch} x {output}"
        f" / ({b['ttft_s']:.4g} s + {output - 1} x {step:.4g} s{waves}) = {b['tokens_per_s']:.4g}"
    )
    return "\n".join(lines)
