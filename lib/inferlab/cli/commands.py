"""Finding and running a command: one module a command, loaded only when it is asked for.

The module of a command has `add_parser(subparsers)`, which sets `run`, and `run(args) -> int`.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import warnings

from inferlab import presets
from inferlab.quantities import InputError

COMMANDS = {
    "count": "parameters, FLOPs, bytes and KV cache of a model and a step of it",
    "ridge": "an accelerator's ridge point, from its dense peak and its bandwidth",
    "list": "the models and accelerators that are known by name",
    "estimate": "time, memory and throughput of a model on accelerators",
    "fit": "fit the estimate's efficiencies to measurements",
    "generate": "continue a prompt with a small real model",
    "measure": "this machine's own bandwidth and peak",
    "grade": "grade the notebooks of a class",
}
"""Each command with what it shows."""

EXTRAS = {"generate": "local", "measure": "local", "grade": "grading"}
"""The extra of the package that a command needs, for those that need one."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, allow_abbrev=False, **kwargs)

    def error(self, message):
        self.exit(2, f"{self.prog}: {message}; see `{self.prog} --help`\n")


def run(arguments: list[str]) -> int:
    """Run a command and return its exit code: 0, 2 for input that cannot be used."""
    if sys.stdout is None:
        print("inferlab: standard output is closed: there is nowhere to print", file=sys.stderr)
        return 2
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character shows a question mark instead of a traceback.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    warnings.showwarning = lambda message, *_, **__: print(f"note: {message}", file=sys.stderr)
    command = arguments[0] if arguments and arguments[0] in COMMANDS else None
    try:
        try:
            args = _parser(command).parse_args(arguments)
            if getattr(args, "presets", None):
                os.environ[presets.VARIABLE] = args.presets
            return args.run(args)
        finally:
            sys.stdout.flush()
    except InputError as error:
        print(f"inferlab: {error}", file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        return _missing(command, error)
    except BrokenPipeError:
        # Whoever read our output has seen enough: leave without a word.
        _drop_output()
        return 141
    except OSError as error:
        _drop_output()
        print(f"inferlab: {error.strerror or error}: nothing more was done", file=sys.stderr)
        return 2


def _drop_output():
    """Spare the interpreter a second error when it flushes stdout on exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser(command: str | None) -> Parser:
    """The parser of one command, or of `inferlab` itself, which lists them all."""
    parser = Parser(
        prog="inferlab",
        description="Count, derive, run and predict LLM inference.",
        epilog="`inferlab COMMAND --help` says more. Your own models and accelerators go into one"
        f" TOML file: see `inferlab list --help`; name it by --presets or {presets.VARIABLE}.",
    )
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    if command is None:
        for name, shown in COMMANDS.items():
            subparsers.add_parser(name, help=shown)
        return parser
    module = importlib.import_module(f"inferlab.cli.{command}")
    module.add_parser(subparsers)
    if command != "grade":
        subparsers.choices[command].add_argument(
            "--presets", metavar="FILE", help="a TOML file with your own models and accelerators"
        )
    return parser


def _missing(command: str | None, error: ModuleNotFoundError) -> int:
    """Say which extra brings the package that a command lacks."""
    name = (error.name or "").partition(".")[0]
    if command is None or name == "inferlab":
        print(f"inferlab: {command} is not part of this installation", file=sys.stderr)
    else:
        extra = f"[{EXTRAS[command]}]" if command in EXTRAS else ""
        print(
            f"inferlab {command} needs the package {name}: install it with"
            f" pip install 'inferlab{extra}'",
            file=sys.stderr,
        )
    return 2
