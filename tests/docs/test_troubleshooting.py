"""The page "Troubleshooting" quotes texts that the sources have."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "troubleshooting.md"
QUOTED = re.findall(r'^\| "(.*?)" \| ', PAGE.read_text(encoding="utf-8"), re.MULTILINE)


@cache
def _texts() -> str:
    """List the texts of core, a line each, with "…" for what is filled in."""
    nodes = (
        node
        for path in sorted((ROOT / "skyward-core" / "src").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.JoinedStr | ast.Constant)
    )
    return "\n".join(text.replace("\n", " ") for text in map(_text, nodes) if text)


def _text(node: ast.JoinedStr | ast.Constant) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    return "".join(_text(part) if isinstance(part, ast.Constant) else "…" for part in node.values)


def test_the_page_quotes_texts() -> None:
    """Its rows are found."""
    assert len(QUOTED) > 25


@pytest.mark.parametrize("quoted", QUOTED)
def test_a_quoted_text_is_in_the_sources(quoted: str) -> None:
    """With "…" where it is filled in."""
    assert quoted in _texts()
