"""What the tests of the exercises share: what the instructors keep, read once."""

from pathlib import Path

import pytest

from inferlab.grading.release import chapter_keys, exercise_names, read_source

EXERCISES = Path(__file__).resolve().parents[2] / "exercises"
NAMES = exercise_names(EXERCISES)
CHAPTERS = sorted(path.stem for path in (EXERCISES / "chapters").glob("*.py"))


def pytest_generate_tests(metafunc):
    """A test that asks for `exercise` or `key_name` runs for each of them."""
    if "exercise" in metafunc.fixturenames:
        metafunc.parametrize("exercise", NAMES)
    if "key_name" in metafunc.fixturenames:
        metafunc.parametrize("key_name", NAMES + CHAPTERS)


@pytest.fixture(scope="session")
def folder():
    return EXERCISES


@pytest.fixture(scope="session")
def sources():
    return {name: read_source(EXERCISES, name) for name in NAMES}


@pytest.fixture(scope="session")
def keys(sources):
    return {name: source.key for name, source in sources.items()} | chapter_keys(EXERCISES)
