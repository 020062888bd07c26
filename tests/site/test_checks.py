"""The checks of the site can fail: each fault is found by the check meant for it, and no other."""

from pathlib import Path

import pytest

import page_checks as checks

pytestmark = pytest.mark.needs("chromium")
FIXTURES = Path(__file__).parent / "fixtures"

# Which check must refuse the fixture of that name.
EXPECTED = {
    "broken-anchor": "links",
    "broken-link": "links",
    "console-error": "console",
    "faint-text": "accessibility",
    "image-named-after-its-file": "images described",
    "image-that-does-not-load": "images shown",
    "image-without-alt": "images described",
    "missing-file": "requests",
    "outside-request": "outside",
    "raw-role": "markup",
    "unlabelled-control": "accessibility",
    "widget-that-does-not-start": "widgets",
    "wider-than-a-phone": "phone",
}

# A fault that a reader meets in two ways is found in both.
ALSO = {
    "image-without-alt": {"accessibility"},
    "missing-file": {"console", "links"},
    "outside-request": {"console"},
}


@pytest.fixture(scope="module")
def address(serving):
    with serving(FIXTURES) as address:
        yield address


def found(visiting, address, name):
    """The names of the checks that find something on a page of the fixtures."""
    with visiting(f"{address}/{name}.html", viewport=checks.DESKTOP) as visit:
        page = visit.page
        checks.wait_until_settled(page, timeout=500)
        results = {
            "outside": visit.outside_requests,
            "requests": visit.failed_requests,
            "console": visit.console_errors,
            "widgets": checks.widgets_not_ready(page),
            "markup": checks.unreadable_markup(page),
            "images described": checks.images_without_words(page),
            "images shown": checks.images_not_shown(page),
            "accessibility": checks.accessibility_violations(page),
            "links": checks.broken_links(FIXTURES, FIXTURES / f"{name}.html"),
        }
        page.set_viewport_size(checks.PHONE)
        results["phone"] = checks.sideways_scroll(page)
    return {check for check, problems in results.items() if problems}


def test_every_fault_has_its_fixture():
    assert {path.stem for path in FIXTURES.glob("*.html")} == {"sound", *EXPECTED}


def test_a_sound_page_passes_every_check(visiting, address):
    assert found(visiting, address, "sound") == set()


@pytest.mark.parametrize("fault", sorted(EXPECTED))
def test_a_fault_is_found_by_the_check_meant_for_it(fault, visiting, address):
    assert found(visiting, address, fault) == {EXPECTED[fault]} | ALSO.get(fault, set())
