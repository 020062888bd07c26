"""Take the picture of a chapter that the README shows, from the built site.

    python tools/picture.py          writes book/page.png

The site has to be built: run `make book` first.
"""

from pathlib import Path

from playwright.sync_api import sync_playwright

from browser import FLAGS, find_chromium

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "_build" / "html" / "book" / "06-prefill.html"
TARGET = ROOT / "book" / "page.png"


def main():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=list(FLAGS))
        page = browser.new_page(viewport={"width": 1280, "height": 960}, color_scheme="light")
        page.goto(PAGE.as_uri())
        page.wait_for_selector("[data-ready]", state="attached")
        page.evaluate("MathJax.startup.promise")
        page.locator("[data-ready]").first.evaluate(
            "widget => window.scrollTo(0, widget.getBoundingClientRect().top + scrollY - 330)"
        )
        page.wait_for_timeout(500)
        page.screenshot(path=TARGET)
        browser.close()


if __name__ == "__main__":
    main()
