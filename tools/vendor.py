"""Fetch the third-party files that the site and its tests use, and verify them.

    python tools/vendor.py           fetch every package again (needs npm), write its files
    python tools/vendor.py --check   compare the committed files with their packages' hashes

The site loads nothing from another host, so these files are committed. Each package is pinned to a
version and to the integrity hash that the npm registry gives for it; each file that was taken from
it is listed with its own hash in tools/vendored.json, which is what --check reads, offline.
"""

import argparse
import base64
import hashlib
import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "tools" / "vendored.json"

# Kept under book/_static/vendor and not under a top-level _static, whose scripts jupyter-book
# would load on every page. A key that ends in "/" stands for all files below it.
PACKAGES = [
    {
        "package": "mathjax@3.2.2",
        "licence": "Apache-2.0",
        "integrity": "sha512-Bt+SSVU8eBG27zChVewOicYs7Xsdt40qm4+UpHyX7k0/O9NliPc+x77k1/FEsPsj"
        "KPZGJvtRZM1vO+geW0OhGw==",
        "files": {
            "LICENSE": "book/_static/vendor/mathjax/LICENSE",
            "es5/tex-chtml-full.js": "book/_static/vendor/mathjax/tex-chtml-full.js",
            "es5/output/chtml/fonts/woff-v2/": (
                "book/_static/vendor/mathjax/output/chtml/fonts/woff-v2/"
            ),
        },
    },
    {
        "package": "axe-core@4.14.1",
        "licence": "MPL-2.0",
        "integrity": "sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASy"
        "FNNtuFooJpZe37OgudVGtQ==",
        "files": {
            "LICENSE": "tests/site/vendor/axe-core/LICENSE",
            "axe.min.js": "tests/site/vendor/axe-core/axe.min.js",
        },
    },
]


def sha256(data):
    """The SHA-256 of some bytes, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def download(package, integrity):
    """Return {path inside the package: bytes}; refuse a tarball with another hash."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", "--silent", "--pack-destination", folder, package]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        (tarball,) = Path(folder).glob("*.tgz")
        digest = hashlib.sha512(tarball.read_bytes()).digest()
        if "sha512-" + base64.b64encode(digest).decode() != integrity:
            raise SystemExit(f"{package}: the tarball does not match the pinned integrity hash.")
        with tarfile.open(tarball) as archive:
            return {
                member.name.removeprefix("package/"): archive.extractfile(member).read()
                for member in archive.getmembers()
                if member.isfile()
            }


def chosen(files, wanted):
    """Yield (target path, bytes) for each wanted file or folder of a package."""
    for source, target in wanted.items():
        if not source.endswith("/"):
            yield target, files[source]
            continue
        for name in sorted(files):
            if name.startswith(source):
                yield target + name.removeprefix(source), files[name]


def fetch():
    """Fetch every package, write its files, and record their hashes."""
    record = {}
    for package in PACKAGES:
        files = download(package["package"], package["integrity"])
        entry = {"licence": package["licence"], "integrity": package["integrity"], "files": {}}
        for target, data in chosen(files, package["files"]):
            path = ROOT / target
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            entry["files"][target] = sha256(data)
        record[package["package"]] = entry
        print(f"{package['package']}: {len(entry['files'])} files")
    RECORD.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def problems():
    """Yield a sentence for each vendored file that is missing or differs from its package."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    expected = {package["package"]: package["integrity"] for package in PACKAGES}
    recorded = {name: entry["integrity"] for name, entry in record.items()}
    if expected != recorded:
        yield "tools/vendored.json lists other packages than tools/vendor.py: run make vendor."
    for name, entry in record.items():
        for target, digest in entry["files"].items():
            path = ROOT / target
            if not path.exists():
                yield f"{target} (from {name}) is missing: run make vendor."
            elif sha256(path.read_bytes()) != digest:
                yield f"{target} differs from the file in {name}: run make vendor."


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare, fetch nothing")
    if not parser.parse_args().check:
        fetch()
    found = list(problems())
    for problem in found:
        print(problem, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
