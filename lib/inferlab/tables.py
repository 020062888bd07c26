"""Tables that a chapter shows: a caption, named columns, numbers aligned right."""

from __future__ import annotations

from html import escape

from inferlab.quantities import InputError


class Table:
    """A table that a notebook shows as HTML and a terminal as text.

    columns: for each column its heading and how its values are written: a format spec ("", ",d",
    ".1f", "+.0%") or a function from the value to text. rows: one sequence of values a row; None
    leaves a cell empty. caption: the point of the table, in a sentence.

    Raises InputError for a row that does not fit the columns.

    >>> print(Table({"model": "", "GB": ".1f"}, [("LLaMA-7B", 13.4768)]))
    model     GB
    LLaMA-7B  13.5
    """

    def __init__(self, columns: dict, rows, caption: str = ""):
        self.columns, self.caption = columns, caption
        self.rows = [tuple(row) for row in rows]
        for row in self.rows:
            if len(row) != len(columns):
                raise InputError(
                    f"the row {row} has {len(row)} values: expected {len(columns)}, one for each of"
                    f" {', '.join(columns)}"
                )

    def _texts(self, row) -> list[str]:
        texts = []
        for value, spec in zip(row, self.columns.values(), strict=True):
            if value is None:
                texts.append("")
            else:
                texts.append(spec(value) if callable(spec) else format(value, spec))
        return texts

    def _is_text(self, column: int) -> bool:
        return all(isinstance(row[column], str | None) for row in self.rows)

    def _repr_html_(self) -> str:
        sides = ["left" if self._is_text(i) else "right" for i in range(len(self.columns))]

        def cells(tag, texts, scope=""):
            return "".join(
                f'<{tag}{scope} style="text-align:{side}">{escape(text)}</{tag}>'
                for text, side in zip(texts, sides, strict=True)
            )

        caption = f"<caption>{escape(self.caption)}</caption>" if self.caption else ""
        head = cells("th", self.columns, ' scope="col"')
        body = "".join(f"<tr>{cells('td', self._texts(row))}</tr>" for row in self.rows)
        return (
            '<div class="table-scroll" role="region" tabindex="0"'
            f' aria-label="{escape(self.caption or "Table", quote=True)}">'
            f'<table class="table">{caption}<thead><tr>{head}</tr></thead>'
            f"<tbody>{body}</tbody></table></div>"
        )

    def __repr__(self) -> str:
        lines = [list(self.columns), *map(self._texts, self.rows)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.columns))]
        return "\n".join(
            "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        )
