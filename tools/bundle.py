"""Make the one script of d3 modules that the widgets draw with, from its sources.

    python tools/bundle.py           fetch the pinned packages, rewrite the script
    python tools/bundle.py --check   make it again, and say if the committed one differs

The script is lib/inferlab/widgets/static/d3.js. Its sources, in tools/bundle: d3.js (what is used),
package.json (versions) and package-lock.json (hashes of every package). esbuild takes the used parts
out of them. Needs npm and the npm registry; the result is committed, so that nobody else does. The
first line of the result holds the hash of the sources: a test compares it, and where npm is at hand
a test makes the result again.
"""

import argparse
import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "tools" / "bundle"
BUNDLE = ROOT / "lib" / "inferlab" / "widgets" / "static" / "d3.js"
FILES = ("d3.js", "package.json", "package-lock.json")
LICENCE = (
    "d3-array, d3-color, d3-format, d3-interpolate, d3-path, d3-scale, d3-shape: Mike Bostock, ISC"
)


def source_hash() -> str:
    """One hash over the files that decide what the bundle holds."""
    digest = hashlib.sha256()
    for name in FILES:
        digest.update(name.encode() + b"\0" + (SOURCES / name).read_bytes() + b"\0")
    return digest.hexdigest()


def build() -> str:
    """The bundle's text, made in a temporary folder from the pinned packages."""
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit(
            "npm is not installed: the bundle can only be remade where it is (Node 18+)"
        )
    with tempfile.TemporaryDirectory() as folder:
        for name in FILES:
            shutil.copy(SOURCES / name, folder)
        subprocess.run([npm, "ci", "--silent", "--no-audit", "--no-fund"], cwd=folder, check=True)
        made = subprocess.run(
            ["node_modules/.bin/esbuild", "d3.js", "--bundle", "--minify", "--format=iife",
             "--global-name=d3", "--target=es2020"],
            cwd=folder, check=True, capture_output=True, text=True,
        )  # fmt: skip
    return f"/* sources {source_hash()} | {LICENCE} */\n{made.stdout}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare, do not write")
    options = parser.parse_args()
    made = build()
    if not options.check:
        BUNDLE.write_text(made, "utf-8")
        print(f"{BUNDLE.relative_to(ROOT)}: {len(made):,} bytes")
        return 0
    if made == BUNDLE.read_text("utf-8"):
        print("the committed bundle is what its sources make")
        return 0
    print(
        "the committed bundle differs from its sources: run python tools/bundle.py", file=sys.stderr
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
