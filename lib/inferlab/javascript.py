"""A SymPy expression as a JavaScript function: the fourth reading of a formula.

The widgets of the book compute with the very formulas that the chapters derive. What SymPy's own
`jscode` prints is mostly right, silently wrong for some expressions (a `Sum`, a symbol called
`x_{1}`), and inexact where `x/49` becomes `(1/49)*x`. So this printer prints a short list of
things that it is sure of and refuses the rest.
"""

from __future__ import annotations

import re

import sympy
from sympy.printing.precedence import PRECEDENCE
from sympy.printing.str import StrPrinter

from inferlab.quantities import InputError, to_sympy

EXACT = 2**53
"""JavaScript's numbers are doubles: whole numbers are exact up to here, as floats are in Python."""

_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_RESERVED = re.compile(
    "Infinity|Math|NaN|arguments|async|await|break|case|catch|class|const|continue|"
    "debugger|default|delete|do|else|enum|eval|export|extends|false|finally|for|function|"
    "if|implements|import|in|instanceof|interface|let|new|null|of|package|private|"
    "protected|public|return|static|super|switch|this|throw|true|try|typeof|undefined|var|"
    "void|while|with|yield"
)


def to_javascript(name: str, formula, args=None, *, named: bool = False) -> str:
    """The source of a JavaScript function `name` that computes `formula`.

    `formula` is a SymPy expression or number, or a dict of them (the function then returns an
    object with those keys). `args` are the symbols in the order of the function's parameters; by
    default the formula's own, sorted by name. With ``named=True`` the function takes one object and
    picks its parameters from it by name, so that a caller can pass more than the formula needs.

    >>> from sympy import symbols
    >>> N, d = symbols("N d", positive=True)
    >>> to_javascript("prefill", 24 * N * d**2 + 4 * N**2 * d, [N, d])
    'function prefill(N, d) { return 4*N*N*d + 24*N*d*d; }'

    Printed are sums, products, powers, minimum and maximum, ceiling and floor, absolute value,
    exponential and logarithm, and Piecewise with a final True. Anything else raises InputError, and
    so does a symbol that is no JavaScript identifier, a symbol missing from `args`, or a whole
    number beyond 2**53, which JavaScript cannot hold.
    """
    _check_identifier(name)
    formulas = formula if isinstance(formula, dict) else {"": formula}
    formulas = {key: to_sympy(value) for key, value in formulas.items()}
    used = set().union(*(f.free_symbols for f in formulas.values())) if formulas else set()
    args = sorted(used, key=str) if args is None else list(args)
    names = [str(arg) for arg in args]
    for each in names:
        _check_identifier(each)
    if len(set(names)) < len(names):
        raise InputError(
            f"{name} has two parameters of one name in ({', '.join(names)}): rename one"
        )
    if missing := sorted(str(symbol) for symbol in used - set(args)):
        raise InputError(
            f"{name} uses {', '.join(missing)}, which is not among its arguments "
            f"({', '.join(names)}): add it, or substitute a value"
        )
    printed = {key: _Printer().doprint(f) for key, f in formulas.items()}
    for key in printed:
        if key:
            _check_identifier(key)
    body = (
        "{" + ", ".join(f"{key}: {code}" for key, code in printed.items()) + "}"
        if isinstance(formula, dict)
        else printed[""]
    )
    parameters = ", ".join(names)
    if named:
        parameters = "{" + parameters + "}"
    return f"function {name}({parameters}) {{ return {body}; }}"


def _check_identifier(name: str) -> None:
    if not isinstance(name, str) or not _IDENTIFIER.fullmatch(name) or _RESERVED.fullmatch(name):
        raise InputError(
            f"{name!r} cannot be a name in JavaScript: use letters, digits and _, no reserved word"
        )


_KNOWN = (
    sympy.Symbol, sympy.Integer, sympy.Rational, sympy.Float, sympy.Add, sympy.Mul, sympy.Pow,
    sympy.Min, sympy.Max, sympy.ceiling, sympy.floor, sympy.Abs, sympy.exp, sympy.log,
    sympy.Piecewise, sympy.core.relational.Relational, sympy.And, sympy.Or, sympy.Not,
    type(sympy.true), type(sympy.false), type(sympy.pi), type(sympy.E), type(sympy.oo),
)  # fmt: skip


class _Printer(StrPrinter):
    """Prints what it knows; `emptyPrinter` refuses the rest."""

    def _print(self, expr, **kwargs):
        if isinstance(expr, sympy.Basic) and not isinstance(expr, _KNOWN):
            self.emptyPrinter(expr)
        return super()._print(expr, **kwargs)

    def emptyPrinter(self, expr):
        raise InputError(
            f"{type(expr).__name__} has no JavaScript form: work it out first "
            "(doit, simplify), or write the formula without it"
        )

    def _print_Symbol(self, expr):
        return expr.name

    def _print_Integer(self, expr):
        if abs(int(expr)) > EXACT:
            raise InputError(
                f"{expr} is beyond 2**53, where JavaScript's whole numbers end: "
                "pass it as an argument, or as a float"
            )
        return str(int(expr))

    def _print_Rational(self, expr):
        return f"{self._print(sympy.Integer(expr.p))}/{self._print(sympy.Integer(expr.q))}"

    def _print_Float(self, expr):
        return repr(float(expr))

    def _print_Exp1(self, expr):
        return "Math.E"

    def _print_Pi(self, expr):
        return "Math.PI"

    def _print_Infinity(self, expr):
        return "Infinity"

    def _print_Mul(self, expr):
        # One quotient, so that a whole result of whole numbers stays whole: 3*x/7, not 3/7*x.
        above, below = [], []
        for factor in expr.as_ordered_factors():
            if isinstance(factor, sympy.Rational):
                if factor.p != 1:
                    above.append(sympy.Integer(factor.p))
                if factor.q != 1:
                    below.append(sympy.Integer(factor.q))
            elif isinstance(factor, sympy.Pow) and factor.exp.is_Rational and factor.exp < 0:
                below.append(sympy.Pow(factor.base, -factor.exp))
            else:
                above.append(factor)
        top = self._product(above)
        if not below:
            return top
        bottom = self._product(below)
        alone = len(below) == 1 and not isinstance(below[0], sympy.Pow)
        return f"{top}/{bottom}" if alone else f"{top}/({bottom})"

    def _product(self, factors):
        if factors and factors[0] == -1 and len(factors) > 1:
            return "-" + self._product(factors[1:])
        return "*".join(self.parenthesize(f, PRECEDENCE["Mul"]) for f in factors) or "1"

    def _print_Pow(self, expr, rational=False):
        base, exponent = expr.as_base_exp()
        if exponent.is_Rational and exponent < 0:
            below = sympy.Pow(base, -exponent)
            code = self._print(below)
            return f"1/{code}" if below.is_Symbol else f"1/({code})"
        if exponent == sympy.Rational(1, 2):
            return f"Math.sqrt({self._print(base)})"
        if exponent.is_Integer and exponent <= 4 and base.is_Symbol:
            return "*".join([self._print(base)] * int(exponent))
        return f"Math.pow({self._print(base)}, {self._print(exponent)})"

    def _call(self, function, expr):
        return f"{function}({', '.join(self._print(arg) for arg in expr.args)})"

    def _print_Min(self, expr):
        return self._call("Math.min", expr)

    def _print_Max(self, expr):
        return self._call("Math.max", expr)

    def _print_ceiling(self, expr):
        return self._call("Math.ceil", expr)

    def _print_floor(self, expr):
        return self._call("Math.floor", expr)

    def _print_Abs(self, expr):
        return self._call("Math.abs", expr)

    def _print_exp(self, expr):
        return self._call("Math.exp", expr)

    def _print_log(self, expr):
        if len(expr.args) != 1:
            self.emptyPrinter(expr)
        return self._call("Math.log", expr)

    def _print_Piecewise(self, expr):
        if expr.args[-1].cond != sympy.true:
            raise InputError(
                f"{expr} says nothing for some values: end the Piecewise with (value, True)"
            )
        code = self._print(expr.args[-1].expr)
        for value, condition in reversed(expr.args[:-1]):
            code = f"({self._print(condition)} ? {self._print(value)} : {code})"
        return code if len(expr.args) > 1 else f"({code})"

    def _print_Relational(self, expr):
        sign = {"==": "===", "!=": "!=="}.get(expr.rel_op, expr.rel_op)
        return f"({self._print(expr.lhs)} {sign} {self._print(expr.rhs)})"

    def _print_And(self, expr):
        return "(" + " && ".join(self._print(a) for a in sorted(expr.args, key=str)) + ")"

    def _print_Or(self, expr):
        return "(" + " || ".join(self._print(a) for a in sorted(expr.args, key=str)) + ")"

    def _print_Not(self, expr):
        return f"!{self._print(expr.args[0])}"

    def _print_BooleanTrue(self, expr):
        return "true"

    def _print_BooleanFalse(self, expr):
        return "false"
