"""The committed d3 script is what its pinned sources make."""

import json
import re

import pytest

import bundle


def test_made_from_the_sources_beside_it():
    first = bundle.BUNDLE.read_text("utf-8").splitlines()[0]
    assert re.search(r"sources ([0-9a-f]{64})", first)[1] == bundle.source_hash(), (
        "the sources changed: run python tools/bundle.py"
    )


def test_every_version_is_pinned_and_hashed():
    wanted = json.loads((bundle.SOURCES / "package.json").read_text("utf-8"))
    versions = {**wanted["dependencies"], **wanted["devDependencies"]}
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in versions.values())
    lock = json.loads((bundle.SOURCES / "package-lock.json").read_text("utf-8"))["packages"]
    assert all("integrity" in entry for name, entry in lock.items() if name)
    for name, version in versions.items():
        assert lock[f"node_modules/{name}"]["version"] == version


@pytest.mark.needs("npm")
def test_making_it_again_gives_the_same_bytes():
    assert bundle.build() == bundle.BUNDLE.read_text("utf-8")
