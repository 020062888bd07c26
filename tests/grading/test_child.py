"""A process that is asked: one that is lost is replaced once."""

import pytest

from inferlab.grading import child


class Dying:
    """A process that ends at its first questions."""

    deaths, started, closed = 0, 0, False

    def __init__(self, module):
        Dying.started += 1

    def ask(self, question):
        if Dying.deaths:
            Dying.deaths -= 1
            raise RuntimeError("it ended")
        return question

    def close(self):
        pass


@pytest.fixture
def dying(monkeypatch):
    monkeypatch.setattr(child, "Child", Dying)
    monkeypatch.setattr(child, "_mine", type("Mine", (), {})())
    monkeypatch.setattr(child, "_open", set())
    monkeypatch.setattr(Dying, "started", 0)
    return monkeypatch


def test_one_that_is_lost_is_replaced_once(dying):
    dying.setattr(Dying, "deaths", 1)
    assert child.ask("module", {"a": 1}) == {"a": 1}
    assert Dying.started == 2
    dying.setattr(Dying, "deaths", 2)
    with pytest.raises(RuntimeError, match="it ended"):
        child.ask("module", {})
    assert Dying.started == 3 and not child._open


def test_one_that_was_closed_is_not_replaced(dying):
    dying.setattr(Dying, "deaths", 1)
    dying.setattr(Dying, "closed", True)
    with pytest.raises(RuntimeError, match="it ended"):
        child.ask("module", {})
    assert Dying.started == 1
