"""
How a line looks in a terminal and in a file: its prefix, its colours.
"""

from __future__ import annotations

from collections.abc import Mapping

from skyward.console.wording import Line, clean

__all__ = ["colour_of", "dressed", "rich_colour_of"]

_RESET = "\x1b[0m"
# Of the sixteen that every terminal has and its user has chosen; red and yellow are kept for trouble.
_NODE_COLOURS = (36, 32, 35, 34, 96, 92, 95, 94)
_KIND_COLOURS: Mapping[str, int] = {"note": 2, "good": 32, "warning": 33, "error": 31}


def colour_of(node: int) -> int:
    """
    Return the colour of a node, as the number that terminals know it by.

    >>> colour_of(0) == colour_of(8), colour_of(0) == colour_of(1)
    (True, False)
    """
    return _NODE_COLOURS[node % len(_NODE_COLOURS)]


def rich_colour_of(node: int) -> str:
    """
    Return the colour of a node under the name that rich has for it.

    >>> rich_colour_of(0)
    'color(6)'
    """
    code = colour_of(node)
    return f"color({code - 30 if code < 90 else code - 82})"


def dressed(line: Line, *, colours: bool) -> list[str]:
    """
    Return a line as it is written, with its prefix; several, where the text has several.

    Args:
        line: What is said.
        colours: Whether escape sequences may be used.

    >>> dressed(Line("loss 0.1", "log", 3), colours=False)
    ['node-3 | loss 0.1']
    """
    source = f"node-{line.node}" if line.node is not None else "skyward"
    mark = "|" if line.kind == "log" else "·"
    texts = line.text.split("\n") if "\n" in line.text else (line.text,)
    if not colours:
        return [f"{source} {mark} {clean(text)}" for text in texts]
    hue = colour_of(line.node) if line.node is not None else 1
    prefix = f"\x1b[{hue}m{source} {mark}{_RESET} "
    if line.kind == "log":
        return [prefix + clean(text, colours=True) for text in texts]
    tone = f"\x1b[{_KIND_COLOURS[line.kind]}m"
    return [f"{prefix}{tone}{clean(text)}{_RESET}" for text in texts]
