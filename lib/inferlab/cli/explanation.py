"""Each number of `inferlab count` as the formula that it came from, with the numbers put in.

Nothing is written twice: the formulas are what the library's own functions return when a model's
sizes are symbols.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass

import sympy

from inferlab.accounting import Accounting
from inferlab.architecture import Architecture
from inferlab.quantities import bytes_per_element, plain, to_sympy
from inferlab.step import Sequence, step

MEANINGS = {
    "L": "layers", "d": "hidden size", "h": "query heads", "h_kv": "KV heads", "d_h": "head dimension",
    "V": "vocabulary", "f": "FFN width", "W": "window", "L_w": "windowed layers", "P": "learned positions",
    "q": "query and key norm parameters a layer", "w": "width of the token table", "E": "experts",
    "k": "experts a token", "f_e": "width of an expert", "L_e": "layers with experts",
    "f_s": "width of the shared experts", "r_q": "rank of the query", "r": "rank of the latent",
    "d_n": "head part without position", "d_r": "head part with rotary position", "d_v": "value head",
    "n": "new tokens", "s": "cached tokens", "T": "tokens of the step",
}  # fmt: skip


def explain(model: Architecture, sequences, accounting, dtypes: dict, work) -> list[dict]:
    """A row for each number: quantity, formula, values of its symbols, substituted, result, unit."""
    shapes, values = with_symbols(model)
    sizes = {key: to_sympy(bytes_per_element(dtype)) for key, dtype in dtypes.items()}
    rows = _parameters(model, shapes, values)
    cached = shapes.layers * shapes.kv_elements_per_layer(accounting.mla) * sizes["kv"]
    rows.append(_row("KV cache a token", cached, values, "B"))
    if not work:
        return rows
    symbolic = _Step(shapes, values, sequences, accounting, sizes)
    rows += [symbolic.flops(name) for name, part in work.components.items() if part.flops]
    rows.append(_sum("FLOPs", rows, "FLOPs of ", work.flops, "FLOP"))
    traffic = [symbolic.weights(work.weights)]
    for kind, name in (
        ("kv_read", "KV read"),
        ("kv_write", "KV written"),
        ("activations", "activations"),
    ):
        if getattr(work, kind):
            traffic.append(symbolic.traffic(kind, name))
    rows += traffic
    rows.append(_sum("bytes", traffic, "", work.bytes, "B"))
    intensity = {
        "quantity": "arithmetic intensity",
        "formula": "FLOPs / bytes",
        "values": {},
        "substituted": [f"{work.flops:,} / {work.bytes:,}"],
        "result": float(work.intensity),
        "unit": "FLOP/B",
    }
    return [*rows, intensity]


def legend(model: Architecture) -> str:
    """What the symbols stand for, with this model's values."""
    _, values = with_symbols(model)
    sizes = [f"{symbol} = {value} ({MEANINGS[str(symbol)]})" for symbol, value in values.items()]
    others = [f"{name} ({MEANINGS[name]})" for name in ("n", "s", "T")]
    return f"{model.name}: " + ", ".join(sizes + others)


def with_symbols(model: Architecture) -> tuple[Architecture, dict]:
    """The model with symbols for its sizes, and the value of each symbol."""
    values: dict[sympy.Symbol, int] = {}

    def symbol(name, value):
        values[sympy.Symbol(name, positive=True)] = to_sympy(value)
        return sympy.Symbol(name, positive=True)

    sizes = {"layers": "L", "hidden": "d", "heads": "h", "vocab": "V", "ffn": "f"}
    if not model.mla:
        sizes |= {"kv_heads": "h_kv", "head_dim": "d_h"}
    if model.windowed_layers:
        sizes |= {"window": "W", "windowed_layers": "L_w"}
    for field, name in (("qk_norm", "q"), ("embedding_dim", "w"), ("learned_positions", "P")):
        if getattr(model, field):
            sizes[field] = name
    changes = {field: symbol(name, getattr(model, field)) for field, name in sizes.items()}
    if model.moe:
        names = {"experts": "E", "active": "k", "ffn": "f_e", "layers": "L_e"}
        if model.moe.shared_ffn:
            names["shared_ffn"] = "f_s"
        opened = {field: symbol(name, getattr(model.moe, field)) for field, name in names.items()}
        changes["moe"] = dataclasses.replace(model.moe, **opened)
    if model.mla:
        names = {"kv_rank": "r", "nope_dim": "d_n", "rope_dim": "d_r", "v_dim": "d_v"}
        if model.mla.q_rank is not None:
            names["q_rank"] = "r_q"
        opened = {field: symbol(name, getattr(model.mla, field)) for field, name in names.items()}
        changes["mla"] = dataclasses.replace(model.mla, **opened)
    return model.but(position_limit=None, **changes), values


def _parameters(model, shapes, values) -> list[dict]:
    groups = shapes.parameters.groups
    rows = [
        _row(f"parameters of {name}", groups[name], values, "")
        for name, count in model.parameters.groups.items()
        if count
    ]
    total = _sum("parameters", rows, "parameters of ", model.parameters.total, "")
    active = _row("active parameters", shapes.parameters.active, values, "")
    return [*rows, total, active]


@dataclass(frozen=True)
class _Step:
    """A step of a model in symbols: their values, and what is counted, in dtypes of which sizes."""

    shapes: Architecture
    values: dict
    sequences: list[Sequence]
    accounting: Accounting
    sizes: dict

    def flops(self, name) -> dict:
        """FLOPs of a component: one formula, put in for each sequence, and summed."""
        return self._summed(f"FLOPs of {name}", "FLOP", lambda work: work.components[name].flops)

    def traffic(self, kind, name) -> dict:
        """Bytes of one kind, such as kv_read, in the same way."""
        return self._summed(name, "B", lambda work: getattr(work, kind))

    def weights(self, result) -> dict:
        """Bytes of weights, which all sequences share: a formula of the tokens of the step."""
        tokens = sympy.Symbol("T", positive=True)
        formula = self._work(tokens, 0).weights
        put = self.values | {tokens: sum(s.new for s in self.sequences)}
        return _row("weights", formula, put, "B", result)

    def _work(self, new, cached):
        return step(self.shapes, [Sequence(new, cached)], self.accounting, **self.sizes)

    def _summed(self, quantity, unit, of) -> dict:
        # Nothing cached is a case of its own: a prefill of MLA expands its latent.
        n, s = sympy.Symbol("n", positive=True), sympy.Symbol("s", positive=True)
        formulas, numbers = {}, []
        for each in self.sequences:
            cached = s if each.cached else 0
            if cached not in formulas:
                formulas[cached] = of(self._work(n, cached))
            numbers.append((formulas[cached], self.values | {n: each.new, s: each.cached}))
        shown = [_substituted(*each) for each in numbers[:3]]
        if len(numbers) > 1:
            shown[1:] = [f"  + {line}" for line in shown[1:]]
        if len(numbers) > 3:
            shown.append(f"  + {len(numbers) - 3} sequences more")
        return {
            "quantity": quantity,
            "formula": "; with nothing cached ".join(
                map(_printed, sorted(formulas.values(), key=str, reverse=True))
            ),
            "values": _values(sum(formulas.values()), numbers[0][1]),
            "substituted": shown,
            "result": _number(sum(formula.subs(put) for formula, put in numbers)),
            "unit": unit,
        }


def _sum(quantity, rows, prefix, result, unit) -> dict:
    parts = [row for row in rows if row["quantity"].startswith(prefix)]
    return {
        "quantity": quantity,
        "formula": " + ".join(row["quantity"].removeprefix(prefix) for row in parts),
        "values": {},
        "substituted": [" + ".join(f"{row['result']:,}" for row in parts)],
        "result": _number(sympy.sympify(result)),
        "unit": unit,
    }


def _row(quantity, formula, put, unit, result=None) -> dict:
    """A formula with numbers put in. result: the value, where it is known more exactly."""
    formula = sympy.sympify(formula)
    return {
        "quantity": quantity,
        "formula": _printed(formula),
        "values": _values(formula, put),
        "substituted": [_substituted(formula, put)],
        "result": _number(formula.subs(put)) if result is None else result,
        "unit": unit,
    }


def _values(formula, put) -> dict:
    return {
        str(symbol): _number(sympy.sympify(value))
        for symbol, value in put.items()
        if symbol in formula.free_symbols
    }


def _printed(formula) -> str:
    text = sympy.sstr(formula).replace("**", "^").replace("*", "·")
    return text.replace("Min(", "min(").replace("Max(", "max(")


def _substituted(formula, put) -> str:
    numbers = {str(symbol): str(value) for symbol, value in put.items()}
    return re.sub(r"[A-Za-z_]\w*", lambda found: numbers.get(found[0], found[0]), _printed(formula))


def _number(value):
    value = sympy.nsimplify(value) if value.is_Float else value
    return int(value) if value.is_Integer else plain(float(value))
