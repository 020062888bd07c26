"""Reduce an answer of any kind to a few plain values that can be compared.

A question's public part (its `spec`, a dict of plain values) says what to read: a number becomes
one float, an expression its values at given points, a function its results for given arguments, a
plot its scales and the heights of its curve. These values are all that is ever compared: as salted
digests when a learner works alone, in the clear by the batch grader in another process.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Iterator, Mapping

MOST_VALUES = 500

PROBLEMS = {
    "unanswered": "Not answered yet: replace the dots by your answer and run this cell again.",
    "text": "That is a text in quotes, and a number is wanted: remove the quotes, and a unit"
    " if there is one.",
    "truth": "That is True or False, and a number is wanted.",
    "uncalled": "That is a function, and its value is wanted: call it, with its arguments in ().",
    "several": "That is several values, and one number is wanted.",
    "complex": "That is a complex number, and a real one is wanted.",
    "nan": "That is not a number (NaN): look for 0/0 or a missing value.",
    "symbols": "Symbols are left in the answer, and a number is wanted: put the values in.",
    "unit": "The answer has a unit of the wrong kind.",
    "type": "That is not the kind of answer that is wanted here.",
    "equation": "That is an equation: give its right-hand side alone.",
    "unknown symbols": "The answer uses symbols that this question does not have.",
    "unreadable": "That text is not a formula that can be read.",
    "not callable": "A function is wanted here: pass its name, without () after it.",
    "stopped": "The function stopped with an error.",
    "undrawn": "Not answered yet: nothing is drawn on these axes.",
    "returned nothing": "Not answered yet: the function returns nothing. Does it end in a return"
    " line?",
    "sometimes nothing": "The function returns nothing for some arguments: does every path through"
    " it end in a return line?",
    "option": "That is not one of the options.",
    "no axes": "A plot is wanted here: pass the Axes that you drew on.",
    "no curve": "No line is drawn on these axes yet.",
    "too much": "That is far more than the answer that is wanted here.",
}

NOT_ANSWERED = ("unanswered", "undrawn", "returned nothing")
"""The problems that are no mistake: there is no answer yet."""

NOTHING = "nothing"
"""What is read from a plot where nothing is drawn."""


class AnswerProblem(Exception):
    """An answer that cannot be compared at all; `code` is a key of PROBLEMS."""

    def __init__(self, code: str, sentence: str = ""):
        super().__init__(sentence or PROBLEMS[code])
        self.code = code


def read(spec: Mapping, answer) -> list:
    """The plain values (float, str, bool) that stand for an answer to the question `spec`.

    Raises AnswerProblem, with a sentence for the learner, for what is no answer to it.
    """
    if answer is None or answer is ... or answer is NotImplemented:
        raise AnswerProblem("unanswered")
    values = _READERS[spec["kind"]](spec, answer)
    if len(values) > MOST_VALUES:
        raise AnswerProblem("too much")
    return values


def labels(spec: Mapping) -> list[str]:
    """What each value of `read` is, to say which one is wrong ('' where there is just one)."""
    kind = spec["kind"]
    if kind == "expression":
        return [f"at {_given(point)}" for point in spec["at"]]
    if kind == "function":
        return [f"for {_call(spec, arguments)}" for arguments in spec["probes"]]
    if kind == "plot":
        return (
            ["in the scale of the horizontal axis", "in the scale of the vertical axis"]
            + ["in the axis labels: both axes need one"]
            + [f"in the height of the curve at {x:g}" for x in spec["at"]]
            + [f"in the number of marked points: {spec['marks']} wanted, with no line through them"]
            + ["in the place of a marked point"] * (2 * spec["marks"])
        )
    return [""]


# --- numbers ---------------------------------------------------------------------------------


def real(answer, unit: str = "") -> float:
    """A float from anything that is one real number; SymPy units are converted to `unit`."""
    if answer is None or answer is ... or answer is NotImplemented:
        raise AnswerProblem("unanswered")
    answer = _out_of_its_list(answer)
    if isinstance(answer, str):
        raise AnswerProblem("text")
    if isinstance(answer, bool) or type(answer).__name__ in ("bool_", "bool", "BooleanTrue"):
        raise AnswerProblem("truth")
    if hasattr(answer, "free_symbols"):
        answer = _without_units(answer, unit)
    elif callable(answer):
        raise AnswerProblem("uncalled")
    elif hasattr(answer, "item") and hasattr(answer, "shape"):  # a NumPy scalar or array
        if math.prod(answer.shape) != 1:
            raise AnswerProblem("several")
        answer = answer.item()
    if isinstance(answer, (list, tuple, set, dict)):
        raise AnswerProblem("several")
    if isinstance(answer, complex):
        raise AnswerProblem("complex")
    try:
        value = float(answer)
    except OverflowError:
        value = math.inf if answer > 0 else -math.inf
    except (TypeError, ValueError):
        sentence = (
            f"{PROBLEMS['type'][:-1]}: it is a {type(answer).__name__}, and a number is wanted."
        )
        raise AnswerProblem("type", f"{sentence} Do you mean one of its values?") from None
    if math.isnan(value):
        raise AnswerProblem("nan")
    return value


def _out_of_its_list(answer):
    """The only value of a list, such as `sympy.solve` returns; anything else as it is."""
    if isinstance(answer, (list, tuple)) and len(answer) == 1:
        return answer[0]
    return answer


def _without_units(answer, unit: str):
    import sympy
    from sympy.physics.units import Quantity

    answer = sympy.sympify(answer)
    if isinstance(answer, sympy.logic.boolalg.BooleanAtom):
        raise AnswerProblem("truth")
    if not isinstance(answer, sympy.Expr):
        raise AnswerProblem("equation" if isinstance(answer, sympy.Equality) else "type")
    if answer.has(Quantity):
        answer = _convert(answer, unit)
    if answer.free_symbols:
        names = ", ".join(sorted(map(str, answer.free_symbols)))
        raise AnswerProblem(
            "symbols", f"The answer still contains {names}: put the values in to get a number."
        )
    value = sympy.N(answer, 30)
    if value is sympy.nan or value is sympy.zoo:
        raise AnswerProblem("nan")
    if value.is_extended_real is False:
        raise AnswerProblem("complex")
    return value


def _convert(answer, unit: str):
    """A SymPy quantity in the question's unit. FLOP, tokens and dollars count as plain numbers."""
    from sympy.physics import units
    from sympy.physics.units.prefixes import Prefix

    answer = answer.replace(lambda part: isinstance(part, Prefix), lambda part: part.scale_factor)
    named = {"s": units.second, "B": units.byte}
    wanted = 1
    for sign, part in zip((1, -1), unit.split("/"), strict=False):
        wanted *= named.get(part, 1) ** sign
    base = units.convert_to(answer, [units.second, units.byte])
    value = base / wanted
    if value.has(units.Quantity):
        got = str(base.as_coeff_Mul()[1]).replace("second", "s").replace("byte", "B")
        raise AnswerProblem(
            "unit",
            f"Your answer comes in {got}, and the question asks for {unit or 'a plain number'}:"
            " a quantity of another kind.",
        )
    return value


def _number(spec, answer):
    return [real(answer, spec.get("unit", ""))]


def in_other_units(spec: Mapping, values: list) -> Iterator[tuple[float, str]]:
    """What a number would be in smaller and larger units, and what to say when that one is right."""
    if spec["kind"] != "number" or not isinstance(values[0], float) or values[0] == 0:
        return
    unit = spec.get("unit", "")
    named = {"s": "seconds", "B": "bytes", "B/s": "bytes per second", "FLOP/B": "FLOP per byte"}
    wanted = f" It is asked for in {named.get(unit, unit)}." if unit else ""
    for factor in (1e3, 1e6, 1e9, 1e12):
        for value, size in ((values[0] / factor, "large"), (values[0] * factor, "small")):
            yield value, f"The digits are right, but it is {factor:,.0f} times too {size}.{wanted}"


# --- expressions -----------------------------------------------------------------------------


def _expression(spec, answer):
    import sympy

    names = spec["symbols"]
    answer = _out_of_its_list(answer)
    if isinstance(answer, str):
        from sympy.parsing.sympy_parser import parse_expr

        try:
            answer = parse_expr(answer, local_dict={name: sympy.Symbol(name) for name in names})
        except Exception:
            raise AnswerProblem("unreadable") from None
    elif callable(answer) and not hasattr(answer, "free_symbols"):
        raise AnswerProblem("uncalled", "That is a function, and a formula is wanted.")
    try:
        answer = sympy.sympify(answer)
    except (sympy.SympifyError, TypeError, AttributeError):
        raise AnswerProblem("type") from None
    if isinstance(answer, sympy.Equality):
        raise AnswerProblem("equation")
    if isinstance(answer, (list, tuple, sympy.Tuple)):
        raise AnswerProblem("several", "That is several values, and one formula is wanted.")
    if not isinstance(answer, sympy.Expr):
        raise AnswerProblem("type", "That is no formula: give a SymPy expression.")
    stray = sorted({x.name for x in answer.free_symbols} - set(names))
    if stray:
        raise AnswerProblem(
            "unknown symbols",
            f"The answer uses {', '.join(stray)}; this question has only {', '.join(names)}.",
        )
    # Floats that stand for short decimals become exact, so that 0.5*x and x/2 agree to the last
    # digit.
    answer = sympy.nsimplify(answer, rational=True)
    by_name = {x: x.name for x in answer.free_symbols}
    values = []
    for point in spec["at"]:
        put = {x: sympy.Rational(str(point[name])) for x, name in by_name.items()}
        values.append(real(answer.subs(put)))
    return values


def _given(point: Mapping) -> str:
    return ", ".join(f"{name} = {value}" for name, value in point.items())


# --- functions -------------------------------------------------------------------------------


def _function(spec, answer):
    if isinstance(answer, str) or not callable(answer):
        raise AnswerProblem("not callable")
    values = []
    for place, arguments in enumerate(spec["probes"]):
        try:
            values.append(_result(spec, answer, arguments))
        except AnswerProblem as problem:
            if place == 0 and problem.code == "sometimes nothing":
                raise AnswerProblem("returned nothing") from None
            # What only the grader asks for must not undo what was right before it.
            if place < spec.get("public", len(spec["probes"])):
                raise
            values.append(problem.code)
    return values


def _result(spec: Mapping, answer, arguments):
    """What one call returns: a number, text or bool; a longer result as one text of its parts."""
    call = _call(spec, arguments)
    try:
        result = answer(*copy.deepcopy(arguments))
    except NotImplementedError:
        raise AnswerProblem("unanswered") from None
    except Exception as error:
        sentence = f"{call} stopped with {type(error).__name__}: {error}"
        raise AnswerProblem("stopped", sentence) from None
    if result is None or result is ...:
        sentence = f"{call} returns nothing: does every path through it end in a return line?"
        raise AnswerProblem("sometimes nothing", sentence)
    return _plain(result)


def _call(spec: Mapping, arguments) -> str:
    return f"{spec['name']}({', '.join(map(_shown, arguments))})"


def _shown(value) -> str:
    return f"{value:g}" if isinstance(value, float) else repr(value)


def _plain(result):
    if isinstance(result, (str, bool)):
        return _text(result) if isinstance(result, str) else result
    if type(result).__name__ in ("bool_", "bool"):
        return bool(result)
    if hasattr(result, "tolist"):
        result = result.tolist()
    if isinstance(result, Mapping):
        result = [[_text(str(key)), value] for key, value in sorted(result.items(), key=str)]
    if isinstance(result, (list, tuple)):
        return _flat(result)
    return real(result)


def _flat(values) -> str:
    if len(values) > MOST_VALUES:
        raise AnswerProblem("too much")
    parts = []
    for value in values:
        value = _plain(value)
        parts.append(f"{value:.6g}" if isinstance(value, float) else str(value))
    return "[" + ", ".join(parts) + "]"


# --- choices ---------------------------------------------------------------------------------


def _choice(spec, answer):
    if not isinstance(answer, str):
        raise AnswerProblem("option", f"Answer with one of {_options(spec)}, in quotes.")
    chosen = _text(answer)
    if chosen not in [_text(option) for option in spec["options"]]:
        raise AnswerProblem("option", f"That is not one of the options: {_options(spec)}.")
    return [chosen]


def _options(spec) -> str:
    return ", ".join(repr(option) for option in spec["options"])


def _text(text: str) -> str:
    return " ".join(text.casefold().replace("-", " ").split())


# --- plots -----------------------------------------------------------------------------------


def _plot(spec, answer):
    if hasattr(answer, "axes") and isinstance(answer.axes, (list, tuple)) and answer.axes:
        answer = answer.axes[0]  # a Figure
    if hasattr(answer, "shape") and math.prod(answer.shape) == 1:
        answer = answer.item()  # plt.subplots(squeeze=False)
    if not hasattr(answer, "get_lines") or not hasattr(answer, "get_xscale"):
        raise AnswerProblem("no axes")
    if not answer.has_data():
        raise AnswerProblem("undrawn")
    curves, marked = [], []
    for line in answer.get_lines():
        xs, ys = _floats(line.get_xdata()), _floats(line.get_ydata())
        if len(xs) < 2 or str(line.get_linestyle()).strip().lower() in ("", "none"):
            marked += zip(xs, ys, strict=False)
        else:
            curves.append(sorted(zip(xs, ys, strict=False)))
    for collection in answer.collections:
        marked += [tuple(map(float, point)) for point in collection.get_offsets()]
    if not curves and spec["at"]:
        raise AnswerProblem("no curve")
    scales = (answer.get_xscale(), answer.get_yscale())
    named = bool(answer.get_xlabel().strip()) and bool(answer.get_ylabel().strip())
    return [
        *map(str, scales),
        named,
        *(_height(curves, x) for x in spec["at"]),
        float(len(marked)),
        *_places(marked, spec["marks"]),
    ]


def _floats(data) -> list[float]:
    values = [float(x) for x in data]
    if len(values) > 100_000:
        raise AnswerProblem("too much")
    return values


def _height(curves, x: float):
    """Height at x of the first curve that covers it, straight between points on log-log paper.

    A curve that is drawn through few points looks different on linear paper: there the points are
    joined by straight lines, so both readings agree only where the points are dense. Vertical
    lines have no height.
    """
    for curve in curves:
        if curve[0][0] == curve[-1][0] or not curve[0][0] <= x <= curve[-1][0]:
            continue
        for (x0, y0), (x1, y1) in itertools.pairwise(curve):
            if x0 <= x <= x1:
                if x0 == x1:
                    return y1
                if min(x0, y0, y1) <= 0:
                    return y0 + (y1 - y0) * (x - x0) / (x1 - x0)
                share = math.log(x / x0) / math.log(x1 / x0)
                return y0 * (y1 / y0) ** share
    return NOTHING


def _places(points, count: int) -> list:
    """x and y of the first `count` marked points, from left to right."""
    places = [float(x) for point in sorted(points)[:count] for x in point]
    return places + [NOTHING] * (2 * count - len(places))


_READERS = {
    "number": _number,
    "expression": _expression,
    "function": _function,
    "choice": _choice,
    "plot": _plot,
}


# --- comparing -------------------------------------------------------------------------------


def bucket(value, rtol: float) -> list[str]:
    """Names of the buckets that a value may be found in, its own first.

    Numbers fall into buckets of width `rtol` on a logarithmic scale. Two numbers count as equal
    when one's own bucket is among the other's three: always within rtol, never beyond about 2 rtol.
    """
    if isinstance(value, bool):
        return [f"truth {value}"]
    if isinstance(value, str):
        return [f"text {value}"]
    if value == 0:
        return ["zero"]
    sign = "+" if value > 0 else "-"
    if math.isinf(value):
        return [sign + "inf"]
    place = round(math.log(abs(value)) / math.log1p(rtol))
    return [f"{sign}{place + step}" for step in (0, 1, -1)]


def same(value, expected, rtol: float) -> bool:
    """Whether a value that was read is the expected one, to the tolerance."""
    return bucket(expected, rtol)[0] in bucket(value, rtol)


def mistake_of(values: list, wrong_at: list[int], rtol: float) -> list[str]:
    """Names for a mistake: which values are wrong, and the buckets of the first that is."""
    places = ",".join(map(str, wrong_at))
    return [f"wrong {places}: {name}" for name in bucket(values[wrong_at[0]], rtol)]
