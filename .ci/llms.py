"""
Write the pages for language models when mkdocs builds the site: llms.txt lists them, llms-full.txt holds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

Page = tuple[str, str, str]
"""A title, an address below the site, and the text as it was written."""


def listed(name: str, description: str, pages: Sequence[Page]) -> str:
    """Return the text of llms.txt: the name, what it is, and a link to each page."""
    links = "".join(f"- [{title}]({address})\n" for title, address, _ in pages)
    return f"# {name}\n\n> {description}\n\n## Pages\n\n{links}"


def whole(pages: Sequence[Page]) -> str:
    """Return all pages in one text, each under its address."""
    return "\n".join(f"<!-- {address} -->\n\n{text.strip()}\n" for _, address, text in pages)


def on_post_build(config: Any, **_: Any) -> None:
    """Write both files into the site, in the order of the navigation."""
    source = Path(config["docs_dir"])
    entries = [pair for entry in config["nav"] for pair in entry.items()]
    pages = [
        (title, str(Path(path).with_suffix(".html")), (source / path).read_text(encoding="utf-8"))
        for title, path in entries
    ]
    site = Path(config["site_dir"])
    (site / "llms.txt").write_text(listed(config["site_name"], config["site_description"], pages), encoding="utf-8")
    (site / "llms-full.txt").write_text(whole(pages), encoding="utf-8")
