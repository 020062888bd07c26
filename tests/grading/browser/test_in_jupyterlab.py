"""Once in a real browser: check() as learners see it, the Validate button, grading by hand."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import nbformat
import pytest

from grading import hostile
from inferlab.grading.record import Gradebook
from inferlab.grading.release import as_text, read_source

pytestmark = pytest.mark.needs("chromium", "bubblewrap")
EXERCISES = Path(__file__).resolve().parents[3] / "exercises"


def chapter_like():
    """A notebook with a graded question as the chapters have it."""
    answer = 'ridge = ...  # replace the dots by your answer\ncheck("ridge", ridge)'
    cells = [
        nbformat.v4.new_markdown_cell("## One graded question", id="question"),
        nbformat.v4.new_code_cell(
            'from inferlab.feedback import Exercise\ncheck = Exercise("3-roofline").check',
            id="setup",
        ),
        nbformat.v4.new_code_cell(answer, id="answer"),
    ]
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    return notebook


@pytest.fixture(scope="module")
def course(grade_class, source, tmp_path_factory):
    """The folder of a course in which one learner's essay waits, and two notebooks to work in."""
    folder = tmp_path_factory.mktemp("browser")
    (folder / "class" / "ada").mkdir(parents=True)
    nbformat.write(source.reference, folder / "class" / "ada" / "sample.ipynb")
    graded = grade_class([folder / "class"], folder / "course")
    nbformat.write(chapter_like(), graded.course / "chapter.ipynb")
    exercise = read_source(EXERCISES, "3-roofline").released
    (graded.course / "3-roofline.ipynb").write_text(as_text(exercise), "utf-8")
    return graded


@pytest.fixture(scope="module")
def lab(course, tmp_path_factory):
    """lab(path) is the address of a page of a JupyterLab in the course's folder."""
    home = tmp_path_factory.mktemp("home")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    names = ("JUPYTER_CONFIG_DIR", "JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR")
    environment = os.environ | {name: str(home / name) for name in names}
    token = "for-this-test"
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", f"--port={port}", "--allow-root",
               f"--IdentityProvider.token={token}", "--LabApp.news_url=None"]  # fmt: skip
    address = f"http://127.0.0.1:{port}"
    with open(home / "lab.log", "w") as log:
        server = subprocess.Popen(
            command, cwd=course.course, env=environment, stdout=log, stderr=log
        )
        try:
            for _ in range(240):
                try:
                    urllib.request.urlopen(f"{address}/api/status?token={token}", timeout=1)
                    break
                except OSError:
                    assert server.poll() is None, (home / "lab.log").read_text()
                    time.sleep(0.5)
            yield lambda path: f"{address}/{path}?token={token}"
        finally:
            server.terminate()
            server.wait(30)


@pytest.fixture
def page(chromium, lab):
    """A page that reaches the server alone: formgrader waits for whatever else it asks for."""
    context = chromium.new_context(reduced_motion="reduce")
    context.set_default_timeout(120_000)
    here = lab("").partition("?")[0]
    context.route(lambda url: not url.startswith(here), lambda route: route.abort())
    yield context.new_page()
    context.close()


def open_notebook(page, lab, name):
    page.goto(lab(f"lab/tree/{name}") + "&reset")
    page.wait_for_selector(".jp-Notebook .jp-CodeCell")
    page.get_by_text("| Idle").wait_for()  # before, keys are lost


def write_and_run(page, cell, text):
    cell.locator(".cm-content").click()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.insert_text(text)
    page.keyboard.press("ControlOrMeta+Enter")


def test_check_answers_in_one_sentence(page, lab, course):
    open_notebook(page, lab, "chapter.ipynb")
    setup, answer = (page.locator(".jp-Notebook .jp-CodeCell").nth(i) for i in (0, 1))
    setup.locator(".cm-content").click()
    page.keyboard.press("Shift+Enter")
    setup.get_by_text("[1]:").wait_for()

    def told(text, sentence):
        write_and_run(page, answer, f'{text}\ncheck("ridge", ridge)')
        answer.locator(".jp-OutputArea").get_by_text(sentence).first.wait_for()
        shown = answer.locator(".jp-OutputArea-output").all_inner_texts()
        assert len(shown) == 1 and len(shown[0].strip().splitlines()) == 1
        assert "Traceback" not in shown[0] and "NotYet" not in shown[0]

    told("ridge = ...", "Not answered yet")
    told("ridge = '200'", "remove the quotes")
    told("ridge = 624 / 1.555", "structured sparsity")
    told("del ridge", "there is no 'ridge'")
    told("ridge = 312 / 1.555", "✓ ridge: right.")


def test_the_validate_button_says_what_is_left(page, lab, course):
    open_notebook(page, lab, "3-roofline.ipynb")
    page.get_by_role("button", name="Validate").click()
    dialog = page.locator(".jp-Dialog", has_text="Validation")
    dialog.get_by_text("Not answered yet").first.wait_for()
    text = dialog.inner_text()
    assert "failed" in text
    assert "Traceback" not in text and "NotYet" not in text


def test_an_essay_is_graded_by_hand(page, lab, course, grade_class):
    page.goto(lab("lab"))  # which logs in
    page.goto(lab("formgrader/gradebook/sample/sample"))
    page.get_by_role("link", name="Submission #1").click()
    page.get_by_text("Says why, in its own words").wait_for()  # the rubric
    page.get_by_text(hostile.ESSAY).wait_for()
    # Formgrader has the scores.
    page.locator("input#words_extra_credit[placeholder]").wait_for(state="attached")
    score = page.locator("input#words")
    score.fill("2")
    with page.expect_response(
        lambda r: "/formgrader/api/grade/" in r.url and r.request.method == "PUT"
    ):
        score.press("Tab")
    book = Gradebook(course.url)
    grade = book._book.find_grade("words", "sample", "sample", "ada")
    assert (grade.manual_score, grade.needs_manual_grade) == (2, False)
    book.close()
    # The next run keeps it and tells the learner.
    again = grade_class([course.course.parent / "class"], course.course)
    assert again.scores == {"ada": 9}
    assert "9.0 / 10.0" in again.feedback("ada")
