"""Every exercise: full marks for the reference, none for nothing, its own hint for each mistake."""

import json

import nbformat
import numpy as np
import pytest
import sympy
from matplotlib.figure import Figure
from sympy.physics import units

from inferlab.derive import symbols as s
from inferlab.feedback import Exercise
from inferlab.feedback.exercise import NotYet
from inferlab.feedback.values import read
from inferlab.grading import execute, normalise, release
from inferlab.grading.release import BEGIN, END
from inferlab.grading.sandbox import Limits


def graded(source, notebook):
    """Points by question after a run in the sandbox, as the batch grader gives them."""
    raw = nbformat.writes(notebook).encode()
    submission = normalise.normalise(source, normalise.read_notebook(raw))
    assert submission.notes == []
    result = json.loads(execute.execute(execute.job(submission, source.key, Limits())))
    assert result["stopped"] == {}
    emitted = execute.receipts(result, submission)
    return {q.id: source.key.judge(q.id, emitted.get(q.id)) for q in source.key.automatic}


def answer_of(question, answer):
    return answer() if question.spec["kind"] == "plot" else answer


@pytest.mark.needs("bubblewrap")
def test_the_reference_earns_full_marks(sources, exercise):
    source = sources[exercise]
    points = {id: verdict.points for id, verdict in graded(source, source.reference).items()}
    assert points == {question.id: question.points for question in source.key.automatic}


@pytest.mark.needs("bubblewrap")
def test_the_untouched_notebook_earns_nothing(sources, exercise):
    source = sources[exercise]
    verdicts = graded(source, source.released)
    assert all(verdict.points == 0 for verdict in verdicts.values())
    # None of them is taken for a wrong answer either.
    assert {v.status for v in verdicts.values()} == {"unanswered"}
    assert all(v.sentence.startswith("Not answered yet") for v in verdicts.values())


def test_right_answers_pass_alone(keys, key_name, capsys):
    check = Exercise(key_name).check
    for question in keys[key_name].automatic:
        check(question.id, answer_of(question, question.answer))
        assert f"✓ {question.id}: right." in capsys.readouterr().out


def test_each_named_mistake_gets_its_own_hint_and_no_other(keys, key_name, capsys):
    key = keys[key_name]
    check = Exercise(key_name).check
    for question in key.automatic:
        hints = {wrong.hint for wrong in question.wrong} | {question.hint}
        for wrong in question.wrong:
            try:
                check(question.id, answer_of(question, wrong.answer))
                told = capsys.readouterr().out  # a chapter prints
            except NotYet as sentence:
                told = str(sentence)
            assert told.startswith("✗ ") and wrong.hint in told, (question.id, wrong.name)
            assert not [h for h in hints - {wrong.hint} if h in told], (question.id, wrong.name)
            # The batch grader says the same, by the same mistake's name.
            values = read(question.grading_spec, answer_of(question, wrong.answer))
            receipt = json.loads(json.dumps({"question": question.id, "values": values}))
            verdict = key.judge(question.id, receipt)
            assert (verdict.points, verdict.mistake, verdict.sentence) == (
                0,
                wrong.name,
                wrong.hint,
            )


def test_a_cache_that_needs_a_first_token_fails_alone_as_it_does_in_grading(sources):
    attend = sources["2-prefill-decode"].key["attend"].answer

    def needs_one(keys, values, key, value, query):
        return attend(keys, values, key, value, query)[: len(values[0])]

    with pytest.raises(NotYet, match=r"attend\(\[\], \[\], .* stopped with IndexError"):
        Exercise("2-prefill-decode").check("attend", needs_one)


def test_the_committed_files_are_what_the_sources_make(folder):
    stale = [
        path.name
        for path, text in release.release(folder).items()
        if not path.is_file() or path.read_text("utf-8") != text
    ]
    assert stale == [], "run python -m inferlab.grading.release"


def test_nothing_is_released_that_has_no_source(folder, keys):
    made = set(release.release(folder))
    seals = next(path.parent for path in made if path.suffix == ".json")
    there = {*(folder / "released").glob("*.ipynb"), *seals.glob("*.json")}
    assert there == made


def test_an_exercise_asks_enough(sources, exercise):
    key = sources[exercise].key
    kinds = [question.spec["kind"] for question in key.automatic]
    assert 8 <= len(kinds) <= 12
    assert {"number", "expression", "function", "plot"} <= set(kinds)
    assert sum(question.by_person for question in key.questions) == 1


def test_the_page_for_instructors_counts_right(sources, folder):
    page = (folder / "README.md").read_text("utf-8")
    for name, source in sources.items():
        machine, person = len(source.key.automatic), len(source.key.questions)
        row = next(line for line in page.splitlines() if f"released/{name}.ipynb" in line)
        cells = [cell.split()[0] for cell in row.split("|")[2:4]]
        assert cells == [str(machine), str(person - machine)], name


# --- leaks -----------------------------------------------------------------------------------


def secret_texts(source):
    """Lines of the solutions, feedback on mistakes, and rubric: what no released file may hold."""
    shown = "\n".join(cell.source for cell in source.released.cells)
    inside, lines = False, []
    for cell in source.notebook.cells:
        for line in cell.source.split("\n"):
            if line.strip() in (BEGIN, END):
                inside = line.strip() == BEGIN
            elif inside and len(line.strip()) > 12 and line.strip() not in shown:
                lines.append(line.strip())
    return lines + key_texts(source.key)


def key_texts(key):
    hints = [wrong.hint for question in key.automatic for wrong in question.wrong]
    rubric = [text for question in key.questions for _, text in question.rubric]
    return hints + rubric


def spellings(text):
    """A text as it stands in a notebook or a page."""
    return {text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}


def test_no_released_file_shows_a_solution_or_a_mistakes_feedback(folder, sources, keys):
    texts = [text for source in sources.values() for text in secret_texts(source)]
    texts += [text for name in keys.keys() - sources.keys() for text in key_texts(keys[name])]
    assert len(texts) > 20
    for path, released in release.release(folder).items():
        found = [text for text in texts if any(s in released for s in spellings(text))]
        assert found == [], path.name
        assert "BEGIN SOLUTION" not in released, path.name


def test_no_sealed_file_shows_the_value_of_an_answer(keys, key_name, folder):
    key = keys[key_name]
    sealed = key.sealed()
    for question, released in zip(key.automatic, sealed["questions"], strict=True):
        public = json.dumps({name: released[name] for name in released if name != "right"})
        values = question.values(question.answer)
        if question.spec["kind"] in ("number", "plot"):
            shown = [
                v for v in values if isinstance(v, float) and abs(v) > 10 and repr(v) in public
            ]
            assert shown == [], question.id
        for probe in question.hidden:
            assert json.dumps(probe) not in public, question.id


def test_the_built_site_and_its_downloads_show_no_secret(site, sources, keys):
    texts = {text for source in sources.values() for text in secret_texts(source)}
    texts |= {text for name in keys for text in key_texts(keys[name])}
    pages = [p for p in site.rglob("*") if p.suffix in (".html", ".ipynb", ".js", ".json", ".txt")]
    assert len(pages) > 10
    leaks = [
        (page.name, text)
        for page in pages
        for content in [page.read_text("utf-8", errors="replace")]
        for text in texts
        if any(s in content for s in spellings(text))
    ]
    assert leaks == []


# --- answers that learners give ----------------------------------------------------------------


def says(name, question, answer, capsys):
    """What check() alone says."""
    try:
        Exercise(name).check(question, answer)
    except NotYet as sentence:
        return str(sentence)
    return capsys.readouterr().out


def drawing(*curve, point=None, style="o", helps=()):
    """A roofline as a learner may draw it: x and y of the curve, of the point, and guides."""
    axes = Figure().add_subplot()
    for draw_help in helps:
        draw_help(axes)
    axes.plot(*curve)
    if point:
        axes.plot([point[0]], [point[1]], style)
    axes.set(xscale="log", yscale="log", xlabel="FLOP/byte", ylabel="FLOP/s")
    return axes


def roof(first=0.1, last=10_000, **others):
    xs = [first, 312e12 / 1.555e12, last]
    others.setdefault("point", (1.0, 1.555e12))
    return drawing(xs, [min(312e12, x * 1.555e12) for x in xs], **others)


def fed(answers):
    axes = Figure().add_subplot()
    axes.plot(answers, [500 * n + n * (n - 1) / 2 for n in answers])
    axes.set(xlabel="generated", ylabel="fed")
    return axes


RIGHT = [
    ("1-training-inference", "training_days", 31.58 * units.day),
    ("1-training-inference", "training_days", 758 * units.hour),
    ("1-training-inference", "break_even", 50 * units.day),
    ("1-training-inference", "changes", "the KV cache."),
    ("1-training-inference", "frozen", "The number of kv-heads"),
    ("1-training-inference", "training_flop", "6 * s.P * s.D"),
    ("1-training-inference", "fed_without_cache", lambda p, a: [sum(p + i for i in range(a))]),
    ("1-training-inference", "draw_fed", fed(list(range(1, 1001, 100)))),
    ("1-training-inference", "draw_fed", fed([1 + 111 * i for i in range(10)])),
    ("3-roofline", "axes", "FLOP per byte moved,FLOP per second"),
    ("3-roofline", "bound_time", lambda f, b, p, w: np.array([max(f / p, b / w)])),
    ("3-roofline", "bound_time", lambda f, b, p, w: max(f / p, b / w) * units.second),
    ("3-roofline", "read_bandwidth", 812e9),
    ("3-roofline", "read_bandwidth", 988e9),
    ("3-roofline", "read_ridge", 180),
    ("3-roofline", "read_ridge", 220),
    ("3-roofline", "draw_roofline", roof(helps=[lambda a: a.fill_between([0.1, 1e4], [1e11, 1e12])])),
    ("3-roofline", "draw_roofline", roof(helps=[lambda a: a.hlines([312e12], 200, 1e4)])),
    ("3-roofline", "draw_roofline", roof(helps=[lambda a: a.vlines([200.6], 1e11, 312e12)])),
    ("3-roofline", "draw_roofline", roof(helps=[lambda a: a.axhline(312e12), lambda a: a.axvline(200)])),
    ("3-roofline", "draw_roofline", roof(helps=[lambda a: a.scatter([1], [1.555e12])], point=None)),
    ("chapter-03", "gpu_hours", 4_419_192 * units.hour),
    ("chapter-04", "kv_gigabytes", 6.44 * units.giga * units.byte),
    ("chapter-07", "step_seconds", 0.007),
    ("chapter-07", "step_seconds", 0.006986),
    ("chapter-09", "ridge_batch", 326.4),
    ("chapter-14", "step_seconds", 0.00699),
]  # fmt: skip


@pytest.mark.parametrize(("name", "question", "answer"), RIGHT)
def test_a_right_answer_in_another_dress_is_right(name, question, answer, capsys):
    assert f"✓ {question}: right." in says(name, question, answer, capsys)


WRONG = [
    # what passed though it is wrong
    ("3-roofline", "draw_roofline", roof(style=""), "Marked points wanted: 1, found: 0."),
    ("3-roofline", "draw_roofline", roof(first=0.9), "At 0.11 on the horizontal axis no curve"),
    ("3-roofline", "draw_roofline", roof(last=1200), "At 9000 on the horizontal axis no curve"),
    ("3-roofline", "draw_roofline", roof(point=(1, 1.05 * 1.555e12)), "the wrong height, 1.633e+12"),
    ("3-roofline", "draw_roofline", roof(point=(4, 6.22e12)), "not in its place: it is at 4 on"),
    ("3-roofline", "read_ridge", 175, "below the corner"),
    ("3-roofline", "read_ridge", 225, "below the corner"),
    ("3-roofline", "read_bandwidth", 780e9, "the same everywhere"),
    ("3-roofline", "read_bandwidth", 1010e9, "the same everywhere"),
    ("chapter-02", "token_ratio", 239.6, "with the cache you fed the last token too"),
    ("chapter-02", "token_ratio", 240.88, "the first pass reads the prompt alone"),
    ("chapter-02", "token_ratio", 238, "Write down how many"),
    ("chapter-02", "token_ratio", 243, "Write down how many"),
    ("chapter-09", "ridge_batch", 326, "the last whole batch before"),
    ("chapter-09", "ridge_batch", 327, "the first whole batch past"),
    ("chapter-09", "ridge_batch", 330, "How do FLOP and bytes"),
    # what got the hint of another mistake
    ("chapter-13", "requests", 106.88, "Give whole requests"),
    ("chapter-13", "requests", 107, "Round down, and count all"),
    ("chapter-07", "step_seconds", (2 * 8.03e9 + 8.394e9) / 3.35e12, "embedding table"),
    ("chapter-14", "step_seconds", (2 * 8.03e9 + 8.399e9) / 3.35e12, "embedding table"),
    ("chapter-14", "step_seconds", 23.408e9 / 1.555e12, "an A100 with 40 GB"),
    ("1-training-inference", "training_days", 15.8, "1,979 TFLOP/s, which is bf16 with sparsity or"),
    ("1-training-inference", "training_days", 10.53, "or you took 20 billion tokens"),
    ("1-training-inference", "training_days", 2_728_860, "Those are seconds"),
    ("1-training-inference", "inference_bytes", 16.2244e9, "does every layer have its own?"),
    ("1-training-inference", "inference_bytes", 37.3639e9, "four bytes a parameter"),
    ("1-training-inference", "training_bytes", 119.2, "in GiB"),
    ("1-training-inference", "fed_without_cache", lambda p, a: p + a, "prompt and answer, each read once"),
    ("1-training-inference", "fed_without_cache", lambda p, a: [1, 2], "fed_without_cache(3, 4) does not return one"),
    ("1-training-inference", "fed_without_cache", lambda p, a: "18", "That is a text in quotes"),
    ("1-training-inference", "training_flop", "6PD", "write every *"),
    ("3-roofline", "attainable", sympy.Min(sympy.pi, s.I * s.beta), "the symbol of this question is s.pi"),
    ("3-roofline", "attainable", s.I + s.beta, "which of the two ceilings is the lower one"),
    ("3-roofline", "smallest_batch", 401.3 / (1 - 401.3 / 2048), "your ridge point is twice as high"),
    ("3-roofline", "matmul_intensity", "m*k*n/(2*(m*k+k*n+m*n))", "2 bytes, not 4"),
    ("3-roofline", "ridge", 195, "rounded 1.6 TB/s"),
    ("chapter-04", "kv_gigabytes", 6.0, "That is in GiB"),
    ("chapter-10", "prefilled_tokens", (30, 579), "write 30579 or 30_579"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "question", "answer", "hint"), WRONG)
def test_a_wrong_answer_is_told_its_own_fault(name, question, answer, hint, capsys):
    told = says(name, question, answer, capsys)
    assert told.startswith("✗ ")
    assert hint.casefold() in told.casefold()


# What a learner who gave nothing, or nonsense, must not be told.
GIVEN_AWAY = {
    "chapter-14": ["step(", "roofline("],
    "chapter-09": ["(6d", "solve for B"],
    "chapter-08": ["Divide", "dense"],
    "1-training-inference": ["in fp32", "86,400", "Two FLOP", "Two bytes"],
    "3-roofline": ["sympy.Min", "2mkn", "Divide 2"],
}


@pytest.mark.parametrize("name", GIVEN_AWAY)
def test_a_hint_for_nonsense_gives_no_answer_away(keys, name):
    for question in keys[name].automatic:
        assert not [text for text in GIVEN_AWAY[name] if text in question.hint], question.id
        assert question.spec["kind"] != "plot" or "?" in question.hint


# --- refusals --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"x = ...\n{BEGIN}\nx = 1", "never closed"),
        (f"x = 1\n{END}", "where ### BEGIN SOLUTION is expected"),
        (f"{BEGIN}\nx = 1\n{BEGIN}\nx = 2\n{END}", "where ### END SOLUTION is expected"),
        (f"x = 1  {BEGIN}\nx = 2\n{END}", "is no marker"),
        ("# BEGIN SOLUTION\nx = 1\n# END SOLUTION", "is no marker"),
    ],
)
def test_malformed_solution_regions_are_refused(text, reason):
    with pytest.raises(release.InputError, match=reason):
        release.without_solutions(text, "here")


def test_a_solution_region_leaves_a_stub_only_where_python_needs_one():
    function = f"def f(x):\n    {BEGIN}\n    return x\n    {END}"
    assert release.without_solutions(function, "here") == "def f(x):\n    ..."
    assert release.without_solutions(f"x = ...\n{BEGIN}\nx = 1\n{END}", "here") == "x = ..."


@pytest.mark.parametrize("change", ["no answer", "no check", "two checks", "unknown", "foreign id"])
def test_a_notebook_that_does_not_fit_its_checks_is_refused(sources, change):
    source = sources["3-roofline"]
    notebook = nbformat.from_dict(json.loads(json.dumps(source.notebook)))
    cells = notebook.cells
    answer = next(i for i, cell in enumerate(cells) if cell.id == "ridge")
    if change == "no answer":
        del cells[answer]
    elif change == "no check":
        del cells[answer + 1]
    elif change == "two checks":
        cells.append(cells[answer + 1])
    elif change == "unknown":
        cells[answer + 1]["source"] = 'check("rigde", ridge)'
    else:
        cells[answer]["id"] = "not-a-question"
    with pytest.raises(release.InputError):
        _ = release.Source("3-roofline", source.key, notebook).released
