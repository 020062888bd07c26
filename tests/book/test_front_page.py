"""The recorded run on the front page is what its code prints."""

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "book" / "index.md"


def block(language):
    """The first fenced block of that language."""
    text = PAGE.read_text(encoding="utf-8")
    return re.search(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE).group(1)


def test_the_loop_prints_the_recorded_run():
    done = subprocess.run([sys.executable, "-c", block("python")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == block("text").strip()


def test_the_loop_has_at_most_ten_lines():
    assert len(block("python").splitlines()) <= 10
