"""In JupyterLab, with a kernel, the same widget works, and Python sees what the reader chose."""

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

pytestmark = pytest.mark.needs("chromium")

CELLS = [
    "from inferlab.widgets import PrefillFlops\nwidget = PrefillFlops()\nwidget",
    'print("total", widget.compute("total"), widget.values["N"])',
]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def lab(tmp_path):
    """The address of a JupyterLab that shows one notebook."""
    cells = [
        {"cell_type": "code", "id": f"cell-{i}", "metadata": {}, "source": source, "outputs": [],
         "execution_count": None}
        for i, source in enumerate(CELLS)
    ]  # fmt: skip
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    notebook = {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "widget.ipynb").write_text(json.dumps(notebook), "utf-8")
    port, token = free_port(), "for-this-test"
    environment = {k: v for k, v in os.environ.items() if k != "INFERLAB_WIDGETS"}
    environment |= {
        name: str(tmp_path / name.lower())
        for name in ("JUPYTER_CONFIG_DIR", "JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR")
    }
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", f"--port={port}", "--allow-root",
               f"--IdentityProvider.token={token}", "--LabApp.news_url=None", f"--notebook-dir={tmp_path}"]  # fmt: skip
    log = open(tmp_path / "lab.log", "w")  # noqa: SIM115 - open as long as the server runs
    server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(240):
            try:
                urllib.request.urlopen(f"{address}/api/status?token={token}", timeout=1)
                break
            except OSError:
                assert server.poll() is None, (tmp_path / "lab.log").read_text()
                time.sleep(0.5)
        yield f"{address}/lab/tree/widget.ipynb?token={token}&reset"
    finally:
        server.terminate()
        server.wait(20)
        log.close()


def test_moves_and_tells_python(lab, chromium):
    page = chromium.new_context(reduced_motion="reduce").new_page()
    page.goto(lab)
    page.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=90_000)
    page.get_by_text("| Idle").wait_for(timeout=90_000)  # before, keys are lost
    first, second = (page.locator(".jp-Notebook .jp-CodeCell").nth(i) for i in (0, 1))
    first.locator(".cm-content").click()
    page.keyboard.press("Shift+Enter")
    slider = first.locator(".il input[type=range]").first
    slider.wait_for(timeout=120_000)
    assert "43.37 TFLOP" in first.locator(".il-sentence").inner_text()
    slider.focus()
    page.keyboard.press("PageUp")
    chosen = json.loads(first.locator(".il").get_attribute("data-values"))["N"]
    assert chosen > 3000
    second.locator(".cm-content").click()
    page.keyboard.press("Shift+Enter")
    output = second.locator(".jp-OutputArea-output")
    output.wait_for(timeout=60_000)
    printed = re.search(r"total (\S+) (\d+)", output.inner_text())
    assert int(printed[2]) == chosen, "the kernel has the reader's value"
    from inferlab.widgets import PrefillFlops

    assert float(printed[1]) == PrefillFlops().compute("total", N=chosen)
    page.context.close()
