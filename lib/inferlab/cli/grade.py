"""`inferlab grade`: grade the notebooks of a class."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

from inferlab.quantities import InputError, short

MOST_WORKERS = 256  # more processes than any machine has cores only hinder each other


def add_parser(subparsers) -> None:
    """Add this command to the command line."""
    parser = subparsers.add_parser(
        "grade",
        help="grade the notebooks of a class",
        description="Grade notebooks, folders of them or archives that a learning platform hands over."
        " Run again, it grades only what is new or changed and renews the results, with the points"
        " that a person gave in between. exercises/README.md has the whole way from release to"
        " feedback.",
    )
    parser.add_argument("submissions", nargs="+", type=Path, metavar="SUBMISSIONS")
    parser.add_argument(
        "--course", type=Path, default=Path("grading"), help="folder for all results (grading)"
    )
    parser.add_argument("--exercise", help="the exercise, for files that do not say (3-roofline)")
    parser.add_argument(
        "--exercises", type=Path, help="folder of the sources (that of this course)"
    )
    parser.add_argument(
        "--match", metavar="REGEX", help="finds (?P<student>...) in the path of a file"
    )
    parser.add_argument("--workers", type=int, default=2, help="processes on this machine (2)")
    parser.add_argument(
        "--scheduler", metavar="tls://...", help="a Dask cluster that runs the notebooks"
    )
    for name in ("ca", "cert", "key"):
        parser.add_argument(f"--tls-{name}", metavar="FILE", help="for --scheduler")
    parser.add_argument(
        "--gradebook",
        metavar="URL",
        help="sqlite:///... or postgresql://... (in the course's folder)",
    )
    parser.add_argument(
        "--due", type=_time, metavar="TIME", help="with its zone: 2026-12-01T23:59+01:00, or ...Z"
    )
    parser.add_argument(
        "--late",
        type=float,
        default=0,
        metavar="PERCENT",
        help="lost for each day begun after it (0)",
    )
    parser.add_argument("--cell-seconds", type=float, default=60, help="time limit of a cell (60)")
    parser.add_argument(
        "--notebook-seconds", type=float, default=300, help="time limit of a notebook (300)"
    )
    parser.add_argument("--regrade", action="store_true", help="grade unchanged submissions again")
    parser.add_argument(
        "--unsafe-no-sandbox",
        action="store_true",
        help="run the notebooks with all your rights; only for notebooks that you trust",
    )
    parser.add_argument("--quiet", action="store_true", help="no word on the progress")
    parser.set_defaults(run=run)


def _time(text: str) -> datetime:
    import argparse

    try:
        time = datetime.fromisoformat(text)
        if time.tzinfo is None:  # the grader's machine may be in another zone than the class
            raise argparse.ArgumentTypeError(
                f"{short(text)} does not say its zone: expected one such as 2026-12-01T23:59+01:00, or a"
                " Z at the end for UTC"
            )
        # As nbgrader keeps them: UTC without saying so.
        return time.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"{short(text)} is no time: expected one such as 2026-12-01T23:59+01:00"
        ) from None


def run(args) -> int:
    """Grade, and say where the results are. 1 when something could not be graded."""
    certificates = (args.tls_ca, args.tls_cert, args.tls_key)
    if any(certificates) and args.scheduler is None:
        raise InputError("--tls-ca, --tls-cert and --tls-key are for --scheduler: give it too")
    if not 1 <= args.workers <= MOST_WORKERS:
        raise InputError(
            f"--workers is {args.workers}: expected 1 to {MOST_WORKERS}, one for each core"
            " (--scheduler uses those of other machines)"
        )
    if not all(0 < seconds <= 86_400 for seconds in (args.cell_seconds, args.notebook_seconds)):
        raise InputError("a time limit is not above zero and up to a day: expected seconds, as 60")
    if not 0 <= args.late <= 100:
        raise InputError(f"--late is {args.late}: expected a percentage from 0 to 100")
    if not args.quiet:
        # What follows loads for many seconds on a busy machine.
        print("Reading the submissions ...", file=sys.stderr, flush=True)
    from inferlab.grading.grade import Options, grade
    from inferlab.grading.release import exercises_folder
    from inferlab.grading.sandbox import Limits

    summary = grade(
        Options(
            submissions=args.submissions,
            exercises=args.exercises or exercises_folder(),
            course=args.course,
            exercise=args.exercise,
            gradebook=args.gradebook,
            match=args.match,
            workers=args.workers,
            scheduler=args.scheduler,
            certificates=certificates if all(certificates) else None,
            due=args.due,
            late_percent=args.late,
            limits=Limits(cell_s=args.cell_seconds, total_s=args.notebook_seconds),
            safe=not args.unsafe_no_sandbox,
            regrade=args.regrade,
            quiet=args.quiet,
        )
    )
    print(_counts(summary))
    if args.due and summary.untimed:
        print(
            f"late       {summary.untimed} of {summary.found} do not say when they were handed in"
            " (timestamp.txt) and count as in time"
        )
    for line in summary.failed:
        print(f"  {line}", file=sys.stderr)
    results = args.course / "results"
    print(f"scores     {results / 'submissions.csv'}, {results / 'questions.csv'}")
    print(f"summary    {results / 'summary.html'}")
    print(f"feedback   {args.course / 'feedback'}")
    print(f"by hand    cd {args.course} && jupyter lab, then Nbgrader > Formgrader")
    return 1 if summary.failed else 0


def _counts(summary) -> str:
    """What became of the files, so that they add up."""
    files = f"{summary.found} file{'s' if summary.found > 1 else ''}"
    if summary.graded or summary.failed:
        run = summary.graded - summary.unreadable
        unread = f" ({run} run, {summary.unreadable} could not be read)"
        told = (
            f"{files}: {summary.graded} graded{unread if summary.unreadable else ''},"
            f" {summary.unchanged} unchanged, {len(summary.failed)} not graded"
        )
    else:
        told = f"{files}, nothing new: {summary.unchanged} unchanged"
    if summary.set_aside:
        told += f", {summary.set_aside} set aside for another by the same learner"
    return told
