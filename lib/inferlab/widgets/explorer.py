"""The base of every widget: controls, formulas printed to JavaScript, and a view.

A widget is a class with a title, controls, formulas and a view in JavaScript; see README.md.
"""

from __future__ import annotations

import html
import inspect
import json
import math
import os
import re
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import anywidget
import traitlets

from inferlab.figures import ROLES
from inferlab.javascript import to_javascript
from inferlab.quantities import InputError, format_duration, format_si

STATIC = Path(__file__).with_name("static")
"""Scripts that all widgets share. The book loads them once a page."""

SHARED = ("d3.js", "explorer.js")
"""The shared scripts in loading order: kept d3 modules, then controls and charts of our own."""

PAGE = "page"
"""Value of the environment variable INFERLAB_WIDGETS when the page brings the shared scripts."""


@dataclass(frozen=True)
class Slider:
    """A number that the reader moves.

    name: the symbol it stands for in the formulas. low, high: its ends. start: where it stands at
    first. unit: shown after the value. log: evenly spaced in the logarithm, at two significant
    digits. step: distance of two stops when not log. integer: whole numbers only. stops: explicit
    stops instead. format: "count" (3,000), "si" (1.56 TB/s), "time" (9.7 ms), "money", "percent"
    or "number". help: one line under the slider. play: show a button that moves it by itself, one
    stop each `play` seconds.
    """

    name: str
    label: str
    low: float
    high: float
    start: float
    unit: str = ""
    log: bool = False
    step: float = 1
    integer: bool = True
    stops: tuple[float, ...] = ()
    format: str = "count"
    help: str = ""
    play: float = 0
    kind: str = field(default="slider", init=False)

    def check(self, value) -> Any:
        """`value` if the slider can take it; InputError if not."""
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not math.isfinite(value)
        ):
            raise InputError(f"{self.name} is {value!r}: expected a number")
        if not self.low <= value <= self.high:
            raise InputError(
                f"{self.name} is {value:,}: expected a number from {self.low:,} to {self.high:,}"
            )
        return value

    def values(self, value) -> dict:
        """What the formulas see."""
        return {self.name: value}


@dataclass(frozen=True)
class Select:
    """A choice of one named set of numbers: a model, an accelerator, a dtype.

    name: what the view calls the choice. options: name -> the values that the formulas see under
    their symbols. A value with the name of a slider moves that slider (the reader may move it on,
    and the choice then reads "custom").
    """

    name: str
    label: str
    options: dict[str, dict[str, Any]]
    start: str
    help: str = ""
    kind: str = field(default="select", init=False)

    def check(self, value) -> str:
        """`value` if it is an option; InputError if not."""
        if value not in self.options:
            raise InputError(f"{self.name} is {value!r}: expected one of {', '.join(self.options)}")
        return value

    def values(self, value) -> dict:
        """What the formulas see: the numbers of the option."""
        return dict(self.options[value])


@dataclass(frozen=True)
class Toggle:
    """A yes or no, seen by the formulas as 1 or 0."""

    name: str
    label: str
    start: bool = False
    help: str = ""
    kind: str = field(default="toggle", init=False)

    def check(self, value) -> bool:
        """`value` if it is a bool; InputError if not."""
        if not isinstance(value, bool):
            raise InputError(f"{self.name} is {value!r}: expected True or False")
        return value

    def values(self, value) -> dict:
        """What the formulas see."""
        return {self.name: int(value)}


@dataclass(frozen=True)
class Paste:
    """A box for text that the view's `read` turns into numbers, in place of an option of a select.

    name: what the value is called; over: the select whose numbers it stands in for, until the
    reader picks an option there again. The value is None or a dict: `name`, shown as the choice,
    and a number for each key that the select's options have. The text itself stays in the box.
    """

    name: str
    label: str
    over: str
    help: str = ""
    start: None = field(default=None, init=False)
    kind: str = field(default="paste", init=False)

    def check(self, value) -> dict | None:
        """`value` if it is None or a name with numbers; InputError if not."""
        if value is None:
            return None
        if not isinstance(value, dict) or not isinstance(value.get("name"), str):
            raise InputError(f"{self.name} is {value!r}: expected None, or a name with numbers")
        for key, x in self.values(value).items():
            if isinstance(x, bool) or not isinstance(x, int | float) or not math.isfinite(x):
                raise InputError(f"{self.name} has {key} {x!r}: expected a number")
        return value

    def values(self, value) -> dict:
        """What the formulas see: its numbers."""
        return {key: x for key, x in (value or {}).items() if key != "name"}


def models(*names: str) -> dict[str, dict[str, Any]]:
    """Options of a `Select` from shipped dense models: their shapes under the book's symbols.

    L, d, f, h, h_kv, d_h, V, P (all parameters), kv_token (elements cached a token), context (the
    length the model was made for), gated (1 or 0).
    """
    from inferlab.architecture import Architecture

    return {name: _shape(Architecture.preset(name)) for name in names}


def _shape(a) -> dict[str, Any]:
    if a.moe or a.mla or a.window:
        raise InputError(f"{a.name} is not a plain dense model: give its numbers yourself")
    return {
        "L": a.layers, "d": a.hidden, "f": _plain(a.ffn), "h": a.heads, "h_kv": a.kv_heads,
        "d_h": a.head_dim, "V": a.vocab, "P": _plain(a.parameters.total),
        "kv_token": a.kv_elements_per_token, "context": a.max_positions, "gated": int(a.gated),
    }  # fmt: skip


def accelerators(*names: str, dtype: str = "bf16") -> dict[str, dict[str, Any]]:
    """Options of a `Select` from shipped accelerators: pi (peak at `dtype`), beta, capacity."""
    from inferlab.accelerator import Accelerator

    chips = {name: Accelerator.preset(name) for name in names}
    return {
        name: {
            "pi": _plain(chip.peak(dtype)), "beta": _plain(chip.bandwidth),
            "capacity": _plain(chip.capacity),
        }
        for name, chip in chips.items()
    }  # fmt: skip


def dtypes(symbol: str) -> dict[str, dict[str, float]]:
    """Options of a `Select` that sets `symbol` to the bytes of one element."""
    return {"bf16": {symbol: 2}, "8 bits": {symbol: 1}, "4 bits": {symbol: 0.5}}


def _plain(value):
    """A number that JSON can carry."""
    return value if isinstance(value, int) else float(value)


class Explorer(anywidget.AnyWidget):
    """A formula with controls and a chart. Subclasses say what; this class says how.

    Keyword arguments start controls elsewhere: ``PrefillFlops(N=1500, model="Llama-3.1-8B")``.
    Raises InputError for an unknown control or a value that it cannot take.
    """

    title: ClassVar[str]
    """What the widget shows, as a short noun phrase."""

    units: ClassVar[dict[str, str]] = {}
    """Formula -> unit, for the table that stands in when scripts are off."""

    columns: ClassVar[dict[str, str]] = {}
    """Formula -> head of its column in that table (default: every formula by its own name)."""

    sweep: ClassVar[str] = ""
    """The slider that the table runs along (default: the first slider)."""

    values = traitlets.Dict().tag(sync=True)
    spec = traitlets.Dict().tag(sync=True)
    fallback = traitlets.Unicode().tag(sync=True)
    _esm = traitlets.Unicode().tag(sync=True)

    @classmethod
    def controls(cls) -> list[Slider | Select | Toggle | Paste]:
        """The controls, in reading order."""
        raise NotImplementedError

    @classmethod
    def formulas(cls) -> dict[str, Any]:
        """Name -> SymPy expression over the names that the controls give values to."""
        raise NotImplementedError

    @classmethod
    def data(cls) -> dict[str, Any]:
        """What else the view needs, as JSON: recorded events, measured points."""
        return {}

    @classmethod
    def view(cls) -> str:
        """Source of the view: beside the class's module, prefill_flops.js for PrefillFlops."""
        return (
            Path(inspect.getfile(cls))
            .with_name(snake_case(cls.__name__) + ".js")
            .read_text("utf-8")
        )

    def __init__(self, **start):
        cls = type(self).explorer()
        controls = cls._controls()
        unknown = start.keys() - controls.keys()
        if unknown:
            raise InputError(
                f"{cls.__name__} has no control {', '.join(sorted(unknown))}: "
                f"expected {', '.join(controls)}"
            )
        values = {name: control.start for name, control in controls.items()}
        for name, control in controls.items():
            chosen = control.check(start.get(name, control.start))
            values[name] = chosen
            if control.kind == "select":
                own = control.values(chosen)
                values |= {key: own[key] for key in own.keys() & controls.keys()}
        values |= {name: controls[name].check(value) for name, value in start.items()}
        super().__init__(
            values=values,
            spec={
                "title": cls.title,
                "controls": [asdict(control) for control in controls.values()],
                "data": cls.data(),
            },
            _esm=cls.module(),
        )
        self.fallback = self.table()

    # --- what the class says, worked out once ---

    @classmethod
    def explorer(cls) -> type[Explorer]:
        """The class as written: anywidget gives each instance a class of its own."""
        return next(c for c in cls.__mro__ if "formulas" in c.__dict__)

    @classmethod
    @cache
    def _controls(cls) -> dict[str, Any]:
        controls = cls.controls()
        by_name = {control.name: control for control in controls}
        if len(by_name) < len(controls):
            raise InputError(f"{cls.__name__} has two controls of one name: rename one")
        for control in controls:
            control.check(control.start)
        return by_name

    @classmethod
    @cache
    def _formulas(cls) -> dict[str, Any]:
        import sympy

        return {name: sympy.sympify(formula) for name, formula in cls.formulas().items()}

    @classmethod
    @cache
    def _compiled(cls, name: str):
        import sympy

        formula = cls._formulas()[name]
        symbols = sorted(formula.free_symbols, key=str)
        return [str(s) for s in symbols], sympy.lambdify(symbols, formula, "math")

    @classmethod
    @cache
    def functions(cls) -> str:
        """The formulas as one JavaScript object literal of functions of the named values."""
        parts = [
            f"  {name}: {to_javascript(name, formula, named=True)}"
            for name, formula in cls._formulas().items()
        ]
        return "{\n" + ",\n".join(parts) + "\n}"

    @classmethod
    def module(cls) -> str:
        """The ES module of the widget: the same text for all instances on a page.

        In the book the shared scripts are on the page; everywhere else they lead the module.
        """
        shared = "" if os.environ.get("INFERLAB_WIDGETS") == PAGE else shared_scripts()
        return shared + cls._module()

    @classmethod
    @cache
    def _module(cls) -> str:
        look = {name: {**asdict(role), "dash": list(role.dash)} for name, role in ROLES.items()}
        read = ", read" if any(c.kind == "paste" for c in cls._controls().values()) else ""
        return (
            f"const formulas = {cls.functions()};\n{cls.view()}\n"
            f"export default inferlab.explorer({{ formulas, view{read}, roles: {json.dumps(look)} }});\n"
        )

    # --- the Python reading of the same formulas ---

    def environment(self, **overrides) -> dict[str, Any]:
        """Every name that a formula can use, with its value at the present settings.

        A select's numbers come first, pasted ones and the sliders' positions over them, `overrides`
        over all.
        """
        controls = type(self).explorer()._controls()
        seen: dict[str, Any] = {}
        for kinds in (("select",), ("paste",), ("slider", "toggle")):
            for name, control in controls.items():
                if control.kind in kinds:
                    seen |= control.values(self.values[name])
        return seen | overrides

    def compute(self, name: str, **overrides) -> float:
        """The formula `name` at the present settings, some of them overridden by name."""
        arguments, function = type(self).explorer()._compiled(name)
        environment = self.environment(**overrides)
        if missing := [a for a in arguments if a not in environment]:
            raise InputError(
                f"{name} needs {', '.join(missing)}, which no control gives: add it to an option"
            )
        return function(*(environment[a] for a in arguments))

    def table(self) -> str:
        """The start of the widget as an HTML table, for readers without scripts and for print."""
        cls = type(self).explorer()
        sliders = {n: c for n, c in cls._controls().items() if c.kind == "slider"}
        formulas = {n: cls.columns.get(n, n) for n in cls.columns or cls._formulas()}
        rows, heads = [None], [html.escape(h) for h in formulas.values()]
        if sliders:
            along = sliders[cls.sweep or next(iter(sliders))]
            rows = sweep_stops(along, self.values[along.name])
            unit = f" ({along.unit})" if along.unit else ""
            heads.insert(0, html.escape(along.label + unit))
        body = []
        for at in rows:
            overrides = {} if at is None else {along.name: at}
            cells = [
                show(self.compute(name, **overrides), cls.units.get(name, "")) for name in formulas
            ]
            if at is not None:
                cells.insert(0, format_value(along, at))
            mark = ' class="il-here"' if at is not None and at == self.values[along.name] else ""
            body.append(f"<tr{mark}>" + "".join(f"<td>{c}</td>" for c in cells) + "</tr>")
        pasted = {c.over: self.values[n] for n, c in cls._controls().items() if c.kind == "paste"}
        chosen = self.values | {over: value["name"] for over, value in pasted.items() if value}
        fixed = ", ".join(
            f"{c.label} {format_value(c, chosen[n])}"
            for n, c in cls._controls().items()
            if c.kind != "paste" and not (sliders and n == along.name)
        )
        caption = cls.title + (f" ({fixed})" if fixed else "")
        return (
            f"<table><caption>{html.escape(caption)}</caption><thead><tr>"
            + "".join(f"<th scope='col'>{h}</th>" for h in heads)
            + "</tr></thead><tbody>" + "".join(body) + "</tbody></table>"
        )  # fmt: skip

    def __repr__(self) -> str:
        cls = type(self).explorer()
        settings = ", ".join(f"{name}={value!r}" for name, value in self.values.items())
        return f"{cls.__name__}({settings})"

    def _repr_mimebundle_(self, **kwargs):
        bundle = super()._repr_mimebundle_(**kwargs)
        data = bundle[0] if isinstance(bundle, tuple) else bundle
        data["text/plain"] = repr(self)
        data["text/html"] = self.fallback
        return bundle


@cache
def shared_scripts() -> str:
    """The shared scripts as one text, to lead a module where no page brings them."""
    return "".join((STATIC / name).read_text("utf-8") for name in SHARED)


def sweep_stops(slider: Slider, here: float, count: int = 6) -> list[float]:
    """About `count` values along a slider, both ends and its present value among them."""
    if slider.stops:
        every = max(1, round(len(slider.stops) / count))
        stops = set(slider.stops[::every]) | {slider.stops[-1]}
    else:
        low, high = slider.low, slider.high
        parts = [i / (count - 1) for i in range(count)]
        if slider.log:
            stops = {float(f"{low * (high / low) ** p:.2g}") for p in parts[1:-1]} | {low, high}
        else:
            stops = {low + (high - low) * p for p in parts}
        if slider.integer:
            stops = {round(s) for s in stops}
    return sorted({min(max(s, slider.low), slider.high) for s in stops} | {here})


def format_value(control, value) -> str:
    """A control's value as the reader sees it."""
    if control.kind == "toggle":
        return "on" if value else "off"
    if control.kind == "select":
        return html.escape(str(value))
    if control.format == "si":
        return html.escape(_trimmed(format_si(value, control.unit)))
    if control.format == "time":
        return format_duration(value)
    if control.format in ("money", "percent"):
        return show(value, {"money": "USD", "percent": "%"}[control.format])
    return _count(value)


def _trimmed(text: str) -> str:
    """312.0 TFLOP/s -> 312 TFLOP/s."""
    figure, _, rest = text.partition(" ")
    return f"{figure.rstrip('0').rstrip('.') if '.' in figure else figure} {rest}".rstrip()


def show(value: float, unit: str) -> str:
    """A result with its unit; a dash where the formula has no value."""
    value = float(value)
    if not math.isfinite(value):
        return "-" if math.isnan(value) else "∞" if value > 0 else "-∞"
    if unit == "s":
        return format_duration(value)
    if unit == "USD":
        return f"${_count(value)}"
    if unit in ("", "%") or unit.endswith("/byte") or (unit.isalpha() and unit.islower()):
        return html.escape(f"{_count(value)} {unit}".strip())  # 24,576 tokens, not 24.58 ktokens
    return html.escape(format_si(value, unit))


def _count(value: float) -> str:
    """A bare number: whole ones in full, others to four digits."""
    if float(value).is_integer() or abs(value) >= 10_000:
        return f"{value:,.0f}"
    return f"{value:,.4g}"


def snake_case(name: str) -> str:
    """PrefillFlops -> prefill_flops: where a widget's view is."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
