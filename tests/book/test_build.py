"""A page with a fault must fail the build, for the reason that its fixture is named after."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
FAULTS = Path(__file__).parent / "fixtures" / "build"

# What the log of the failed build must say about the fixture of that name.
EXPECTED = {
    "evaluated-expression": r'only number\["key"\] can be shown',
    "failing-cell": r"AssertionError: 2 \+ 2 is not 5",
    "heading-jump": r"Non-consecutive header level",
    "number-formatted-twice": r'"twice-used" already reads "1"',
    "number-without-cell": r'no cell of this page computes number\("never-computed"',
    "repeated-label": r"[Dd]uplicate",
    "unknown-citation": r"could not find bibtex key \"?nobody2026\"?",
    "unknown-document": r"unknown document: 'no-such-chapter'",
    "unknown-figure": r"undefined label: '?fig-nowhere'?|target not found: '?fig-nowhere'?",
    "unknown-role": r"Unknown interpreted text role \"nonsense\"",
}


def build(folder, page):
    """Build a book of one page with the real configuration; return (status, log)."""
    (folder / "book").mkdir()
    for name in ("_ext", "_static", "references.bib"):
        (folder / "book" / name).symlink_to(ROOT / "book" / name)
    for name in ("_config.yml", "requirements.lock", "lib"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "book" / "page.md").write_bytes(page.read_bytes())
    toc = {"format": "jb-book", "root": "book/page"}
    (folder / "_toc.yml").write_text(yaml.safe_dump(toc), encoding="utf-8")
    code = "import sys, pathlib, build; sys.exit(build.build_site(pathlib.Path(sys.argv[1])))"
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)],
        cwd=ROOT / "tools",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.returncode, re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)


def test_a_page_without_a_fault_builds(tmp_path):
    status, log = build(tmp_path, FAULTS.parent / "sound.md")
    assert status == 0, log
    page = (tmp_path / "_build" / "html" / "book" / "page.html").read_text(encoding="utf-8")
    assert '<span class="number">43.4\u00a0TFLOP</span>' in page


def test_two_builds_of_a_page_are_equal(tmp_path):
    """With a figure and a widget, whose ids and dates would differ if they were left alone."""
    pages = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        status, log = build(tmp_path / name, FAULTS.parent / "drawn.md")
        assert status == 0, log
        html = tmp_path / name / "_build" / "html"
        files = sorted(path for path in html.rglob("*") if path.is_file())
        pages.append({path.relative_to(html): path.read_bytes() for path in files})
    assert pages[0].keys() == pages[1].keys()
    assert [path for path in pages[0] if pages[0][path] != pages[1][path]] == []


def test_every_fault_has_its_fixture():
    assert {path.stem for path in FAULTS.glob("*.md")} == set(EXPECTED)


@pytest.mark.parametrize("fault", sorted(EXPECTED))
def test_a_fault_fails_the_build_for_its_own_reason(fault, tmp_path):
    status, log = build(tmp_path, FAULTS / f"{fault}.md")
    assert status != 0, f"the build accepted {fault}:\n{log}"
    assert re.search(EXPECTED[fault], log), log
