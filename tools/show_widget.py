"""Take pictures of widgets as a page shows them: light, dark, and on a phone.

    python tools/show_widget.py PrefillFlops RooflineExplorer

Writes _build/widgets/NAME-{light,dark,phone}.png and the page they were taken of.
"""

import argparse
import json
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOOKS = {"light": ("light", 800), "dark": ("dark", 800), "phone": ("light", 360)}
THEME = {  # the colours that the book's theme sets
    "light": {"background": "#ffffff", "text-base": "#222832", "primary": "#176de8"},
    "dark": {"background": "#14181e", "text-base": "#ced6dd", "primary": "#3fb1c5"},
}


def page(widgets, theme="light", scripts=True):
    """A page with these widgets as the book would hold them, without the book around it."""
    from inferlab.widgets.explorer import SHARED, STATIC

    state = {
        widget.model_id: {"model_module": "anywidget", "state": dict(widget.get_state())}
        for widget in widgets
    }
    content = json.dumps({"state": state}).replace("<", "\\u003c")
    files = [*(STATIC / name for name in SHARED), ROOT / "book/_static/anywidget-static.js"]
    sources = "".join(f'<script defer src="{file.as_uri()}"></script>' for file in files)
    colours = "".join(f"--pst-color-{name}:{value};" for name, value in THEME[theme].items())
    kind = "application/vnd.jupyter.widget-"
    views = "".join(
        f'<script type="{kind}view+json">{{"model_id": "{widget.model_id}"}}</script>'
        f'<div class="widget-fallback">{widget.fallback}</div>'
        for widget in widgets
    )
    return (
        f'<!doctype html><html lang="en" data-theme="{theme}"><head><meta charset="utf-8">'
        '<title>Widgets</title><meta name="viewport" content="width=device-width">'
        f"<style>:root{{{colours}}}body{{margin:16px;font-family:sans-serif;"
        "background:var(--pst-color-background);color:var(--pst-color-text-base)}"
        f"main{{max-width:760px;margin:auto}}</style>{sources if scripts else ''}</head>"
        f"<body><main><h1 hidden>Widgets</h1>{views}</main>"
        f'<script type="{kind}state+json">{content}</script></body></html>'
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="+", metavar="NAME")
    names = parser.parse_args().names
    os.environ["INFERLAB_WIDGETS"] = "page"
    from playwright.sync_api import sync_playwright

    from browser import FLAGS, find_chromium
    from inferlab import widgets

    folder = ROOT / "_build" / "widgets"
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=list(FLAGS))
        for name in names:
            for look, (theme, width) in LOOKS.items():
                file = folder / f"{name}-{look}.html"
                file.write_text(page([getattr(widgets, name)()], theme), "utf-8")
                tab = browser.new_page(
                    viewport={"width": width, "height": 400}, device_scale_factor=1.5
                )
                tab.on("console", lambda message: print(message.text, file=sys.stderr))
                tab.on("pageerror", lambda error: print(error, file=sys.stderr))
                tab.goto(file.as_uri())
                tab.wait_for_selector("html[data-widgets=ready]")
                tab.screenshot(path=file.with_suffix(".png"), full_page=True)
                tab.close()
                print(file.with_suffix(".png").relative_to(ROOT))
        browser.close()


if __name__ == "__main__":
    main()
