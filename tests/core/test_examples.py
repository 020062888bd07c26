"""The examples in the library's docstrings are run."""

import doctest
import importlib
from pathlib import Path

import pytest

import inferlab

LIBRARY = Path(inferlab.__file__).parent

WITH_EXAMPLES = [
    ".".join(("inferlab", *path.relative_to(LIBRARY).with_suffix("").parts))
    for path in sorted(LIBRARY.rglob("*.py"))
    if ">>> " in path.read_text("utf-8")
]


@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_the_examples_of_a_module_hold(module):
    result = doctest.testmod(importlib.import_module(module))
    assert result.attempted > 0
    assert result.failed == 0
