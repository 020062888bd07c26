"""Build the site into _build/html, strictly: every warning is an error, every notebook runs.

    python tools/build.py                        build what changed
    python tools/build.py --clean                build everything from nothing
    python tools/build.py --clean --numbers      and rewrite numbers.json from that build
    python tools/build.py --chapter 06-prefill   one chapter alone, into _build/chapter

The plain command is `jupyter-book build . -W -n --keep-going`. This script adds what a person would
otherwise do by hand: it starts over when the library changed (Sphinx only sees changed pages),
prints the traceback of a failing cell, which jupyter-book writes to a file, leaves out a warning of
each kernel that is about the network, and collects the numbers that the chapters quote.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from inferlab.numbers import RECORD, read_record

ROOT = Path(__file__).resolve().parent.parent
NUMBERS = "numbers.json"
REFERENCES = "book/references"

# A change in any of these can change every page.
SHARED_INPUTS = ("_config.yml", "_toc.yml", "requirements.lock", "lib", "book/_ext", "book/_static")

# Every kernel says so on its start, and here all of them talk to this machine alone.
HARMLESS = "Kernel is running over TCP without encryption"


def shared_state(source):
    """Hash the files that the pages share, to know when an incremental build would be stale."""
    digest = hashlib.sha256()
    for name in SHARED_INPUTS:
        path = source / name
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and "__pycache__" not in file.parts:
                digest.update(str(file.relative_to(source)).encode() + file.read_bytes())
    return digest.hexdigest()


def run_jupyter_book(source, output, numbers, arguments):
    """Run jupyter-book on `source`; return its exit status."""
    numbers.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {
        "INFERLAB_NUMBERS": str(numbers),
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        # Two builds of one commit give the same files.
        "SOURCE_DATE_EPOCH": "1767225600",
        "PYTHONHASHSEED": "0",
        # The pages time nothing, and on a busy machine BLAS threads mostly wait for each other.
        "OPENBLAS_NUM_THREADS": "1",
    }
    jupyter_book = Path(sys.executable).with_name("jupyter-book")
    command = [jupyter_book, "build", source, "--path-output", output, *arguments]
    with subprocess.Popen(
        command, env=environment, cwd=source, stderr=subprocess.PIPE, encoding="utf-8"
    ) as process:
        for line in process.stderr:
            if HARMLESS not in line:
                print(line, end="", file=sys.stderr, flush=True)
    return process.returncode


def print_failures(html):
    """Print the traceback of each notebook that failed."""
    for log in sorted(html.glob("reports/**/*.err.log")):
        page = log.relative_to(html / "reports").with_suffix("").with_suffix("")
        print(f"\n--- {page} failed ---\n{log.read_text(encoding='utf-8')}", file=sys.stderr)


def write_numbers(folder, target):
    """Write the recorded numbers as {key: text}, one a line, so that a change shows in review."""
    text = json.dumps(read_record(folder), indent=2, ensure_ascii=False) + "\n"
    target.write_text(text, encoding="utf-8")


def build_site(source=ROOT, output=None, clean=False):
    """Build the whole site; return jupyter-book's exit status."""
    output = output or source
    build = output / "_build"
    stamp = build / ".shared_state"
    state = shared_state(source)
    if clean or not stamp.exists() or stamp.read_text() != state:
        clean = True
        for folder in ("html", ".doctrees", ".jupyter_cache", "jupyter_execute", "numbers"):
            shutil.rmtree(build / folder, ignore_errors=True)
    shutil.rmtree(build / "html" / "reports", ignore_errors=True)
    numbers = build / "numbers"
    status = run_jupyter_book(source, output, numbers, ["-W", "-n", "--keep-going"])
    print_failures(build / "html")
    if status != 0:
        stamp.unlink(missing_ok=True)
    elif clean:
        stamp.write_text(state)
        write_numbers(numbers, build / NUMBERS)
    return status


def build_chapter(name):
    """Build one chapter and the references; links to other chapters warn, a failing cell is an error."""
    page = Path("book") / name
    if not any((ROOT / page).with_suffix(suffix).exists() for suffix in (".ipynb", ".md")):
        known = ", ".join(sorted(path.stem for path in (ROOT / "book").glob("*.ipynb")))
        raise SystemExit(f"There is no chapter {name!r} in book/: NAME is one of {known}.")
    output = ROOT / "_build" / "chapter" / name
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    toc = output / "_toc.yml"
    toc.write_text(
        f"format: jb-book\nroot: {page.as_posix()}\nchapters:\n- file: {REFERENCES}\n",
        encoding="utf-8",
    )
    run_jupyter_book(ROOT, output, output / "numbers", ["--toc", str(toc)])
    html = output / "_build" / "html"
    print_failures(html)
    if list(html.glob("reports/**/*.err.log")):
        return 1
    print("\nAn unknown document or label may be of a chapter left out: `make book` has them all.")
    print(f"Open {(html / page).with_suffix('.html').as_uri()}")
    if (output / "numbers" / RECORD).exists():
        write_numbers(output / "numbers", output / NUMBERS)
        print(f"Its numbers: {(output / NUMBERS).relative_to(ROOT)}")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clean", action="store_true", help="start from nothing")
    parser.add_argument("--numbers", action="store_true", help=f"rewrite {NUMBERS}; needs --clean")
    parser.add_argument("--chapter", metavar="NAME", help="build this chapter alone")
    options = parser.parse_args()
    if options.numbers and not options.clean:
        parser.error("--numbers needs --clean: only a full build meets every number.")
    if options.chapter is not None:
        return build_chapter(options.chapter.removeprefix("book/").removesuffix(".ipynb"))
    status = build_site(clean=options.clean)
    if status == 0:
        if options.numbers:
            shutil.copyfile(ROOT / "_build" / NUMBERS, ROOT / NUMBERS)
        page = ROOT / "_build" / "html" / "index.html"
        print(f"\nOpen {page.as_uri()}\nor run `make serve`.")
    return status


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("Stopped: the next build makes up for it.")
