"""What a chapter's table shows."""

import pytest

from inferlab.quantities import InputError
from inferlab.tables import Table


def test_text_left_numbers_right_empty_cells_stay_empty():
    html = Table(
        {"model": "", "GB": ".1f"}, [("a<b", 13.4768), ("c", None)], "Sizes."
    )._repr_html_()
    assert '<th scope="col" style="text-align:left">model</th>' in html
    assert '<td style="text-align:right">13.5</td>' in html
    assert "a&lt;b" in html
    assert '<td style="text-align:right"></td>' in html
    assert "<caption>Sizes.</caption>" in html


def test_a_terminal_gets_columns():
    assert (
        repr(Table({"model": "", "GB": lambda x: f"{x} GB"}, [("x", 2)]))
        == "model  GB\nx      2 GB"
    )


def test_a_row_that_does_not_fit_is_refused():
    with pytest.raises(InputError, match=r"has 1 values: expected 2, one for each of a, b"):
        Table({"a": "", "b": ""}, [("x",)])
