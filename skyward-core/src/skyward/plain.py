"""
Untrusted text for terminals and logs: names from clouds, lines from nodes, words of errors, addresses.

What would move the cursor, set a title or the clipboard, or hide or turn around what stands there, is taken out or
spelled out. Everything foreign that is shown goes through here.
"""

from __future__ import annotations

import re

__all__ = ["coloured_line", "conceal", "plain_line", "plain_text", "redacted"]

# An escape sequence: of colours (kept where there are colours), of anything else, or a lone control character.
_COLOUR = re.compile(r"\x1b\[[\d;:]*m")
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_]|[ -/]+[0-~]|)")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f]")
# Marks of direction, characters without width or shape, separators of lines, tags, surrogates. The two joiners
# stay, without which some languages and emoji cannot be written.
_HIDDEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)

# Up to the last @ before the path: a password may hold one.
_CREDENTIALS = re.compile(r"//[^/\s]*@")

SHORTEST = 8
"""Characters of a secret from which on it is hidden wherever it stands: a shorter one may be a part of any word."""

_secrets: set[str] = set()


def conceal(secret: str) -> None:
    """
    Redact a text in all errors and log lines of this program from now on.

    Args:
        secret: Such as a key that a configuration file refers to; short ones are part of too many words.

    >>> conceal("hunter2-of-an-example")
    >>> redacted("The key hunter2-of-an-example is refused.")
    'The key *** is refused.'
    """
    if len(secret.strip()) >= SHORTEST:
        _secrets.add(secret.strip())


def redacted(text: str) -> str:
    """
    Return a text with the user and the password of each URL in it hidden, and each secret of `conceal`.

    Args:
        text: A URL, or what may have some in it.

    >>> redacted("https://me:secret@pypi.example.org/simple"), redacted("https://me:s@cret@pypi.example.org")
    ('https://***@pypi.example.org/simple', 'https://***@pypi.example.org')
    """
    # Sorted, so that one which is part of another does not leave the rest of it; and a copy, as threads may add some.
    for secret in sorted(_secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    return _CREDENTIALS.sub("//***@", text) if "@" in text else text


def plain_text(text: str) -> str:
    r"""
    Return a text whose lines and tabs stay, without what a terminal would act on.

    Args:
        text: The untrusted text.

    >>> plain_text("\x1b]0;title\x07one\ntwo\x1b[2J"), plain_text("abc\u202etxt.exe")
    ('one\ntwo', 'abc\\u202etxt.exe')
    """
    if text.isascii() and text.isprintable():
        return text
    if "\x1b" in text:
        text = _ESCAPE.sub("", text)
    return _HIDDEN.sub(_spelled, _CONTROL.sub("", text))


def plain_line(text: str) -> str:
    r"""
    Return a text as one line, such as for a cell of a table, to which it must not add rows.

    Args:
        text: The untrusted text.

    >>> plain_line("one\ntwo")
    'one\\ntwo'
    """
    return plain_text(text).replace("\n", "\\n").replace("\t", " ")


def coloured_line(text: str) -> str:
    r"""
    Return a line whose colours stay, and end with it.

    Args:
        text: The untrusted text.

    >>> coloured_line("\x1b[31mred\x1b[5A")
    '\x1b[31mred\x1b[0m'
    """
    if text.isascii() and text.isprintable():
        return text
    held = bool(_COLOUR.search(text))
    text = _ESCAPE.sub(lambda match: match[0] if _COLOUR.fullmatch(match[0]) else "", text)
    return _HIDDEN.sub(_spelled, _CONTROL.sub("", text)) + ("\x1b[0m" if held else "")


def _spelled(match: re.Match[str]) -> str:
    number = ord(match[0])
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
