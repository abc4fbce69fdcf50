"""The site has a list of its pages, and all of them in one file, for language models."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytest.importorskip("mkdocs")


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_built_site_has_all_pages_for_language_models(tmp_path: Path) -> None:
    """Each page of the documentation is listed once, and its text is in the whole."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=200)
    links = (tmp_path / "llms.txt").read_text(encoding="utf-8")
    whole = (tmp_path / "llms-full.txt").read_text(encoding="utf-8")
    for page in (ROOT / "docs").glob("*.md"):
        assert links.count(f"]({page.stem}.html)") == 1
        assert (tmp_path / f"{page.stem}.html").exists()
        assert page.read_text(encoding="utf-8").strip() in whole
