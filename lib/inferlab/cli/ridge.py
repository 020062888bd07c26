"""`inferlab ridge`: the ridge point of an accelerator (chapter 8)."""

from __future__ import annotations

import json

from inferlab.accelerator import Accelerator
from inferlab.cli import arguments
from inferlab.quantities import format_si
from inferlab.roofline import ridge_point


def add_parser(subparsers):
    """Add the `ridge` command."""
    parser = subparsers.add_parser(
        "ridge",
        help="an accelerator's ridge point",
        description="The arithmetic intensity, in FLOP a byte of memory traffic, from which an"
        " accelerator is limited by its compute: dense peak / bandwidth.",
        epilog="JSON keys: accelerator, dtype, peak (dense FLOP/s), bandwidth (byte/s), ridge_point"
        " (FLOP/byte), ridge_points (by dtype), sources.",
    )
    parser.add_argument("accelerator", help="by name: see `inferlab list accelerators`")
    parser.add_argument(
        "--dtype", type=arguments.dtype, metavar="DTYPE",
        help="the compute dtype (default: all that are known; in JSON bf16, else fp16, else the first)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--explain", action="store_true", help="show the formula and its sources")
    parser.set_defaults(run=run)
    return parser


def run(args) -> int:
    """Run the command."""
    machine = Accelerator.preset(args.accelerator)
    if args.json:
        report = _report(machine, args.dtype or machine.usual_dtype, args.explain)
        print(json.dumps(report, indent=1))
        return 0
    for each in [args.dtype] if args.dtype else machine.peaks:
        if args.explain:
            print(f"{machine.name}, {each}: {_explained(machine, each)}")
        else:
            print(
                f"{machine.name}  {each}  {ridge_point(machine, each):.1f} FLOP/B"
                f"  ({format_si(machine.peak(each), 'FLOP/s')} / {format_si(machine.bandwidth, 'B/s')})"
            )
    if args.explain:
        for key, source in machine.sources.items():
            print(f"  {key}: {source}")
    return 0


def _explained(machine, dtype) -> str:
    return (
        f"ridge point = peak / bandwidth = {format_si(machine.peak(dtype), 'FLOP/s')}"
        f" / {format_si(machine.bandwidth, 'B/s')} = {ridge_point(machine, dtype):.1f} FLOP/B"
    )


def _report(machine, dtype, explain) -> dict:
    report = {
        "accelerator": machine.name,
        "dtype": dtype,
        "peak": machine.peak(dtype),
        "bandwidth": machine.bandwidth,
        "ridge_point": ridge_point(machine, dtype),
        "ridge_points": {each: ridge_point(machine, each) for each in machine.peaks},
        "sources": machine.sources,
    }
    return report | ({"explain": [_explained(machine, dtype)]} if explain else {})
