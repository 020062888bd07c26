"""The feedback page: formulas that a browser draws without a network, and no markup of a learner."""

import re

import pytest

from inferlab.grading.page import markdown, mathml


@pytest.mark.parametrize(
    "formula, drawn",
    [
        ("d = 4096", "<mi>d</mi><mo>=</mo><mn>4096</mn>"),
        # TeX takes one digit at a time.
        (r"\frac83 d", "<mfrac><mn>8</mn><mn>3</mn></mfrac><mi>d</mi>"),
        (r"\frac{1}23", "<mfrac><mn>1</mn><mn>2</mn></mfrac><mn>3</mn>"),
        ("x^23", "<msup><mi>x</mi><mn>2</mn></msup><mn>3</mn>"),
        ("10^{21}", "<msup><mn>10</mn><mn>21</mn></msup>"),
        ("1{,}555", "<mn>1,555</mn>"),
        ("a<b", "<mi>a</mi><mo>&lt;</mo><mi>b</mi>"),
    ],
)
def test_a_formula_in_mathml(formula, drawn):
    assert mathml(formula) == f"<math>{drawn}</math>"


def test_formulas_in_text():
    page = markdown("With $d = 4096$:\n\n$$\n\\frac83 d\n$$\n\n# About $N$\n")
    assert page.count("<math") == 3 and "$" not in page
    assert '<math display="block"><mfrac>' in page
    assert "<math" in markdown("\\begin{align}a &= b \\\\ c &= d\\end{align}")


@pytest.mark.parametrize(
    "text",
    [
        r"$\nosuch{x}$",
        r"$\frac$",
        "$" + "{" * 1500 + "$",
        "$" + "x" * 3000 + "$",
        r"$$\nosuch$$",
        r"\begin{nosuch}a\end{nosuch}",
        "From $5 and up to $6 an hour",
    ],
)
def test_what_is_no_formula_stays_as_it_is_typed(text):
    assert markdown(text).strip() == f"<p>{text}</p>"


@pytest.mark.parametrize("around", ["${}$", "$${}$$", r"$\text{{{}}}$", r"$\nosuch {}$", r"$$\nosuch {}$$",
                                    r"\begin{{align}}{}\end{{align}}", r"\begin{{nosuch}}{}\end{{nosuch}}",
                                    "![${}$](x.png)", "# Title ${}$"])  # fmt: skip
@pytest.mark.parametrize("attack", ["<script>alert(1)</script>", '<img src=x onerror="alert(1)">',
                                    "<!-- x", "</math><svg/onload=alert(1)>", "&lt;script>alert(1)&lt;/script>"])  # fmt: skip
def test_nothing_in_a_formula_becomes_markup(around, attack):
    page = markdown(around.format(attack))
    ours = r"/?(p|h1|a|math|m[a-z]+|img)\b"
    assert all(re.match(ours, tag) for tag in re.findall(r"<(.{0,20})", page, re.DOTALL)), page
    # The only image is that of the text, and no attribute is the attack's.
    assert page.count("<img") == around.count("![")
    assert not re.search(r"<[^<>\"]*(\"[^\"]*\"[^<>\"]*)*\son\w+=", page), page


def test_a_link_runs_nothing():
    assert "javascript:" not in markdown("[an answer](javascript:alert(1))")


def test_a_picture_that_is_not_there_is_said():
    shown = markdown("![a <img src=x>](attachment:a.png)", {})
    assert "is not in the notebook" in shown and "<img" not in shown
