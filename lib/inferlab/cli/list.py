"""`inferlab list`: the models and accelerators that are known by name."""

from __future__ import annotations

import argparse
import json
import textwrap

from inferlab.accelerator import Accelerator
from inferlab.architecture import Architecture
from inferlab.hf_config import FAMILIES
from inferlab.quantities import bytes_of, format_si
from inferlab.roofline import ridge_point
from inferlab.tables import Table

OWN = f"""\
a config.json is counted exactly for these families (its model_type):

{textwrap.fill(", ".join(FAMILIES), 78, initial_indent="  ", subsequent_indent="  ")}

your own presets go into one TOML file, named by --presets FILE or INFERLAB_PRESETS:

  [accelerators.my-gpu]
  peaks = {{ bf16 = 100e12, fp8 = 200e12 }}   # dense FLOP/s by compute dtype
  bandwidth = 1.2e12                        # byte/s
  capacity = 48e9                           # bytes; the rest is optional
  link_bandwidth = 64e9                     # byte/s to its peers, one direction
  link_latency = 10e-6                      # seconds a message
  price = 2.5                               # USD an hour
  [accelerators.my-gpu.sources]
  bandwidth = "datasheet, page 2"

  [models.my-model]
  source = "where the shapes come from"
  config = "my-model/config.json"           # or a table with the config's keys

JSON keys: `models`: name, source, params, active, kv_bytes_per_token (2 bytes an element),
max_positions; `accelerators`: name, peaks, bandwidth, capacity, link_bandwidth, link_latency,
price (null: unknown), ridge_points, sources.
"""


def add_parser(subparsers):
    """Add the `list` command."""
    parser = subparsers.add_parser(
        "list",
        help="the models and accelerators that are known by name",
        description="List the models or the accelerators that are known by name.",
        epilog=OWN,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("kind", choices=("models", "accelerators"))
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--explain", action="store_true", help="add how each number comes about, and its source"
    )
    parser.set_defaults(run=run)
    return parser


def run(args) -> int:
    """Run the command."""
    if args.kind == "models":
        entries = [Architecture.preset(name) for name in Architecture.names()]
        report, table, explain = _model, _models_table, _explain_model
    else:
        entries = [Accelerator.preset(name) for name in Accelerator.names()]
        report, table, explain = _machine, _machines_table, _explain_machine
    if args.json:
        reports = [report(entry) for entry in entries]
        if args.explain:
            for each, entry in zip(reports, entries, strict=True):
                each["explain"] = explain(entry)
        print(json.dumps({args.kind: reports}, indent=1))
    elif args.explain:
        for entry in entries:
            print(entry.name, *(f"  {line}" for line in explain(entry)), sep="\n")
    else:
        print(table(entries))
    return 0


def _model(model: Architecture) -> dict:
    parameters = model.parameters
    return {
        "name": model.name,
        "source": model.source,
        "params": int(parameters.total),
        "active": int(parameters.active),
        "kv_bytes_per_token": bytes_of(model.kv_elements_per_token, "bf16"),
        "max_positions": model.max_positions,
    }


def _models_table(models) -> Table:
    rows = [
        (each["name"], format_si(each["params"]), format_si(each["active"]),
         format_si(each["kv_bytes_per_token"], "B"), each["max_positions"])
        for each in map(_model, models)
    ]  # fmt: skip
    return Table(
        {"model": "", "parameters": "", "active": "", "KV a token": "", "context": ",d"}, rows
    )


def _explain_model(model: Architecture) -> list[str]:
    groups = {name: int(count) for name, count in model.parameters.groups.items() if count}
    parts = " + ".join(f"{name} {count:,}" for name, count in groups.items())
    elements = model.kv_elements_per_token
    return [
        f"parameters = {parts} = {int(model.parameters.total):,}",
        f"KV a token = {model.layers} layers x {model.kv_elements_per_layer()} elements x 2 B"
        f" = {bytes_of(elements, 'bf16'):,} B",
        f"source: {model.source}",
    ]


def _machine(machine: Accelerator) -> dict:
    return {
        "name": machine.name,
        "peaks": machine.peaks,
        "bandwidth": machine.bandwidth,
        "capacity": machine.capacity,
        "link_bandwidth": machine.link_bandwidth,
        "link_latency": machine.link_latency,
        "price": machine.price,
        "ridge_points": {dtype: ridge_point(machine, dtype) for dtype in machine.peaks},
        "sources": machine.sources,
    }


def _machines_table(machines) -> Table:
    rows = []
    for machine in machines:
        dtype = machine.usual_dtype
        rows.append(
            (machine.name, dtype, format_si(machine.peak(dtype), "FLOP/s"),
             format_si(machine.bandwidth, "B/s"),
             format_si(machine.capacity, "B") if machine.capacity else None,
             ridge_point(machine, dtype))
        )  # fmt: skip
    columns = {"accelerator": "", "dtype": "", "dense peak": "", "bandwidth": "", "memory": "",
               "ridge, FLOP/B": ".1f"}  # fmt: skip
    return Table(columns, rows)


def _explain_machine(machine: Accelerator) -> list[str]:
    lines = [
        f"ridge point, {dtype} = {format_si(peak, 'FLOP/s')} / {format_si(machine.bandwidth, 'B/s')}"
        f" = {ridge_point(machine, dtype):.1f} FLOP/B"
        for dtype, peak in machine.peaks.items()
    ]
    return lines + [f"{key}: {source}" for key, source in machine.sources.items()]
