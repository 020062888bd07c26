"""`inferlab fit`: fit the efficiencies of accelerators and engines to measurements (chapter 9)."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from inferlab import calibration, measurements
from inferlab.cli import arguments
from inferlab.quantities import InputError

EPILOG = f"""\
ROWS.csv has the columns {", ".join(measurements.COLUMNS)}.
Metrics that are fitted: TPOT and TTFT (s, ms or us), decode_throughput, prefill_throughput,
output_throughput, output_throughput_per_gpu (tok/s). Names are those of `inferlab list`.
An accelerator, and an engine on it, needs {calibration.MIN_ROWS} rows.

examples:
  inferlab fit
  inferlab fit my-rows.csv --write mine.json
  inferlab estimate Llama-3.1-8B H100-SXM --calibration mine.json

JSON: groups, each with accelerator, engine (null: all there), efficiency (the parameters), kv (the
cache dtype taken where rows leave it open), served, prefill_fitted, rows (each row's error when it
is predicted from the others), error and error_p90 (their median and 90th percentile).
"""


def add_parser(subparsers):
    """Add the `fit` command."""
    parser = subparsers.add_parser(
        "fit",
        help="fit the estimate's efficiencies to measurements",
        description="Fit the efficiencies that `inferlab estimate` calibrates with to measured rows.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "rows", nargs="?", metavar="ROWS.csv", help="measured rows (default: the published ones)"
    )
    parser.add_argument("--write", metavar="FILE", help="write the fit, for `inferlab estimate`")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)
    return parser


def run(args) -> int:
    """Run the command."""
    rows = measurements.read(args.rows) if args.rows else measurements.published()
    found = calibration.fit(rows)
    reasons = {row.id: why for row in rows if (why := calibration.left_out_because(row))}
    if not found:
        first: dict[str, str] = {}  # the first row of each reason
        for id, why in reasons.items():
            first.setdefault(why, id)
        shown = "; ".join(f"{id}: {why}" for why, id in list(first.items())[:3])
        raise InputError(
            f"{args.rows} has no accelerator with {calibration.MIN_ROWS} rows that can be fitted"
            + (f" ({shown})" if shown else "")
        )
    if args.write:
        calibration.write(found, args.write)
    if args.json:
        print(json.dumps({"groups": [_record(group) for group in found]}, indent=1))
    else:
        print("\n".join(_line(group) for group in found))
    arguments.say([f"{id} is left out: {why}" for id, why in reasons.items()] if args.rows else [])
    return 0


def _record(group) -> dict:
    return asdict(group) | {"error": group.error(), "error_p90": group.error(0.9)}


def _line(group) -> str:
    e = group.efficiency
    return (
        f"{group.accelerator}, {group.engine or 'all engines'}: {len(group.rows)} rows, error"
        f" {group.error():.1%} (90th percentile {group.error(0.9):.1%}); reaches {e.memory:.0%} of"
        f" the bandwidth and {e.compute:.0%} of the peak"
    )
