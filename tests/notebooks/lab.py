"""JupyterLab on loopback with a token, and a browser that shows it."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import nbformat
from playwright.sync_api import Page, sync_playwright

from tests.waiting import until

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
SERVER = (
    "--no-browser",
    "--allow-root",
    "--ServerApp.ip=127.0.0.1",
    "--ServerApp.port=0",
    "--LabApp.check_for_updates_class=jupyterlab.handlers.announcements.NeverCheckForUpdate",
    "--LabApp.news_url=None",
    "--LabApp.extension_manager=readonly",
)
WITHIN_MS = 60_000


@contextmanager
def lab(directory: Path) -> Iterator[str]:
    """Serve a directory, and return the address with its token."""
    token = secrets.token_urlsafe(16)
    runtime, settings = directory / ".runtime", directory / ".settings"
    quiet = settings / "@jupyterlab" / "apputils-extension" / "notification.jupyterlab-settings"
    quiet.parent.mkdir(parents=True)
    quiet.write_text('{"fetchNews": "false"}')
    places = {"RUNTIME": runtime, "CONFIG": directory / ".config", "DATA": directory / ".data"}
    kept = {f"JUPYTER_{name}_DIR": str(place) for name, place in places.items()}
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "jupyterlab",
            *SERVER,
            f"--ServerApp.root_dir={directory}",
            f"--IdentityProvider.token={token}",
        ],
        env={**os.environ, **kept, "JUPYTERLAB_SETTINGS_DIR": str(settings)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        [found] = until(lambda: list(runtime.glob("jpserver-*.json")))
        url = str(until(lambda: _url(found)))
        until(lambda: _answers(f"{url}api/status?token={token}"))
        yield f"{url}doc/tree/pool.ipynb?token={token}"
    finally:
        process.terminate()
        process.wait(30)


def write_notebook(directory: Path, cells: Sequence[str]) -> None:
    """Write a notebook with some cells of code."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, directory / "pool.ipynb")


@contextmanager
def page_of(url: str) -> Iterator[Page]:
    """Show a notebook in a browser, its kernel started."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    assert chromium, "There is no chromium: apt-get install chromium"
    with tempfile.TemporaryDirectory() as profile, sync_playwright() as driver:
        context = driver.chromium.launch_persistent_context(
            profile,
            executable_path=chromium,
            args=list(FLAGS),
            viewport={"width": 1100, "height": 820},
            timeout=WITHIN_MS,
        )
        try:
            page = context.new_page()
            page.set_default_timeout(WITHIN_MS)
            page.goto(url)
            page.wait_for_selector(".jp-Notebook .jp-CodeCell")
            page.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status='idle']")
            yield page
        finally:
            context.close()


def run_cell(page: Page, number: int) -> None:
    """Have a cell run, and do not wait for its end."""
    prompt = page.locator(".jp-CodeCell .jp-InputArea-prompt").nth(number)

    def begun() -> bool:
        prompt.click()
        press(page, "run")
        # A page that has just been loaded passes over what is pressed.
        page.wait_for_timeout(1000)
        return prompt.inner_text().strip() != "[ ]:"

    until(begun)


def press(page: Page, button: str) -> None:
    """Press a button of the toolbar: `run` or `interrupt`."""
    page.locator(f"[data-jp-item-name='{button}'] jp-button").first.click()


def output_of(page: Page, number: int) -> str:
    """Return what is shown under a cell."""
    texts: list[str] = page.locator(".jp-CodeCell").nth(number).locator(".jp-OutputArea-output").all_inner_texts()
    return "\n".join(texts)


def _url(found: Path) -> str | None:
    try:
        return str(json.loads(found.read_text(encoding="utf-8"))["url"])
    except (ValueError, KeyError):
        return None


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
