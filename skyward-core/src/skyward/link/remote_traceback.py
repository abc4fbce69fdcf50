"""The traceback of a node, as the last cause of an error here."""

from __future__ import annotations

from skyward.plain import plain_text

__all__ = ["RemoteTraceback"]


class RemoteTraceback(Exception):  # what it holds, and how it is printed
    """
    Hold the traceback of a node as the last cause of an error.

    Args:
        text: The traceback as the node printed it.

    >>> RemoteTraceback("Traceback ...").text
    'Traceback ...'
    """

    @property
    def text(self) -> str:
        """
        Return the traceback as the node printed it.
        """
        return str(self.args[0]) if self.args else ""

    def __str__(self) -> str:
        # Python prints "RemoteTraceback: " in front; the text reads better from the start of a line.
        return f"\n{plain_text(self.text)}"
