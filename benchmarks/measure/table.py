"""
Numbers, the criteria they are held against, and the tables that show them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

MISSING = "not measured"
NONE = "—"
TIMES = "\N{MULTIPLICATION SIGN}"


@attrs.frozen
class Number:
    """
    A measured number, or the reason why there is none.

    Args:
        value: The number; None when it could not be had.
        note: What to say beside it, or in its place.
    """

    value: float | None = None
    note: str | None = None

    def over(self, other: Number) -> float | None:
        """
        Divide, where both numbers exist.

        >>> Number(3.0).over(Number(2.0))
        1.5
        >>> Number(3.0).over(Number(note="not installed")) is None
        True
        """
        if self.value is None or not other.value:
            return None
        return self.value / other.value


@attrs.frozen
class Criterion:
    """
    A bound for a number, as a ratio to something else or in a unit of its own.

    Args:
        against: What it is compared with, or what is bounded.
        value: The ratio or number; None when it could not be had.
        at_most: The bound from above.
        at_least: The bound from below.
        unit: Written after the number; empty for ratios.
    """

    against: str
    value: float | None
    at_most: float | None = None
    at_least: float | None = None
    unit: str = ""

    @property
    def met(self) -> bool | None:
        """
        Tell whether the bound holds; None when there is no number.

        >>> Criterion("Ray", 0.3, at_most=0.4).met, Criterion("Ray", 4.0, at_least=5).met
        (True, False)
        """
        if self.value is None:
            return None
        if self.at_most is not None and self.value > self.at_most:
            return False
        return self.at_least is None or self.value >= self.at_least

    def shown(self) -> str:
        """
        Write the number.

        >>> Criterion("of CPU", 81.25, at_most=100, unit="ms").shown()
        '81.2 ms of CPU'
        """
        if self.value is None:
            return f"{NONE} {self.against}"
        return (
            f"{self.value:.3g} {self.unit} {self.against}" if self.unit else f"{self.value:.2f} {TIMES} {self.against}"
        )

    def target(self) -> str:
        """
        Write the bound.

        >>> Criterion("of CPU", 81.25, at_most=100, unit="ms").target()
        '≤ 100 ms of CPU'
        """
        sign, bound = ("≤", self.at_most) if self.at_most is not None else ("≥", self.at_least)
        return f"{sign} {bound:g} {self.unit or TIMES} {self.against}"


@attrs.frozen(kw_only=True)
class Row:
    """
    One line of the table.

    Args:
        what: What was measured.
        limit: The bare minimum, as text.
        ours: Our number, as text.
        ray: Ray's number, as text.
        dask: Dask's number, as text.
        criteria: What has to hold.
        bounded_by: What keeps our number from being better.
    """

    what: str
    limit: str = NONE
    ours: str
    ray: str = NONE
    dask: str = NONE
    criteria: tuple[Criterion, ...]
    bounded_by: str

    @property
    def verdict(self) -> str:
        """
        Say whether every criterion holds, and when some could not be judged.
        """
        verdicts = [criterion.met for criterion in self.criteria]
        if False in verdicts:
            return "**no**"
        if None in verdicts:
            return "as far as measured" if True in verdicts else MISSING
        return "yes"


def markdown(headings: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """
    Write a table in Markdown.

    >>> print(markdown(["a", "b"], [["1", "2"]]))
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    cells = [[cell.replace("|", "\\|").replace("\n", " ") for cell in line] for line in lines]
    written = [f"| {' | '.join(headings)} |", f"|{'---|' * len(headings)}"]
    return "\n".join([*written, *(f"| {' | '.join(line)} |" for line in cells)])


def summary(rows: Iterable[Row]) -> str:
    """
    Write the table of all rows.
    """
    return markdown(
        ["what", "limit", "ours", "Ray", "Dask", "ratio", "target", "met?", "bounded by"],
        (
            [
                row.what,
                row.limit,
                row.ours,
                row.ray,
                row.dask,
                ", ".join(criterion.shown() for criterion in row.criteria),
                ", ".join(criterion.target() for criterion in row.criteria),
                row.verdict,
                row.bounded_by,
            ]
            for row in rows
        ),
    )


def _text(number: Number, form: str, scale: float = 1) -> str:
    if number.value is None:
        return number.note or MISSING
    value = form.format(number.value * scale)
    return f"{value} ({number.note})" if number.note else value


def milliseconds(number: Number) -> str:
    """
    Write a number of milliseconds.

    >>> milliseconds(Number(0.541, note="with a closure"))
    '0.54 ms (with a closure)'
    """
    return _text(number, "{:.2f} ms")


def seconds(number: Number) -> str:
    """
    Write a number of seconds.
    """
    return _text(number, "{:.2f} s")


def rate(number: Number) -> str:
    """
    Write calls per second.

    >>> rate(Number(9314.2))
    '9,314 /s'
    """
    return _text(number, "{:,.0f} /s")


def mebibytes(number: Number) -> str:
    """
    Write a number of bytes as MiB.
    """
    return _text(number, "{:,.1f} MiB", 1 / (1 << 20))


def percent(number: Number) -> str:
    """
    Write a share of one core.
    """
    return _text(number, "{:.2f} %")
