"""A terminal, as far as the consoles use one: a grid, a cursor, a scroll region and what has scrolled off."""

from __future__ import annotations

import io
import os
import re

_TOKEN = re.compile(r"\x1b\[(?P<args>[?\d;]*)(?P<final>[A-Za-z])|\x1b(?P<short>[78D])|(?P<text>[^\x1b])", re.DOTALL)


class Terminal(io.StringIO):
    """Show what is written to it, as xterm does."""

    encoding = "utf-8"

    def __init__(self, columns: int = 60, lines: int = 12) -> None:
        super().__init__()
        self.columns, self.lines = columns, lines
        self.grid = [[" "] * columns for _ in range(lines)]
        self.history: list[str] = []
        self.row = self.column = 0
        self.saved = (0, 0)
        self.bottom = lines - 1
        self.raw = ""

    def isatty(self) -> bool:
        return True

    def size(self) -> os.terminal_size:
        return os.terminal_size((self.columns, self.lines))

    def write(self, text: str) -> int:
        self.raw += text
        position = 0
        while position < len(text):
            match = _TOKEN.match(text, position)
            assert match is not None, f"unknown sequence {text[position : position + 10]!r}"
            position = match.end()
            if match["text"] is not None:
                self._put(match["text"])
            elif match["short"] is not None:
                self._short(match["short"])
            else:
                self._control(match["args"], match["final"])
        return len(text)

    def resize(self, columns: int, lines: int) -> None:
        """Change the size as terminals do: the region is forgotten, rows leave or enter at the top."""
        while len(self.grid) > lines:
            self.history.append("".join(self.grid.pop(0)).rstrip())
            self.row = max(0, self.row - 1)
        self.grid = [(row + [" "] * columns)[:columns] for row in self.grid]
        self.grid += [[" "] * columns for _ in range(lines - len(self.grid))]
        self.columns, self.lines, self.bottom = columns, lines, lines - 1

    @property
    def rows(self) -> list[str]:
        """What is to be seen, without blanks at the ends."""
        return ["".join(row).rstrip() for row in self.grid]

    @property
    def scrolled(self) -> list[str]:
        """Everything that was written above the footer, in order, without blank lines."""
        return [line for line in (*self.history, *self.rows) if line]

    def _put(self, char: str) -> None:
        if char == "\n":
            self.column = 0
            self._down()
            return
        if char == "\r":
            self.column = 0
            return
        if self.column == self.columns:
            self.column = 0
            self._down()
        self.grid[self.row][self.column] = char
        self.column += 1

    def _down(self) -> None:
        if self.row != self.bottom:
            self.row = min(self.row + 1, self.lines - 1)
            return
        self.history.append("".join(self.grid.pop(0)).rstrip())
        self.grid.insert(self.bottom, [" "] * self.columns)

    def _short(self, code: str) -> None:
        if code == "7":
            self.saved = (self.row, self.column)
        elif code == "8":
            self.row, self.column = self.saved
        else:
            self._down()

    def _control(self, args: str, final: str) -> None:
        numbers = [int(part) for part in args.lstrip("?").split(";") if part]
        if final == "A":
            self.row = max(0, self.row - numbers[0])
        elif final == "H":
            self.row, self.column = numbers[0] - 1, numbers[1] - 1
        elif final == "K":
            self.grid[self.row] = [" "] * self.columns
        elif final == "J":
            self.grid[self.row][self.column :] = [" "] * (self.columns - self.column)
            for row in range(self.row + 1, self.lines):
                self.grid[row] = [" "] * self.columns
        elif final == "r":
            self.bottom = (numbers[1] if numbers else self.lines) - 1
            self.row = self.column = 0
        else:
            assert final in "mhl", final
