"""check() alone: what counts as the right answer, and one sentence for everything else."""

import hashlib
import json
import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
import sympy
from matplotlib.figure import Figure
from sympy.physics import units

from inferlab.feedback import Exercise, seal, values
from inferlab.feedback.exercise import NotYet
from inferlab.grading.checks import (
    AnswerKey,
    Wrong,
    choice,
    essay,
    expression,
    function,
    number,
    plot,
)
from inferlab.quantities import InputError

B, d = sympy.symbols("B d", positive=True)


def a_key():
    """One question of each kind."""
    about = {"points": 1, "purpose": "test", "hint": "General hint."}
    return AnswerKey(
        "demo",
        "A demo",
        [
            number("seconds", 0.0097, by_hand=0.0097, unit="s", **about,
                   wrong=[Wrong("milliseconds", 9.7, "In seconds, please."),
                          Wrong("half", 0.00485, "Both ways count.")]),
            number("tokens", 3000, by_hand=3000, rtol=1e-6, **about,
                   wrong=[Wrong("off by one", 2999, "And the last one."),
                          Wrong("twice", 6000, "Only once.")]),
            number("never", math.inf, by_hand=math.inf, **about,
                   wrong=[Wrong("zero", 0, "The other end."), Wrong("minus", -math.inf, "Upwards.")]),
            expression("formula", B * d / (d + 2 * B), symbols="B d", **about,
                       wrong=[Wrong("twice", 2 * B * d / (d + 2 * B), "Two too many."),
                              Wrong("batch", B, "More to it.")]),
            function("pair", lambda n: [n, n + 0.5], probes=[(1,), (2,)], **about,
                     wrong=[Wrong("swapped", lambda n: [n + 0.5, n], "Turn them around."),
                            Wrong("one", lambda n: n, "Two values.")]),
            choice("side", "memory-bound", options=["memory-bound", "compute-bound", "neither"], **about,
                   wrong=[Wrong("other", "compute-bound", "The other side."),
                          Wrong("none", "neither", "One it is.")]),
            plot("drawing", line, at=[2, 5], marks=1, **about,
                 wrong=[Wrong("linear", lambda: line(scale="linear"), "Logarithmic."),
                        Wrong("no point", lambda: line(marked=False), "Mark it.")]),
            number("days", 31.5, by_hand=31.5, unit="d", **about,
                   wrong=[Wrong("hours", 756, "In days."), Wrong("half", 15.75, "Twice that.")]),
            function("least", lambda n: n / 2, probes=[(3,), (8,)], unit="s", **about,
                     wrong=[Wrong("whole", lambda n: n, "Half."),
                            Wrong("double", lambda n: 2 * n, "Half, not double.")]),
            choice("cached", "the KV cache's dtype, prefix", options=["the KV cache's dtype, prefix", "a", "b"],
                   **about, wrong=[Wrong("a", "a", "Not a."), Wrong("b", "b", "Not b.")]),
            expression("sides", sympy.Symbol("pi") * sympy.Symbol("I"), symbols="I pi", **about,
                       wrong=[Wrong("one", "I", "And the other."), Wrong("other", "pi", "And one.")]),
            essay("words", points=2, purpose="explain", rubric=[(2, "Explains.")]),
        ],
    )  # fmt: skip


def line(scale="log", marked=True, height=3.0, label="x", last=10, style="-", at=4, over=1):
    axes = Figure().add_subplot()
    axes.plot([1, last], [height, height], style)
    if marked:
        axes.scatter([at], [over * height])
    axes.set(xscale=scale, yscale=scale, xlabel=label, ylabel="y")
    return axes


@pytest.fixture
def check(tmp_path, monkeypatch):
    """The checker of a sealed file beside the notebook."""
    (tmp_path / "demo.json").write_text(json.dumps(a_key().sealed()))
    monkeypatch.chdir(tmp_path)
    return Exercise("demo").check


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("seconds", 0.0097),
        ("seconds", np.float32(0.0097)),
        ("seconds", np.array([0.0097])),
        ("seconds", [0.0097]),
        ("seconds", sympy.solve(d - sympy.Rational(97, 10_000), d)),
        ("seconds", Fraction(97, 10_000)),
        ("seconds", sympy.Rational(97, 10_000)),
        ("seconds", 0.00975),  # within a hundredth
        ("seconds", 9.7 * units.millisecond),
        ("seconds", sympy.Rational(97, 10) * units.milli * units.second),
        ("tokens", 3000.0),
        ("tokens", sympy.Integer(3000)),
        ("tokens", {3000}),
        ("tokens", {d: 3000}),
        ("tokens", sympy.solve(sympy.Eq(d, 3000), d, dict=True)),
        ("tokens", sympy.solve([sympy.Eq(d, 3000)], [d])),
        ("tokens", sympy.solveset(sympy.Symbol("x") - 3000)),
        ("days", 31.5),
        ("days", 31.5 * units.day),
        ("days", 756 * units.hour),
        ("never", sympy.oo),
        ("never", np.inf),
        ("formula", 1 / (1 / B + 2 / d)),
        ("formula", sympy.Symbol("B") * sympy.Symbol("d") / (sympy.Symbol("d") + 2 * sympy.Symbol("B"))),
        ("formula", "B*d/(d+2*B)"),
        ("formula", [B * d / (d + 2 * B)]),
        ("formula", B * d / (d + 2.0 * B)),
        ("formula", "s.B * s.d / (s.d + 2*s.B)"),
        ("least", lambda n: [n / 2]),
        ("least", lambda n: np.array([n / 2])),
        ("least", lambda n: np.array([[n / 2]])),
        ("least", lambda n: n / 2 * units.second),
        ("pair", lambda n: (n, n + 0.5)),
        ("pair", lambda n: np.array([n, n + 0.5])),
        ("side", "Memory-bound"),
        ("side", "memory bound "),
        ("side", "MEMORY-BOUND."),
        ("cached", "The KV caches dtype,prefix"),
        ("cached", "the KV cache\u2019s dtype, prefix"),
    ],
)  # fmt: skip
def test_equivalent_answers_are_right(check, capsys, question, answer):
    check(question, answer)
    assert f"✓ {question}: right." in capsys.readouterr().out


def test_plots_are_read_from_axes_and_figures(check, capsys):
    for answer in (line(), line().figure, line(height=3.05)):
        check("drawing", answer)
        assert "✓ drawing: right." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("question", "answer", "sentence"),
    [
        ("seconds", ..., "Not answered yet"),
        ("seconds", None, "Not answered yet"),
        ("seconds", "0.0097", "remove the quotes"),
        ("seconds", "9.7 ms", "and a unit if there is one"),
        ("seconds", True, "True or False"),
        ("seconds", np.bool_(True), "True or False"),
        ("seconds", lambda: 1, "call it"),
        ("seconds", [0.0097, 1], "several values"),
        ("seconds", np.array([1, 2]), "several values"),
        ("seconds", 1 + 2j, "complex"),
        ("seconds", float("nan"), "NaN"),
        ("seconds", sympy.nan, "NaN"),
        ("seconds", d, "still contains d"),
        ("seconds", 0.0097 * units.byte, "comes in B, and the question asks for seconds"),
        (
            "tokens",
            3000 * units.second,
            "comes in s, and the question asks for a plain number: give it alone, without a unit.",
        ),
        ("days", 31.5 * units.byte, "asks for days: a quantity of another kind."),
        ("days", 31.5e3, "1,000 times too large. It is asked for in days."),
        ("tokens", (3, 0), "If it is one: write 3000 or 3_000; a comma makes several values."),
        ("tokens", (1, 310, 982, 144, 0), "write 1310982144000 or 1_310_982_144_000;"),
        ("least", lambda n: [n, n], "least(3) does not return one number. That is several values"),
        ("least", lambda n: "1.5", "least(3) does not return one number. That is a text in quotes"),
        ("least", lambda n: n / 2 * units.byte, "asks for seconds: a quantity of another kind."),
        ("formula", "2Bd", "remove the quotes, and write every *"),
        ("formula", "Bd", "The answer uses Bd; this question has only B, d. Write every *."),
        (
            "sides",
            sympy.pi * sympy.Symbol("I"),
            "constant sympy.pi; the symbol of this question is s.pi.",
        ),
        (
            "sides",
            sympy.I * sympy.Symbol("pi"),
            "constant sympy.I; the symbol of this question is s.I.",
        ),
        ("seconds", 0.0097 * units.second**2, "a quantity of another kind"),
        ("seconds", object(), "not the kind of answer"),
        (
            "seconds",
            Figure(),
            "it is a Figure, and a number is wanted. Do you mean one of its values?",
        ),
        ("seconds", 9.7e3, "it is 1,000,000 times too large. It is asked for in seconds."),
        ("seconds", 9.7e-6, "it is 1,000 times too small. It is asked for in seconds."),
        ("tokens", 3, "it is 1,000 times too small."),
        ("tokens", 3.1, "General hint."),
        ("formula", [B, d], "one formula is wanted"),
        ("seconds", 0.012, "General hint."),
        ("seconds", 9.7, "In seconds, please."),
        ("tokens", 10**400, "General hint."),
        ("formula", ..., "Not answered yet"),
        ("formula", sympy.Symbol("x"), "this question has only B, d"),
        ("formula", sympy.Eq(d, B), "right-hand side"),
        ("formula", "B*(", "not a formula"),
        ("formula", lambda B, d: B, "a formula is wanted"),
        ("formula", 3 * B, "not right at B ="),
        ("pair", 3, "without () after it"),
        ("pair", lambda n: None, "… pair: Not answered yet: the function returns nothing."),
        ("pair", lambda n: n if n == 1 else None, "returns nothing: does every path"),
        ("pair", lambda n: n / 0, "pair(1) stopped with ZeroDivisionError"),
        ("pair", lambda: 1, "stopped with TypeError"),
        ("pair", lambda n: [n] * 1000, "far more"),
        ("pair", lambda n: [n, n], "not right for pair(1). General hint."),
        ("side", 3, "in quotes"),
        ("side", "both", "not one of the options"),
        ("drawing", ..., "Not answered yet"),
        ("drawing", 3, "pass the Axes"),
        ("drawing", Figure().subplots(), "… drawing: Not answered yet: nothing is drawn"),
        (
            "drawing",
            line(height=9.0),
            "not right at 2, where your curve has the height 9. General hint.",
        ),
        ("drawing", line(label=""), "The horizontal axis has no label, and both need one."),
        ("drawing", line(last=4), "At 5 on the horizontal axis no curve is drawn."),
        ("drawing", line(marked=False, style="o-"), "Marked points wanted: 1, found: 0."),
        ("drawing", line(at=3), "The marked point is not in its place: it is at 3 on the"),
        ("drawing", line(over=2), "The marked point has the wrong height, 6. General hint."),
        ("dawring", 3, "There is no question 'dawring' here"),
    ],
    ids=lambda value: None if isinstance(value, str) else type(value).__name__,
)
def test_everything_else_has_its_own_sentence(check, question, answer, sentence):
    with pytest.raises(NotYet) as told:
        check(question, answer)
    assert sentence in str(told.value)
    assert told.value._render_traceback_() == [str(told.value)]


def test_a_fault_of_a_drawing_is_named_without_a_hint_that_is_about_another(check):
    for answer, fault in (
        (line(label=""), "✗ drawing: The horizontal axis has no label, and both need one."),
        (line(last=4), "✗ drawing: At 5 on the horizontal axis no curve is drawn."),
        (line(scale="symlog"), "✗ drawing: The horizontal axis is neither linear nor log, which is"
         " not what the question asks for."),
        (line(at=3), "✗ drawing: The marked point is not in its place: it is at 3 on the horizontal"
         " axis."),
    ):  # fmt: skip
        with pytest.raises(NotYet) as told:
            check("drawing", answer)
        assert str(told.value) == fault
        got = values.read(a_key()["drawing"].spec, answer)
        assert a_key().judge("drawing", {"values": got}).sentence == fault.split(": ", 1)[1]


@pytest.mark.parametrize(
    "help",
    [
        lambda axes: axes.fill_between([1, 10], [3, 3], alpha=0.2),
        lambda axes: axes.hlines([1, 2], 1, 10),
        lambda axes: axes.vlines([4], 1, 3),
        lambda axes: axes.axhline(2),
        lambda axes: axes.axvline(4),
        lambda axes: axes.plot([1, 4], [5, 5], "--"),
        lambda axes: axes.plot([4, 4], [1, 3], ":"),
    ],
)
def test_guides_and_areas_are_neither_points_nor_the_curve(check, capsys, help):
    axes = Figure().add_subplot()
    help(axes)
    axes.plot([1, 10], [3, 3])
    axes.plot([4], [3], "o")
    axes.set(xscale="log", yscale="log", xlabel="x", ylabel="y")
    check("drawing", axes)
    assert "✓ drawing: right." in capsys.readouterr().out


def test_a_point_that_nobody_sees_is_not_marked(check):
    for style in ("", "-"):
        axes = line(marked=False)
        axes.plot([4], [3], style)
        with pytest.raises(NotYet, match="Marked points wanted: 1, found: 0"):
            check("drawing", axes)


@pytest.mark.parametrize("value", ["x" * 1000, True, math.inf, -1, 0])
def test_the_grader_survives_a_drawing_of_nonsense(value):
    got = values.read(a_key()["drawing"].spec, line())
    for place in range(len(got)):
        verdict = a_key().judge("drawing", {"values": [*got[:place], value, *got[place + 1 :]]})
        assert verdict.points == 0 or verdict.status == "right"
        assert "xxx" not in verdict.sentence


def test_progress(check, capsys):
    check("tokens", 3000)
    out = capsys.readouterr().out
    assert "Done 1 of 11, 10 left; 1 of 11 points (2 more are given by a person)." in out
    check("side", "memory-bound")
    check("side", "memory-bound")
    assert "Done 2 of 11, 9 left" in capsys.readouterr().out
    with pytest.raises(NotYet):
        check("tokens", 1)
    check("formula", B * d / (d + 2 * B))
    assert "Done 2 of 11" in capsys.readouterr().out


def test_in_a_chapter_nothing_is_raised(tmp_path, monkeypatch, capsys):
    (tmp_path / "demo.json").write_text(json.dumps(a_key().sealed(calm=True)))
    monkeypatch.chdir(tmp_path)
    check = Exercise("demo").check
    check("tokens", ...)
    assert capsys.readouterr().out.startswith("… tokens: Not answered yet")


def test_tolerance():
    for value in (1.0, 200.64, 3e-7, -5.0):
        for rtol in (0.01, 1e-6):
            assert values.same(value * (1 + 0.99 * rtol), value, rtol)
            assert values.same(value / (1 + 0.99 * rtol), value, rtol)
            assert not values.same(value * (1 + 2.1 * rtol), value, rtol)
            assert not values.same(-value, value, rtol)
    assert not values.same(0.0, 1e-9, 0.01)


# --- the seal -------------------------------------------------------------------------------


def test_the_stretching_is_pbkdf2_with_and_without_openssl():
    # The first test vector of RFC 7914, section 11, cut to 32 bytes.
    want = "55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc"
    assert seal.stretch("passwd", b"salt", 1).hex() == want
    assert seal._stretch_in_python(b"passwd", b"salt", 1).hex() == want
    many = hashlib.pbkdf2_hmac("sha256", b"a", b"b", 50)
    assert seal._stretch_in_python(b"a", b"b", 50) == many


def test_a_sealed_message_opens_for_its_own_text_only():
    sealed = [seal.seal("one hint", "first", b"salt"), seal.seal("another hint", "second", b"salt")]
    assert seal.unseal(sealed, "second", b"salt") == "another hint"
    assert seal.unseal(sealed, "third", b"salt") is None
    assert seal.unseal(sealed, "second", b"pepper") is None
    assert "hint" not in "".join(sealed) and b"hint" not in bytes.fromhex("".join(sealed))


def test_check_needs_no_more_than_a_browser_has():
    """hashlib and SymPy: neither NumPy nor Matplotlib nor IPython nor the grader is loaded."""
    program = (
        "import sys\n"
        "from inferlab.feedback import Exercise\n"
        "Exercise('3-roofline').check('ridge', 312/1.555)\n"
        "heavy = {'numpy', 'matplotlib', 'IPython', 'nbgrader', 'inferlab.grading'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


# --- keys that could mislead are refused ------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"by_hand": 3100}, "by hand"),
        ({"wrong": [Wrong("a", 1, "A.")]}, "at least two"),
        ({"wrong": [Wrong("a", 3000, "A."), Wrong("b", 2, "B.")]}, "would pass"),
        ({"wrong": [Wrong("a", 7, "A."), Wrong("b", 7.01, "B.")]}, "same values"),
        ({"wrong": [Wrong("a", "7", "A."), Wrong("b", 8, "B.")]}, "cannot be read"),
        ({"points": 0}, "points above 0"),
        ({"hint": ""}, "a hint"),
    ],
)
def test_a_key_that_could_mislead_is_refused(change, reason):
    about = {
        "by_hand": 3000,
        "points": 1,
        "purpose": "test",
        "hint": "Count.",
        "wrong": [Wrong("a", 1, "A."), Wrong("b", 2, "B.")],
    } | change
    with pytest.raises(InputError, match=reason):
        AnswerKey("demo", "A demo", [number("tokens", 3000, **about)])


def test_a_rubric_has_to_add_up():
    with pytest.raises(InputError, match="rubric"):
        AnswerKey("demo", "A demo", [essay("words", points=3, purpose="x", rubric=[(1, "One.")])])


# --- the trusted comparison ------------------------------------------------------------------


@pytest.mark.parametrize(
    "receipt",
    [
        None,
        [],
        "right",
        {},
        {"values": 3000},
        {"values": []},
        {"values": [3000, 3000]},
        {"values": [{"value": 3000}]},
        {"values": [[3000]]},
        {"values": [None]},
        {"values": [float("nan")]},
        {"values": [10**400]},
        {"values": ["x" * 100_000]},
        {"status": "right", "points": 1},
        {"problem": "no such problem"},
        {"problem": ["unanswered"]},
    ],
    ids=repr,
)
def test_nothing_malformed_earns_a_point(receipt):
    verdict = a_key().judge("tokens", receipt)
    assert verdict.points == 0
    assert verdict.status in ("no receipt", "invalid")


def test_the_grader_knows_a_number_in_another_unit():
    verdict = a_key().judge("seconds", {"question": "seconds", "values": [9.7e6]})
    assert (verdict.points, verdict.status, verdict.mistake) == (0, "mistake", "size of the unit")
    assert "1,000,000,000 times too large" in verdict.sentence


@pytest.mark.parametrize("value", ["9.7 s", True, 0, math.inf, -9.7, 1e-320])
def test_what_is_no_number_in_another_unit_is_just_wrong(value):
    assert a_key().judge("seconds", {"question": "seconds", "values": [value]}).status == "wrong"


def test_without_a_receipt_the_learner_is_told_why():
    assert "ended in an error" in a_key().judge("tokens", None).sentence


def test_a_plain_right_value_earns_its_points():
    assert a_key().judge("tokens", {"question": "tokens", "values": [3000]}).points == 1
