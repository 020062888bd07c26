"""Where Chromium is, and how it is started for tests and pictures: it calls nobody by itself."""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

SYSTEM_NAMES = ("chromium", "chromium-browser", "google-chrome")

# Nothing of the browser's own (updates, sync, safe browsing) may go out either.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def find_chromium():
    """The path of the system's Chromium, else of Playwright's own, else None."""
    for name in SYSTEM_NAMES:
        if path := shutil.which(name):
            return path
    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).exists() else None


if __name__ == "__main__":
    found = find_chromium()
    print(found or "There is no Chromium.")
    sys.exit(0 if found else 1)
