"""A local server, and pages opened in a browser that can reach nothing else."""

import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Page


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@contextmanager
def _serving(folder):
    """Serve a folder on a free port of this machine; give its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture(scope="session")
def site_url(site):
    """The address of the built site."""
    with _serving(site) as address:
        yield address


@pytest.fixture(scope="session")
def serving():
    """Serve another folder: with serving(folder) as address."""
    return _serving


@dataclass
class Visit:
    """A loaded page and what happened while it loaded."""

    page: Page
    console_errors: list = field(default_factory=list)
    outside_requests: list = field(default_factory=list)
    failed_requests: list = field(default_factory=list)


@pytest.fixture(scope="session")
def visiting(chromium):
    """Open an address in a browser context of its own: with visiting(url, **options) as visit."""

    @contextmanager
    def visiting(url, **options):
        context = chromium.new_context(reduced_motion="reduce", **options)
        visit = Visit(context.new_page())

        def only_local(route):
            if route.request.url.startswith(("http://127.0.0.1:", "blob:", "data:")):
                route.continue_()
            else:
                visit.outside_requests.append(route.request.url)
                route.abort()

        def note_console(message):
            if message.type == "error":
                visit.console_errors.append(message.text)

        def note_response(response):
            if response.status >= 400:
                visit.failed_requests.append(f"{response.status} {response.url}")

        context.route("**/*", only_local)
        visit.page.on("console", note_console)
        visit.page.on("pageerror", lambda error: visit.console_errors.append(str(error)))
        visit.page.on("response", note_response)
        try:
            visit.page.goto(url)
            yield visit
        finally:
            context.close()

    return visiting
