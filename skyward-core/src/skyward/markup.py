"""
HTML for notebooks: tables in which every text is escaped.

Colours are those of the page it stands in, light or dark, and nothing is fetched, so that it looks the same in a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from skyward.plain import plain_text

__all__ = ["DIM", "FRAME", "cell", "element", "escaped", "table"]

FRAME = (
    "font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:13px;line-height:1.5;"
    "border:1px solid rgba(128,128,128,.35);border-radius:6px;padding:6px 12px;margin:4px 0;display:inline-block;"
    "min-width:22em;max-width:100%;overflow-x:auto"
)
"""How the box around everything looks."""

DIM = "opacity:.65"

_TABLE = "border-collapse:collapse;border:none;margin:2px 0;background:none"
_CELL = "text-align:left;padding:0 1.2em 0 0;border:none;background:none;white-space:nowrap;font-size:13px"


def escaped(text: object) -> str:
    """
    Return a text for HTML: nothing in it is a tag, an entity or a control character.

    Args:
        text: What is to be shown.

    >>> escaped('<b title="x">')
    '&lt;b title=&quot;x&quot;&gt;'
    """
    return escape(plain_text(str(text)), quote=True)


def element(tag: str, content: str, style: str = "") -> str:
    """
    Return an element around HTML.

    Args:
        tag: Its name.
        content: The HTML inside, escaped already.
        style: Its style.

    >>> element("b", escaped("1 < 2"))
    '<b>1 &lt; 2</b>'
    """
    styled = f' style="{style}"' if style else ""
    return f"<{tag}{styled}>{content}</{tag}>"


def cell(content: str, style: str = "") -> str:
    """
    Return a cell of a table around HTML.

    Args:
        content: The HTML inside, escaped already.
        style: What is added to the style that all cells have.
    """
    return element("td", content, f"{_CELL};{style}" if style else _CELL)


def table(rows: Iterable[Sequence[str]], heads: Sequence[str] = ()) -> str:
    """
    Return a table of cells that are HTML already.

    Args:
        rows: Its rows, each of them made with `cell`.
        heads: The texts above its columns; escaped here.

    >>> table([[cell("a")]]).count("<td")
    1
    """
    top = "".join(element("th", escaped(head), f"{_CELL};font-weight:600;{DIM}") for head in heads)
    body = "".join(element("tr", "".join(cells), "background:none") for cells in rows)
    return element("table", (element("tr", top, "background:none") if heads else "") + body, _TABLE)
