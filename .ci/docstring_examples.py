"""
Show the examples of docstrings as code when mkdocs builds the reference: Markdown would take `>>>` for a quotation.
"""

from __future__ import annotations

from typing import Any

import griffe

FENCE = "```"


def fenced(text: str) -> str:
    """
    Return a docstring with a fence around each example, which ends at the next blank line.

    >>> print(fenced("Add.\\n\\n>>> 1 + 1\\n2\\n\\nNo more."))
    Add.
    <BLANKLINE>
    ```pycon
    >>> 1 + 1
    2
    ```
    <BLANKLINE>
    No more.
    """
    lines: list[str] = []
    inside = False
    for line in [*text.splitlines(), ""]:
        if inside and not line.strip():
            lines.append(FENCE)
            inside = False
        elif not inside and line.startswith(">>> "):
            lines.append(f"{FENCE}pycon")
            inside = True
        lines.append(line)
    return "\n".join(lines[:-1])


class DocstringExamples(griffe.Extension):
    """Put the examples of every docstring into fences."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change an object's docstring."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
