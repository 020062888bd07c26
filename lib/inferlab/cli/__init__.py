"""The command line: `inferlab COMMAND`. Input that cannot be used is said in one sentence on stderr,
with exit code 2."""

import sys


def main(arguments: list[str] | None = None) -> int:
    """Run a command and return its exit code."""
    # All else is loaded in here, so that an interrupt while it loads ends quietly too.
    try:
        from inferlab.cli import commands

        return commands.run(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:
        return 130
