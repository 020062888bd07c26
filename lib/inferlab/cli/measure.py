"""`inferlab measure`: this machine's peak and bandwidth; the book's record of timings (chapter 8)."""

import argparse
from pathlib import Path

from inferlab.quantities import InputError, format_duration, format_si, significant


def add_parser(subparsers):
    """Add the `measure` command."""
    parser = subparsers.add_parser(
        "measure",
        help="measure what this machine can do",
        description="Measure this machine's memory bandwidth and fp32 matrix-product rate with "
        "NumPy, in a few seconds. The result is an accelerator like any other.",
    )
    parser.add_argument("--threads", type=int, metavar="N", help="threads (default: as in force)")
    parser.add_argument("--save", metavar="FILE", help="write the machine to a TOML file")
    parser.add_argument(
        "--record", nargs="?", const="", metavar="FILE",
        help="time the model's prefill and decode too, at one thread and at two (or at --threads), "
        "and write the record that the chapters show (minutes; default: the book's own file)",
    )  # fmt: skip
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    if args.record is None:
        _measure(args)
    elif args.save:
        raise InputError("--save and --record write two kinds of file: give one of them")
    else:
        _record(args.record, args.threads)
    return 0


def _measure(args):
    from inferlab.machine import measure, save
    from inferlab.roofline import ridge_point

    machine = measure(args.threads)
    print(machine.name)
    print(f"bandwidth   {format_si(machine.bandwidth, 'B/s')}   {machine.sources['bandwidth']}")
    print(f"fp32 peak   {format_si(machine.peak('fp32'), 'FLOP/s')}   {machine.sources['peaks']}")
    print(f"ridge       {significant(ridge_point(machine, 'fp32'))} FLOP/byte")
    if args.save:
        save(machine, args.save)
        print(f"saved to {args.save}")


def _record(path, thread_count):
    import inferlab
    from inferlab.machine import timings
    from inferlab.runtime import load

    path = path or Path(inferlab.__file__).parent / "data" / timings.FILE
    timings.stored(path)  # another kind of file is refused now, and not after minutes of timing
    counts = (1, 2) if thread_count is None else (thread_count,)
    print(f"This takes minutes, and writes {path} at its end", flush=True)
    model = load()
    records = []
    for count in counts:
        print(f"threads: {count}", flush=True)
        one = timings.record_now(model, count, note=lambda text: print(f"{text} ...", flush=True))
        _show(one, model.architecture)
        records.append(one)
    # One of another machine makes way for both together: chapters show both.
    for one in records:
        timings.write(one, path)
    print(f"written to {path}")


def _show(record, architecture):
    print(f"\n{record.accelerator.name}")
    for phase, key in (("prefill", "tokens"), ("decode", "cached")):
        print(f"{phase:8} {key:>8}  {'measured':>10}  {'predicted':>10}  ratio")
        for row in record.beside_prediction(architecture, phase):
            measured, predicted = (format_duration(row[k]) for k in ("seconds", "predicted"))
            print(f"{'':8} {row[key]:8}  {measured:>10}  {predicted:>10}  {row['ratio']:5.2f}")
