"""`inferlab count`: parameters, FLOPs, bytes and KV cache of a model, exactly (chapters 4 to 7)."""

from __future__ import annotations

import argparse
import json
from fractions import Fraction

from inferlab.accounting import ENGINE
from inferlab.cli import arguments
from inferlab.deployment import experts_read
from inferlab.quantities import bytes_of, format_si, plain, significant
from inferlab.step import decode, ffn_elements, prefill, step

FLOPS = ("attention_scores_values", "attention_projections", "ffn", "router", "lm_head")
BYTES = ("weights", "kv_read", "kv_write", "activations")

EPILOG = """\
examples:
  inferlab count LLaMA-7B --decode 3000
  inferlab count DeepSeek-V3 --decode 8192 --mla expanded --json
  inferlab count path/to/config.json --step 512:0,1:3000,1:800 --explain

JSON keys:
  model                what was counted
  params               total; embedding (the token table); lm_head (the output matrix, also when it
                       is the table again); active (what one token passes through)
  kv_bytes_per_token   bytes that a token adds to the KV cache, over all layers
  flops                total, attention_scores_values, attention_projections, ffn, router, lm_head
                       (and embedding_projections where the token table has a width of its own)
  bytes                weights, kv_read, kv_write, activations, total: memory traffic of the step
  arithmetic_intensity flops.total / bytes.total
  step                 the sequences of the step: new, cached
  settings             what was counted how: attention, logits, mla, activations, weights, kv,
                       compute, kept_in_16_bits (parts that the config's quantization leaves alone)
  weights_bounds       of a mixture of experts, the least and the most bytes of weights: bytes.weights
                       is the expectation when each token picks its experts uniformly; else null
  notes                what a reader of the numbers should know
  explain              with --explain: quantity, formula, values, result, unit of each number
Without --prefill, --decode or --step, flops, bytes and arithmetic_intensity are null.
"""


def add_parser(subparsers):
    """Add the `count` command."""
    parser = subparsers.add_parser(
        "count",
        help="parameters, FLOPs, bytes and KV cache of a model and a step of it",
        description="Count a model's parameters and KV cache, and the FLOPs and bytes of one step.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", metavar="MODEL", help=arguments.MODEL_HELP)
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--prefill", type=arguments.above_zero, metavar="N", help="a prompt of N tokens"
    )
    which.add_argument(
        "--decode", type=arguments.whole, metavar="S", help="one new token, S tokens cached"
    )
    which.add_argument(
        "--step", type=arguments.batch, metavar="n:s,...",
        help="a batch of sequences, each with n new tokens and s cached ones",
    )  # fmt: skip
    parser.add_argument(
        "--attention", choices=("causal", "full"), default="causal",
        help="query-key pairs: up to each query's own position, or all (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--logits", choices=("last", "all", "none"), default="last",
        help="positions of the output head: the last of each sequence, all, none"
        " (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--mla", choices=("absorbed", "expanded", "reexpand"), default="absorbed",
        help="how multi-head latent attention treats cached tokens, in a decode step or a chunk such"
        " as 512:2048: on the cached latent; on cached keys and values of all heads; by rebuilding"
        " them from the latent at each step"
        " (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--activations", choices=("layer", "unfused", "unfused-scores"), default="layer",
        help="traffic of intermediate results: 2 d elements a token and layer; 12 d + 6 d_ff; those"
        " and 4 h a query-key pair (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--weights", type=arguments.dtype, metavar="DTYPE",
        help="dtype of the weights (default: the config's quantization, else bf16): "
        + arguments.DTYPE_HELP,
    )  # fmt: skip
    parser.add_argument(
        "--kv", type=arguments.dtype, metavar="DTYPE", default="bf16",
        help="dtype of the KV cache (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--compute", type=arguments.dtype, metavar="DTYPE", default="bf16",
        help="dtype of the activations (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--explain", action="store_true", help="show each formula with its numbers")
    parser.set_defaults(run=run)
    return parser


def run(args) -> int:
    """Run the command."""
    model, notes = arguments.architecture(args.model)
    accounting = ENGINE.but(
        pairs=args.attention, logits=args.logits, mla=args.mla, activations=args.activations
    )
    sequences = _sequences(args)
    dtypes = {"weights": args.weights or model.weight_dtype, "kv": args.kv, "compute": args.compute}
    work = step(model, sequences, accounting, **dtypes) if sequences else None
    notes += _notes(model, sequences)
    report = _report(model, sequences, work, accounting, dtypes, notes)
    if args.explain:
        from inferlab.cli.explanation import explain, legend

        explained = explain(model, sequences, accounting, dtypes, work)
    if args.json:
        print(json.dumps(report | ({"explain": explained} if args.explain else {}), indent=1))
    elif args.explain:
        print(legend(model), *map(_paragraph, explained), sep="\n")
    else:
        print(_text(report))
    arguments.say(notes)
    return 0


def _sequences(args):
    if args.prefill is not None:
        return prefill(args.prefill)
    if args.decode is not None:
        return decode(args.decode)
    return args.step or []


def _notes(model, sequences) -> list[str]:
    longest = max((s.new + s.cached for s in sequences), default=0)
    if model.max_positions and longest > model.max_positions:
        return [
            f"{longest:,} positions are more than the {model.max_positions:,} of {model.name}'s"
            " nominal context: counted all the same"
        ]
    return []


def _report(model, sequences, work, accounting, dtypes, notes) -> dict:
    parameters = model.parameters
    elements = model.layers * model.kv_elements_per_layer(accounting.mla)
    flops = traffic = intensity = None
    if work:
        extra = [name for name in work.components if name not in FLOPS]
        flops = {"total": number(work.flops)} | {
            name: number(work.components[name].flops) for name in (*FLOPS, *extra)
        }
        traffic = {name: number(getattr(work, name)) for name in BYTES}
        traffic["total"] = number(work.bytes)
        intensity = float(work.intensity)
    return {
        "model": model.name,
        "params": {
            "total": number(parameters.total),
            "embedding": number(parameters.embedding),
            "lm_head": number(parameters.lm_head),
            "active": number(parameters.active),
        },
        "kv_bytes_per_token": bytes_of(elements, dtypes["kv"]),
        "flops": flops,
        "bytes": traffic,
        "arithmetic_intensity": intensity,
        "step": [{"new": s.new, "cached": s.cached} for s in sequences],
        "settings": {
            "attention": accounting.pairs,
            "logits": accounting.logits,
            "mla": accounting.mla if model.mla else None,
            "activations": accounting.activations,
            **dtypes,
            "kept_in_16_bits": list(model.kept_in_16_bits),
        },
        "weights_bounds": _bounds(model, sequences, work, dtypes["weights"]),
        "notes": notes,
    }


def _bounds(model, sequences, work, dtype) -> dict | None:
    """Least and most weight bytes that a step of a mixture of experts can read."""
    if not work or not model.moe:
        return None
    experts = experts_read(model, sum(s.new for s in sequences))
    rest = work.weights - work.components["ffn"].weights
    return {
        bound: rest + bytes_of(ffn_elements(model, experts[bound]), dtype)
        for bound in ("least", "most")
    }


def number(value):
    """A count as JSON can hold it: an int where it is whole."""
    value = plain(value)
    return float(value) if isinstance(value, Fraction) else value


# --- text ----------------------------------------------------------------------------------------


def _text(report: dict) -> str:
    lines = [_heading(report)]
    for name, count in report["params"].items():
        lines.append(_line("parameters" if name == "total" else f"  {name}", count, ""))
    lines.append(_line("KV cache a token", report["kv_bytes_per_token"], "B"))
    if report["flops"]:
        for name, count in report["flops"].items():
            lines.append(_line("FLOPs" if name == "total" else f"  {name}", count, "FLOP"))
        lines.append(_line("memory traffic", report["bytes"]["total"], "B"))
        for name in BYTES:
            lines.append(_line(f"  {name}", report["bytes"][name], "B"))
            if name == "weights" and report["weights_bounds"]:
                for bound, count in report["weights_bounds"].items():
                    lines.append(_line(f"    at {bound}", count, "B"))
        lines.append(f"{'intensity':28}{significant(report['arithmetic_intensity']):>24} FLOP/B")
    return "\n".join(lines)


def _heading(report: dict) -> str:
    settings = report["settings"]
    if not report["step"]:
        return report["model"]
    steps = [f"{s['new']} new on {s['cached']} cached" for s in report["step"][:4]]
    more = len(report["step"]) - len(steps)
    shown = "; ".join(steps) + (f"; {more} sequences more" if more else "")
    mla = f", MLA {settings['mla']}" if settings["mla"] else ""
    kept = ", ".join(settings["kept_in_16_bits"])
    kept = f" but bf16 in {kept}" if kept else ""
    return (
        f"{report['model']}: {shown} ({settings['attention']} attention, logits {settings['logits']}"
        f"{mla}, activations {settings['activations']}; weights {settings['weights']}{kept},"
        f" KV {settings['kv']}, compute {settings['compute']})"
    )


def _line(label: str, count, unit: str) -> str:
    digits = f"{count:,}" if isinstance(count, int) else f"{count:,.3f}"
    return f"{label:28}{digits:>24} {unit:5}{format_si(count, unit):>16}".rstrip()


def _paragraph(row: dict) -> str:
    numbers = "".join(f"\n    = {line}" for line in row["substituted"])
    exact = (
        f"{row['result']:,}" if isinstance(row["result"], int) else significant(row["result"], 6)
    )
    scaled = f" ({format_si(row['result'], row['unit'])})" if row["result"] >= 1000 else ""
    return (
        f"{row['quantity']}\n    = {row['formula']}{numbers}\n    = {exact} {row['unit']}{scaled}"
    )
