"""What a page of the site must hold: each check lists what is wrong with a loaded page.

The tests run them on every page of the book and, to know that they can fail, on the pages under
site/fixtures/, each wrong in the one way that its name says.
"""

import functools
import re
from contextlib import suppress
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlparse

from playwright.sync_api import TimeoutError

AXE = Path(__file__).parent / "site" / "vendor" / "axe-core" / "axe.min.js"
PHONE = {"width": 400, "height": 800}
DESKTOP = {"width": 1300, "height": 900}

# The article is ours; the frame around it is the theme's.
ARTICLE = "article.bd-article"

# One of these for each widget, written by myst-nb.
WIDGETS = 'script[type="application/vnd.jupyter.widget-view+json"]'

# How a MyST role, directive or raw formula looks when it was not understood.
RAW_MARKUP = re.compile(
    r"\{(?:eval|glue|doc|ref|numref|eq|cite|math)[a-z:]*\}`|:::\{|\$\$|\\begin\{"
)


def wait_until_settled(page, timeout=15_000):
    """Wait for the formulas and the widgets; one that never starts is left to its check."""
    page.wait_for_load_state("load")
    page.evaluate("window.MathJax?.startup?.promise")
    with suppress(TimeoutError):
        page.wait_for_function(
            "count => document.querySelectorAll('[data-ready]').length >= count",
            arg=page.locator(WIDGETS).count(),
            timeout=timeout,
        )


def widgets_not_ready(page):
    """A count of widgets against started ones, where they differ."""
    widgets = page.locator(WIDGETS).count()
    ready = page.locator("[data-ready]").count()
    return [] if widgets == ready else [f"{widgets} widgets in the page, {ready} ready"]


def images_without_words(page):
    """Images of the article whose alternative text is missing, a file name, or a mere word."""
    images = page.locator(f"{ARTICLE} img").evaluate_all(
        "all => all.map(image => [image.getAttribute('src'), image.getAttribute('alt')])"
    )
    return [
        f"{source} has the alternative text {alt!r}"
        for source, alt in images
        if not alt or len(alt.split()) < 4 or "_images/" in alt
    ]


def images_not_shown(page):
    """Images that loaded and have no content."""
    return page.locator("img").evaluate_all(
        "all => all.filter(image => image.complete && !image.naturalWidth).map(image => image.src)"
    )


def unreadable_markup(page):
    """Formulas that MathJax refused, and markup that was printed instead of understood."""
    errors = page.locator("mjx-merror").evaluate_all("all => all.map(node => node.outerHTML)")
    prose = page.locator(ARTICLE).evaluate(
        """article => {
            const copy = article.cloneNode(true);
            copy.querySelectorAll('pre, code, script, mjx-container').forEach(n => n.remove());
            return copy.textContent;
        }"""
    )
    return errors + [
        prose[max(0, m.start() - 40) : m.end() + 40] for m in RAW_MARKUP.finditer(prose)
    ]


def accessibility_violations(page):
    """Serious and critical findings of axe-core in the article, as 'rule: element'."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    result = page.evaluate(
        "scope => axe.run(document.querySelector(scope), {resultTypes: ['violations']})", ARTICLE
    )
    return [
        f"{violation['id']}: {node['html'][:200]} {node.get('failureSummary', '')[:300]}"
        for violation in result["violations"]
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"]
    ]


def sideways_scroll(page):
    """Elements that stick out of the window, where the page as a whole scrolls sideways."""
    width = page.evaluate("document.documentElement.scrollWidth")
    if width <= page.viewport_size["width"]:
        return []
    return page.evaluate(
        """() => [...document.querySelectorAll('main *')]
            .filter(node => node.getBoundingClientRect().right > innerWidth + 1)
            .slice(0, 5).map(node => node.outerHTML.slice(0, 200))"""
    ) or [f"the page is {width} px wide"]


class _Document(HTMLParser):
    """The anchors and the links of a file."""

    def __init__(self):
        super().__init__()
        self.anchors, self.links = set(), []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        for name in ("id", "name"):
            if attributes.get(name):
                self.anchors.add(attributes[name])
        if tag in ("a", "link") and attributes.get("href"):
            self.links.append(attributes["href"])
        if tag in ("img", "script", "source") and attributes.get("src"):
            self.links.append(attributes["src"])


@functools.cache
def _parse(path):
    document = _Document()
    document.feed(path.read_text(encoding="utf-8"))
    return document


def broken_links(site, path):
    """Links of a page to files or anchors of the site that are not there."""
    broken = []
    base = path.as_uri()
    for link in _parse(path).links:
        target, anchor = urldefrag(urljoin(base, link))
        if urlparse(target).scheme != "file":
            continue
        file = Path(unquote(urlparse(target).path))
        if site not in file.parents and file != site:
            broken.append(f"{link} leads out of the site")
        elif not file.is_file():
            broken.append(f"{link}: there is no such file")
        elif anchor and file.suffix == ".html" and unquote(anchor) not in _parse(file).anchors:
            broken.append(f"{link}: there is no such anchor")
    return broken
