"""Literals from outside the library, in tests/independent.csv, and how results are held to them.

One formula serves derivations, prose, widgets and exercises, so one mistake would be wrong in all
of them alike. Each row here is a value that somebody worked out without the library: the followed
text (claims.csv), the oracle, a datasheet, a sum by hand.

    id         words joined by hyphens; a test names it: independent("prefill-flop").check(x)
    what       the quantity in words
    value      in `unit`, a plain decimal
    unit       a base unit: FLOP, B, s, FLOP/B, FLOP/s, B/s, USD, token, 1 ...
    tolerance  relative; 0 means equal
    source     where the value comes from
    number     (may be empty) the key of the number in the prose that prints this value; the tests
               of the book compare it, to the digits that are printed
"""

import csv
import math
import re
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).with_name("independent.csv")

PREFIXES = {
    "n": 1e-9,
    "µ": 1e-6,
    "m": 1e-3,
    "": 1,
    "k": 1e3,
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
    "P": 1e15,
    "E": 1e18,
    "Z": 1e21,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
}
PRINTED = re.compile(r"(?P<digits>-?[\d,]+(?:\.(?P<decimals>\d+))?)(?:e(?P<power>[+-]?\d+))?")


@dataclass(frozen=True)
class Row:
    id: str
    what: str
    value: float
    unit: str
    tolerance: float
    source: str
    number: str

    def agrees(self, result):
        """Whether `result`, in the row's unit, is the row's value within its tolerance."""
        return math.isclose(float(result), self.value, rel_tol=self.tolerance, abs_tol=0)

    def check(self, result):
        """Fail, naming the row and its source, where `result` does not agree."""
        assert self.agrees(result), (
            f"{self.what} ({self.id}): {float(result):.12g} {self.unit}, but {self.source} "
            f"gives {self.value:.12g} {self.unit}"
        )

    def check_printed(self, text):
        """Fail where a printed number like "43.4 TFLOP" is not the value to its last digit."""
        shown, half_digit = parse_printed(text, self.unit)
        error = abs(shown - self.value)
        assert error <= half_digit * 1.001 + self.tolerance * abs(self.value), (
            f'{self.what} ({self.id}): the prose says "{text}", but {self.source} gives '
            f"{self.value:.12g} {self.unit}"
        )


def parse_printed(text, unit):
    """Return the value of a printed number in the base `unit`, and half its last digit."""
    match = PRINTED.match(text)
    if not match:
        raise ValueError(f"{text!r} does not begin with a number")
    printed_unit = re.sub(r"bytes?$", "B", text[match.end() :].strip())
    scale = 10.0 ** int(match["power"] or 0)
    if printed_unit == "%" and unit == "1":
        scale /= 100
    elif printed_unit:
        prefixes = [p for p in PREFIXES if p + unit == printed_unit]
        if not prefixes:
            raise ValueError(f"{text!r} is not in {unit} or a multiple of it")
        scale *= PREFIXES[prefixes[0]]
    value = float(match["digits"].replace(",", "")) * scale
    return value, 0.5 * 10.0 ** -len(match["decimals"] or "") * scale


def load_rows(file=FILE):
    """Return all rows of the file, in its order."""
    with open(file, encoding="utf-8", newline="") as lines:
        texts = [
            {key: (text or "").strip() for key, text in row.items()}
            for row in csv.DictReader(lines)
        ]
    rows = [
        Row(**{**row, "value": float(row["value"]), "tolerance": float(row["tolerance"])})
        for row in texts
    ]
    if len({row.id for row in rows}) != len(rows):
        raise ValueError(f"{file} has an id twice")
    return rows


def load_independent(file=FILE):
    """Return a lookup from id to Row; it raises KeyError for an id that is not in the file."""
    return {row.id: row for row in load_rows(file)}.__getitem__
