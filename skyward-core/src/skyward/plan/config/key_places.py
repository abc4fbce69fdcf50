"""
Places of keys in a text of TOML, which the standard library's reader does not keep.

Only an error, and `sky config`, needs them, so that a file without errors is read once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TypeAlias

from attrs import define, field, frozen

__all__ = ["KeyPath", "KeyPlace", "dotted", "error_place", "key_places"]

KeyPath: TypeAlias = tuple[str | int, ...]
"""Keys from the whole document to a value; a number stands for an entry of a list."""

_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_BASIC = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_LITERAL = re.compile(r"'[^'\n]*'")
_SCALAR = re.compile(r"[^,\]}#\n]*")
_AT = re.compile(r"\(at line (\d+), column (\d+)\)")
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")


@frozen(order=True)
class KeyPlace:
    """
    Say where in a text something begins.

    Args:
        line: Counted from 1.
        column: Counted from 1.
    """

    line: int
    column: int


def dotted(path: KeyPath) -> str:
    """
    Return a path as TOML and people write it.

    >>> dotted(("pools", "train", "plugins", 0, "type")), dotted(("pools", "my pool"))
    ('pools.train.plugins[0].type', 'pools."my pool"')
    """
    text = ""
    for key in path:
        if isinstance(key, int):
            text += f"[{key}]"
        else:
            text += f"{'.' if text else ''}{key if _PLAIN_KEY.fullmatch(key) else json.dumps(key, ensure_ascii=False)}"
    return text


def key_places(text: str) -> Mapping[KeyPath, KeyPlace]:
    """
    Return where each key of a document begins; a table at its header, an entry of a list at itself.

    Args:
        text: What the standard library's reader accepts.

    >>> found = key_places('[pools.train]\\nnodes = 2\\nimage = { pip = ["torch"] }')
    >>> found["pools", "train", "nodes"], found["pools", "train", "image", "pip", 0]
    (KeyPlace(line=2, column=1), KeyPlace(line=3, column=18))
    """
    scan = _Scan(text)
    scan.document()
    return {path: _place(text, start) for path, start in scan.found.items()}


def error_place(text: str, message: str) -> tuple[KeyPlace, str]:
    """
    Return where a text is no TOML, and why.

    Args:
        text: The text.
        message: What the standard library's reader says.

    >>> error_place("nodes = \\n", "Invalid value (at line 1, column 9)")
    (KeyPlace(line=1, column=9), 'Invalid value')
    """
    said = _AT.search(message)
    if said is not None:
        return KeyPlace(int(said[1]), int(said[2])), message[: said.start()].strip()
    return _place(text, len(text.rstrip("\n"))), message.replace(
        "(at end of document)", "at the end of the file"
    ).strip()


def _place(text: str, offset: int) -> KeyPlace:
    return KeyPlace(text.count("\n", 0, offset) + 1, offset - (text.rfind("\n", 0, offset) + 1) + 1)


@define
class _Scan:
    """Walk through a text that is known to be TOML."""

    text: str
    at: int = 0
    found: dict[KeyPath, int] = field(factory=dict)
    _lists: dict[KeyPath, int] = field(factory=dict)

    def document(self) -> None:
        table: KeyPath = ()
        self._skip(_BLANK)
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                table = self._header()
            else:
                self._pair(table)
            self._skip(_BLANK)

    def _header(self) -> KeyPath:
        start = self.at
        several = self.text.startswith("[[", start)
        self.at += 2 if several else 1
        keys = [key for key, _ in self._keys()]
        self.at += 2 if several else 1
        table: KeyPath = ()
        for key in keys[:-1]:
            table = (*table, key)
            self.found.setdefault(table, start)
            table = (*table, self._lists[table]) if table in self._lists else table
        table = (*table, keys[-1])
        self.found.setdefault(table, start)
        if several:
            self._lists[table] = self._lists.get(table, -1) + 1
            table = (*table, self._lists[table])
        elif table in self._lists:
            table = (*table, self._lists[table])
        self.found.setdefault(table, start)
        return table

    def _pair(self, table: KeyPath) -> None:
        path = table
        for key, start in self._keys():
            path = (*path, key)
            self.found.setdefault(path, start)
        self._take("=")
        self._value(path)

    def _keys(self) -> list[tuple[str, int]]:
        keys = []
        while True:
            self._skip(_SPACE)
            start = self.at
            keys.append((self._key(), start))
            self._skip(_SPACE)
            if not self._take("."):
                return keys

    def _key(self) -> str:
        if found := _BASIC.match(self.text, self.at):
            self.at = found.end()
            return _unescaped(found[0])
        if found := _LITERAL.match(self.text, self.at):
            self.at = found.end()
            return found[0][1:-1]
        found = _BARE.match(self.text, self.at)
        if found is None:
            raise ValueError(f"no key at {self.at}")
        self.at = found.end()
        return found[0]

    def _value(self, path: KeyPath) -> None:
        self._skip(_SPACE)
        for quote in ('"""', "'''"):
            if self.text.startswith(quote, self.at):
                self._long(quote)
                return
        match self.text[self.at : self.at + 1]:
            case "[":
                self._list(path)
            case "{":
                self._inline(path)
            case '"':
                self._skip(_BASIC)
            case "'":
                self._skip(_LITERAL)
            case _:
                self._skip(_SCALAR)

    def _long(self, quote: str) -> None:
        end = self.at + 3
        while not self.text.startswith(quote, end):
            end += 2 if quote == '"""' and self.text[end] == "\\" else 1
        end += 3
        # Up to two quotes more may stand before the closing ones.
        while self.text[end : end + 1] == quote[0]:
            end += 1
        self.at = end

    def _list(self, path: KeyPath) -> None:
        self.at += 1
        index = 0
        self._skip(_BLANK)
        while not self._take("]"):
            self.found.setdefault((*path, index), self.at)
            self._value((*path, index))
            index += 1
            self._skip(_BLANK)
            self._take(",")
            self._skip(_BLANK)

    def _inline(self, path: KeyPath) -> None:
        self.at += 1
        self._skip(_BLANK)
        while not self._take("}"):
            self._pair(path)
            self._skip(_BLANK)
            self._take(",")
            self._skip(_BLANK)

    def _skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self.text, self.at)
        self.at = found.end() if found else self.at

    def _take(self, text: str) -> bool:
        there = self.text.startswith(text, self.at)
        self.at += len(text) if there else 0
        return there


def _unescaped(quoted: str) -> str:
    import tomllib

    return next(iter(tomllib.loads(f"{quoted} = 0")))
