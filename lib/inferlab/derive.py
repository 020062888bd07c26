"""Derivations: the book's symbols, and formulas shown step by step as mathematics.

The notation is fixed on the front page; the symbols here print as it says. A derivation calls the
library's own functions with these symbols in place of numbers, and ends in an assertion:

>>> from inferlab.accounting import TEXT
>>> from inferlab.derive import equal, symbols as s, text_architecture
>>> from inferlab.step import prefill, step
>>> equal(step(text_architecture(), prefill(s.N), TEXT).flops, s.L * (24*s.N*s.d**2 + 4*s.N**2*s.d))
True
"""

from __future__ import annotations

from types import SimpleNamespace

import sympy

from inferlab.architecture import Architecture
from inferlab.quantities import InputError, format_si

_NAMES = {
    "P": ("P", "parameters"),
    "D": ("D", "training tokens"),
    "N": ("N", "prompt tokens"),
    "S": ("S", "cached tokens"),
    "T": ("T", "generated tokens"),
    "B": ("B", "batch size"),
    "d": ("d", "hidden dimension"),
    "L": ("L", "layers"),
    "f": ("f", "FFN width"),
    "h": ("h", "attention heads"),
    "h_kv": ("h_kv", "KV heads"),
    "d_h": ("d_h", "head dimension"),
    "V": ("V", "vocabulary size"),
    "W": ("W", "attention window"),
    "E": ("E", "experts"),
    "k": ("k", "experts a token; inner side of a matrix product"),
    "m": ("m", "rows of a matrix product"),
    "n": ("n", "columns of a matrix product; new tokens of a step"),
    "I": ("I", "arithmetic intensity, FLOP/byte"),
    "R": ("R", "ridge point, FLOP/byte"),
    "beta": ("beta", "memory bandwidth, byte/s"),
    "pi": ("pi", "peak compute, FLOP/s"),
}
_LATEX = {"h_kv": r"h_{\mathrm{kv}}", "d_h": "d_h", "beta": r"\beta", "pi": r"\pi"}

symbols = SimpleNamespace(
    **{key: sympy.Symbol(name, positive=True) for key, (name, _) in _NAMES.items()}
)
"""The book's symbols, all positive: `symbols.N`, `symbols.d`, `symbols.h_kv`, ..."""

NOTATION = {symbols.__dict__[key]: meaning for key, (_, meaning) in _NAMES.items()}
"""Each symbol of the book with what it stands for, in the order of the notation table."""


def latex(expression) -> str:
    """LaTeX of an expression in the book's notation."""
    names = {symbols.__dict__[key]: text for key, text in _LATEX.items()}
    return sympy.latex(expression, symbol_names=names)


def symbolic_architecture(**fields) -> Architecture:
    """A dense decoder whose sizes are the book's symbols; `fields` replaces any of them.

    `symbolic_architecture(kv_heads=symbols.h)` is multi-head attention.
    """
    s = symbols
    sizes = {
        "name": "symbolic",
        "layers": s.L,
        "hidden": s.d,
        "ffn": s.f,
        "heads": s.h,
        "kv_heads": s.h_kv,
        "head_dim": s.d_h,
        "vocab": s.V,
    }
    return Architecture(**(sizes | fields))


def text_architecture(**fields) -> Architecture:
    """The text's idealised model in symbols: h heads that tile d, as many KV heads, f = 8/3 d."""
    s = symbols
    ideal = {
        "name": "the text's model",
        "kv_heads": s.h,
        "head_dim": s.d / s.h,
        "ffn": sympy.Rational(8, 3) * s.d,
    }
    return symbolic_architecture(**(ideal | fields))


def equal(left, right) -> bool:
    """Whether two expressions are the same for all values of their symbols."""
    difference = sympy.sympify(left) - sympy.sympify(right)
    return sympy.simplify(difference) == 0


def numbers_of(architecture: Architecture) -> dict:
    """The values of the book's symbols for a real model, to put into a derived formula."""
    a, s = architecture, symbols
    return {
        s.L: a.layers,
        s.d: a.hidden,
        s.f: sympy.sympify(a.ffn),
        s.h: a.heads,
        s.h_kv: a.kv_heads,
        s.d_h: a.head_dim,
        s.V: a.vocab,
    }


class Derivation:
    """A chain of equal expressions, each with the reason it equals the one before.

    Shown by a notebook as aligned mathematics. `then` refuses a step that does not follow, so a
    derivation that is displayed is one that holds.

    >>> from inferlab.derive import Derivation, symbols as s
    >>> chain = Derivation("I", s.N * s.d / s.d, "definition").then(s.N, "d cancels")
    >>> chain.result
    N
    """

    def __init__(self, name: str, expression, reason: str = ""):
        self.name = name
        self.steps = [(sympy.sympify(expression), reason)]

    @property
    def result(self):
        """The last expression."""
        return self.steps[-1][0]

    def then(self, expression, reason: str = "") -> Derivation:
        """Add a step; raises InputError when it does not equal the one before."""
        if not equal(expression, self.result):
            raise InputError(
                f"the step {expression} does not follow from {self.result}: expected an equal"
                " expression, so check the algebra or name the assumption with `given`"
            )
        self.steps.append((sympy.sympify(expression), reason))
        return self

    def given(self, assumptions: dict, reason: str) -> Derivation:
        """Put `assumptions` (symbol: value or expression) into the last expression."""
        self.steps.append((sympy.simplify(self.result.subs(assumptions)), reason))
        return self

    def _repr_latex_(self) -> str:
        rows = []
        for i, (expression, reason) in enumerate(self.steps):
            left = self.name if i == 0 else ""
            note = rf" && \text{{{reason}}}" if reason else ""
            rows.append(rf"{left} &= {latex(expression)}{note}")
        return "$$\\begin{aligned}\n" + " \\\\\n".join(rows) + "\n\\end{aligned}$$"

    def _repr_mimebundle_(self, include=None, exclude=None):
        text = "\n".join(f"{self.name} = {e}  ({r})" for e, r in self.steps)
        return {"text/latex": self._repr_latex_(), "text/plain": text}


class Substitution:
    """A formula with numbers put in: the formula, the numbers, and the value with its unit.

    >>> from inferlab.derive import Substitution, symbols as s
    >>> Substitution("F", 24 * s.d**2, {s.d: 4096}, "FLOP").value
    402653184
    """

    def __init__(self, name: str, formula, values: dict, unit: str = ""):
        self.name, self.formula, self.values, self.unit = name, sympy.sympify(formula), values, unit
        missing = self.formula.free_symbols - set(values)
        if missing:
            raise InputError(
                f"{name} has no value for {', '.join(sorted(map(str, missing)))}: expected a number"
                " for each symbol"
            )

    @property
    def value(self):
        """The value, exact where the numbers are."""
        return self.formula.subs(self.values)

    def _repr_mimebundle_(self, include=None, exclude=None):
        used = {x: v for x, v in self.values.items() if x in self.formula.free_symbols}
        names = {x: rf"\left({sympy.latex(sympy.sympify(v))}\right)" for x, v in used.items()}
        numbers = sympy.latex(self.formula, symbol_names=names)
        value = format_si(self.value, self.unit)
        shown = (
            rf"$$\begin{{aligned}} {self.name} &= {latex(self.formula)} \\"
            rf" &= {numbers} \\ &= \text{{{value}}} \end{{aligned}}$$"
        )
        return {"text/latex": shown, "text/plain": f"{self.name} = {self.formula} = {value}"}
