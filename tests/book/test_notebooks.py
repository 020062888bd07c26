"""Every notebook of the book has the committed shape; the checker refuses each named fault."""

from pathlib import Path

import pytest

import notebooks

FAULTS = Path(__file__).parent / "fixtures" / "check"

# What the checker must say about the fixture of that name.
EXPECTED = {
    "committed-output": "it is not normalised",
    "empty-cell": "the cell is empty",
    "figure-without-alt": "the figure needs mystnb.image.alt",
    "figure-without-caption": "the figure needs mystnb.figure.caption",
    "figure-without-name": "the figure needs mystnb.figure.name",
    "image-without-alt": "the image needs a sentence as alternative text",
    "no-layer-tag": "it carries none",
    "random-cell-id": "cannot be read",
    "repeated-cell-id": "occurs twice",
    "stray-metadata": "it is not normalised",
    "two-layer-tags": "it carries local and numeric",
    "unknown-tag": "unknown tag grade-this",
}


@pytest.mark.parametrize("path", notebooks.book_notebooks(), ids=lambda path: path.stem)
def test_a_chapter_is_in_order(path, capsys):
    wrong = notebooks.report(path, check_only=True)
    assert wrong == 0, capsys.readouterr().err


def test_every_fault_has_its_fixture():
    assert {path.stem for path in FAULTS.glob("*.ipynb")} == set(EXPECTED)


@pytest.mark.parametrize("fault", sorted(EXPECTED))
def test_a_fault_is_refused_for_its_own_reason(fault, capsys):
    path = FAULTS / f"{fault}.ipynb"
    before = path.read_bytes()
    assert notebooks.main(["--check", str(path)]) == 1
    complaints = capsys.readouterr().err.strip().splitlines()
    assert len(complaints) == 1, complaints
    assert EXPECTED[fault] in complaints[0]
    assert path.read_bytes() == before, "checking must not change the file"


def test_normalising_drops_outputs_and_keeps_the_rest(tmp_path):
    path = tmp_path / "chapter.ipynb"
    path.write_bytes((FAULTS / "committed-output.ipynb").read_bytes())
    assert notebooks.main([str(path)]) == 0
    assert notebooks.main(["--check", str(path)]) == 0
    cell = notebooks.read(path).cells[-1]
    assert (cell.outputs, cell.execution_count) == ([], None)
    assert cell.source == "print(1 + 1)"


def test_glued_text_is_written_as_an_expression_that_jupyterlab_can_show():
    text = "# Title\n\nIt takes {glue:text}`prefill-total` of work."
    notebook = notebooks.from_markdown(text)
    assert notebook.cells[0].source.endswith('{eval}`number["prefill-total"]` of work.')


def test_text_and_notebook_round_trip_with_their_cell_ids():
    text = (
        "# The cost of a prompt\n\nA question.\n\n"
        '+++ {"id": "a-guess"}\n\nGuess first.\n\n'
        "```{code-cell} ipython3\n:tags: [numeric]\n\ntotal = 6 * 7\n```\n"
    )
    notebook = notebooks.from_markdown(text)
    ids = [cell.id for cell in notebook.cells]
    assert ids == ["the-cost-of-prompt", "a-guess", "total"]
    again = notebooks.from_markdown(notebooks.to_markdown(notebook))
    assert notebooks.as_text(again) == notebooks.as_text(notebook)


def test_an_edited_text_keeps_the_ids_of_the_notebook_it_continues():
    code = "```{code-cell} ipython3\n:tags: [numeric]\n\nx = %s\n```\n"
    first = notebooks.from_markdown("# Title here\n\n" + code % "1")
    first.cells[1].id = "the-chosen-name"
    edited = "# Title here\n\n" + code % "2" + "\n" + code % "3"
    ids = [cell.id for cell in notebooks.from_markdown(edited, existing=first).cells]
    assert ids[:2] == ["title-here", "the-chosen-name"]
    assert len(set(ids)) == 3
