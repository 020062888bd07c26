"""Every page of the site in a real browser with the network cut off."""

from pathlib import Path

import pytest
import yaml

import page_checks as checks

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.needs("chromium")


def pages():
    """The pages of the table of contents."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    chapters = [chapter["file"] for part in toc["parts"] for chapter in part["chapters"]]
    return [toc["root"], *chapters]


@pytest.fixture(scope="module", params=pages())
def visit(request, site_url, visiting):
    """One page, loaded once for all the tests below that look at it."""
    address = f"{site_url}/{request.param}.html"
    with visiting(address, color_scheme="light", viewport=checks.DESKTOP) as visit:
        checks.wait_until_settled(visit.page)
        yield visit


def test_a_page_loads_quietly_and_alone(visit):
    assert visit.outside_requests == []
    assert visit.failed_requests == []
    assert visit.console_errors == []


def test_every_widget_of_a_page_starts(visit):
    assert checks.widgets_not_ready(visit.page) == []


def test_every_formula_and_role_is_understood(visit):
    assert checks.unreadable_markup(visit.page) == []


def test_every_image_shows_and_is_described(visit):
    assert checks.images_not_shown(visit.page) == []
    assert checks.images_without_words(visit.page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_is_accessible(visit, scheme):
    visit.page.emulate_media(color_scheme=scheme)
    visit.page.wait_for_function(
        "scheme => document.documentElement.dataset.theme === scheme", arg=scheme
    )
    assert checks.accessibility_violations(visit.page) == []


def test_a_page_fits_a_phone(visit):
    visit.page.set_viewport_size(checks.PHONE)
    assert checks.sideways_scroll(visit.page) == []


@pytest.mark.parametrize("name", pages())
def test_a_page_reads_without_scripts(name, site_url, visiting):
    with visiting(f"{site_url}/{name}.html", java_script_enabled=False) as visit:
        assert visit.page.locator(f"{checks.ARTICLE} h1").is_visible()
        widgets = visit.page.locator(checks.WIDGETS).count()
        assert visit.page.locator(".widget-fallback").count() == widgets


def test_the_search_finds_a_page(site_url, visiting):
    with visiting(f"{site_url}/search.html?q=inference") as visit:
        visit.page.locator("#search-results li a").first.wait_for()
        assert visit.outside_requests + visit.failed_requests + visit.console_errors == []


@pytest.mark.parametrize("name", [*pages(), "search", "genindex"])
def test_every_link_leads_somewhere(name, site):
    assert checks.broken_links(site, site / f"{name}.html") == []
