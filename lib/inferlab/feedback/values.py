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
import re
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
    "unreadable": "That text is not a formula that can be read: remove the quotes, and write every *"
    " (6*P*D, not 6PD) and ** for a power.",
    "constant": "That uses a constant of SymPy's where the question has a symbol of this name: take"
    " s.pi, not sympy.pi.",
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


def fault(spec: Mapping, values: list, place: int) -> tuple[str, bool]:
    """What is wrong at one place of the values that were read, and whether the question's hint,
    which is about the answer itself, helps there."""
    if spec["kind"] == "expression":
        return f"not right at {_given(spec['at'][place])}.", True
    if spec["kind"] == "function":
        return f"not right for {_call(spec, spec['probes'][place])}.", True
    if spec["kind"] == "plot":
        return _fault_of_plot(spec, values, place)
    return "not yet.", True


# --- numbers ---------------------------------------------------------------------------------


def real(answer, unit: str = "") -> float:
    """A float from anything that is one real number; SymPy units are converted to `unit`."""
    if answer is None or answer is ... or answer is NotImplemented:
        raise AnswerProblem("unanswered")
    answer = _out_of_its_list(answer)
    if isinstance(answer, str):
        raise AnswerProblem("text")
    if isinstance(answer, tuple) and _is_one_number_with_commas(answer):
        digits = str(answer[0]) + "".join(f"{part:03}" for part in answer[1:])
        raise AnswerProblem(
            "several",
            f"{PROBLEMS['several']} If it is one: write {digits} or {int(digits):_}; a comma makes"
            " several values.",
        )
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
    """The only value of a list, set or dict, as SymPy's solvers return it; anything else as it is."""
    for _ in range(3):  # solve([...], [x]) nests twice
        if type(answer).__name__ == "FiniteSet":
            answer = list(answer)
        if isinstance(answer, Mapping):
            answer = list(answer.values())
        if not isinstance(answer, (list, tuple, set)) or len(answer) != 1:
            break
        answer = next(iter(answer))
    return answer


def _is_one_number_with_commas(answer: tuple) -> bool:
    """Whether a tuple is what Python makes of 30,579."""
    return (
        2 <= len(answer) <= 6
        and all(type(part) is int for part in answer)
        and 0 < answer[0] < 1000
        and all(0 <= part < 1000 for part in answer[1:])
    )


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
    named = {
        "s": units.second,
        "h": 3600 * units.second,
        "d": 86400 * units.second,
        "B": units.byte,
        "GB": 10**9 * units.byte,
    }
    wanted = 1
    for sign, part in zip((1, -1), unit.split("/"), strict=False):
        wanted *= named.get(part, 1) ** sign
    base = units.convert_to(answer, [units.second, units.byte])
    value = base / wanted
    if value.has(units.Quantity):
        got = str(base.as_coeff_Mul()[1]).replace("second", "s").replace("byte", "B")
        raise AnswerProblem(
            "unit",
            f"Your answer comes in {got}, and the question asks for {_in_words(unit)}: a quantity of"
            " another kind."
            if unit
            else f"Your answer comes in {got}, and the question asks for a plain number: give it"
            " alone, without a unit.",
        )
    return value


def _number(spec, answer):
    return [real(answer, spec.get("unit", ""))]


def _in_words(unit: str) -> str:
    return {
        "s": "seconds",
        "h": "hours",
        "d": "days",
        "B": "bytes",
        "B/s": "bytes per second",
        "FLOP/B": "FLOP per byte",
    }.get(unit, unit)


def in_other_units(spec: Mapping, values: list) -> Iterator[tuple[float, str]]:
    """What a number would be in smaller and larger units, and what to say when that one is right."""
    if spec["kind"] != "number" or not isinstance(values[0], float) or values[0] == 0:
        return
    unit = spec.get("unit", "")
    wanted = f" It is asked for in {_in_words(unit)}." if unit else ""
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

        answer = re.sub(r"\bs\.(?=[A-Za-z])", "", answer)  # as the notebooks write it: s.P
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
    for name in {"pi", "I", "E"} & set(names):
        if answer.has(getattr(sympy, name)):
            raise AnswerProblem(
                "constant",
                f"The answer uses SymPy's constant sympy.{name}; the symbol of this question is"
                f" s.{name}.",
            )
    stray = sorted({x.name for x in answer.free_symbols} - set(names))
    if stray:
        joined = f"(?:{'|'.join(map(re.escape, names))})+"
        split = " Write every *." if any(re.fullmatch(joined, name) for name in stray) else ""
        raise AnswerProblem(
            "unknown symbols",
            f"The answer uses {', '.join(stray)}; this question has only {', '.join(names)}.{split}",
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
    if "unit" not in spec:
        return _plain(result)
    try:
        return real(result, spec["unit"])
    except AnswerProblem as problem:
        raise AnswerProblem(problem.code, f"{call} does not return one number. {problem}") from None


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
    chosen = _words(answer)
    if chosen not in [_words(option) for option in spec["options"]]:
        raise AnswerProblem("option", f"That is not one of the options: {_options(spec)}.")
    return [chosen]


def _words(text: str) -> str:
    """The words of an option: case, punctuation and the shape of an apostrophe do not count."""
    return " ".join(re.findall(r"\w+", re.sub("['`\u2018\u2019\u00b4]", "", text.casefold())))


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
    from matplotlib.collections import PathCollection

    curves, marked = [], []
    for line in answer.get_lines():
        if line.get_transform() != answer.transData:
            continue  # axhline and axvline: lines of the axes, not of the data
        xs, ys = _floats(line.get_xdata()), _floats(line.get_ydata())
        points = list(zip(xs, ys, strict=False))
        if len(xs) >= 2 and not _is_none(line.get_linestyle()):
            curves.append(sorted(points))
        elif not _is_none(line.get_marker()):
            marked += points
    for collection in answer.collections:
        if isinstance(
            collection, PathCollection
        ):  # of scatter; areas and rows of lines are no points
            marked += [tuple(map(float, point)) for point in collection.get_offsets()]
    if not curves and spec["at"]:
        raise AnswerProblem("no curve")
    curves.sort(key=lambda curve: curve[0][0] - curve[-1][0])  # the widest first: guides are short
    read = [
        str(answer.get_xscale()),
        str(answer.get_yscale()),
        bool(answer.get_xlabel().strip()),
        bool(answer.get_ylabel().strip()),
        *(_height(curves, x) for x in spec["at"]),
        float(len(marked)),
        *_places(marked, spec["marks"]),
    ]
    return [NOTHING if value != value else value for value in read]


def _fault_of_plot(spec: Mapping, values: list, place: int) -> tuple[str, bool]:
    value, axes = values[place], ("horizontal", "vertical")
    if place < 2:
        scale = value if value in ("linear", "log") else "neither linear nor log"
        return f"The {axes[place]} axis is {scale}, which is not what the question asks for.", False
    if place < 4:
        return f"The {axes[place - 2]} axis has no label, and both need one.", False
    place -= 4
    if place < len(spec["at"]):
        x = spec["at"][place]
        if not isinstance(value, float):
            return f"At {x:g} on the horizontal axis no curve is drawn.", False
        return f"not right at {x:g}, where your curve has the height {value:.4g}.", True
    place -= len(spec["at"])
    if place == 0 or not isinstance(value, float):
        found = f", found: {value:g}" if isinstance(value, float) else ""
        return (
            f"Marked points wanted: {spec['marks']}{found}. A marked point has a marker and no line"
            " through it.",
            False,
        )
    number, upright = divmod(place - 1, 2)
    point = "The marked point" if spec["marks"] == 1 else f"Marked point {number + 1} from the left"
    if upright:
        return f"{point} has the wrong height, {value:.4g}.", True
    return f"{point} is not in its place: it is at {value:.4g} on the horizontal axis.", False


def _is_none(style) -> bool:
    """Whether a line style or a marker draws nothing."""
    return str(style).strip().lower() in ("", "none")


def _floats(data) -> list[float]:
    values = [float(x) for x in data]
    if len(values) > 100_000:
        raise AnswerProblem("too much")
    return values


def _height(curves, x: float):
    """Height at x of the first curve that covers it, straight between points on log-log paper.

    On linear paper too: between few points on a bent curve that is closer than the straight line
    drawn there. Vertical lines have no height.
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
