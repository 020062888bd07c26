"""The ledger's live values are those that were worked out without the library."""

import csv
from pathlib import Path

import pytest

from inferlab.claims import UNITS, claim, claims, table
from inferlab.quantities import InputError

DATA = Path(__file__).parents[1] / "data"
ROWS = {row["id"]: row for row in csv.DictReader((DATA / "claims.csv").open())}
COMPUTED = [id for id, row in ROWS.items() if row["computed"]]
SETTLED_OTHERWISE = {"radix-for-decode", "section-2-3"}


def test_the_ledger_holds_every_row():
    ledger = claims()
    assert [each.id for each in ledger] == list(ROWS)
    for each in ledger:
        row = ROWS[each.id]
        assert (each.stated, each.unit, each.verdict) == (
            row["stated"],
            row["unit"],
            row["verdict"],
        )
        assert each.unit in UNITS
    assert {each.id for each in ledger if each.value is None} == SETTLED_OTHERWISE


@pytest.mark.parametrize("id", COMPUTED)
def test_a_live_value_is_what_was_computed_without_the_library(id):
    # The file has six significant digits.
    assert claim(id).value == pytest.approx(float(ROWS[id]["computed"]), rel=5e-6)


def test_delay_alone_does_not_lengthen_the_queue():
    # The same requests at the same rate, only later: nothing that could make a queue longer.
    assert 0 < claim("network-amplifies-queueing").value <= 1


def test_every_row_has_a_verdict():
    assert all(each.verdict for each in claims())


def test_the_table_shows_statement_value_and_verdict():
    shown = repr(table())
    assert "43.4 TFLOP" in shown and "43.373 TFLOP" in shown
    assert "holds for one 3000-token sequence" in shown


def test_an_unknown_claim_is_refused():
    with pytest.raises(InputError, match="unknown claim 'nothing'"):
        claim("nothing")
