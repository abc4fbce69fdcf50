"""A load and what was made of it, as a picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from elastic.simulation import Run

WIDTH, HEIGHT, LEFT, TOP, GAP = 760, 300, 56, 34, 26
POINTS = 480

Curve = Sequence[tuple[float, int]]


def picture(title: str, run: Run, best: Run, most: int) -> str:
    """
    Draw one load: the calls that are open, and the machines that there are, with those of hindsight behind them.

    Args:
        title: What it is.
        run: What became of it.
        best: What would have become of it if it had been known.
        most: Machines that there are at most.
    """
    until = max(run.machines[-1][0], best.machines[-1][0])
    width, height = WIDTH - LEFT - 12, (HEIGHT - TOP - GAP - 30) / 2
    calls = max(1, *(number for _, number in run.busy))
    upper, lower = TOP + height, TOP + 2 * height + GAP
    body = [
        _text(LEFT, 18, title, "start", 13),
        _area(_line(run.busy, until, calls, width, upper, height), width, upper),
        *_axis(upper, height, calls, "open calls"),
        _path(_line(best.machines, until, most, width, lower, height), "#999", "4 3"),
        _path(_line(run.machines, until, most, width, lower, height), "#c2410c", ""),
        *_axis(lower, height, most, "machines"),
        *_hours(until, width, lower),
        _text(LEFT + width, TOP + height + GAP - 8, "autoscaler", "end", 11, "#c2410c"),
        _text(LEFT + width - 80, TOP + height + GAP - 8, "in hindsight", "end", 11, "#777"),
    ]
    inner = "\n".join(body)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'font-family="sans-serif">\n<title>{escape(title)}</title>\n'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>\n{inner}\n</svg>\n'
    )


def _sampled(curve: Curve, until: float) -> Iterable[tuple[float, int]]:
    """Yield the most of a curve in each of some hundred parts of its time."""
    step, at, value = until / POINTS, 0, curve[0][1]
    for number in range(POINTS):
        most = value
        while at < len(curve) and curve[at][0] <= (number + 1) * step:
            value = curve[at][1]
            most = max(most, value)
            at += 1
        yield number * step, most


def _line(curve: Curve, until: float, most: int, width: float, base: float, height: float) -> str:
    points, last = [], -1
    for at, value in _sampled(curve, until):
        if value != last:
            x = LEFT + at / until * width
            if last >= 0:
                points.append(f"{x:.1f},{base - last / most * height:.1f}")
            points.append(f"{x:.1f},{base - value / most * height:.1f}")
            last = value
    points.append(f"{LEFT + width:.1f},{base - max(last, 0) / most * height:.1f}")
    return " ".join(points)


def _path(points: str, colour: str, dashes: str) -> str:
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"{dashed}/>'


def _area(points: str, width: float, base: float) -> str:
    return (
        f'<polygon points="{LEFT},{base:.1f} {points} {LEFT + width:.1f},{base:.1f}" fill="#bfdbfe" stroke="#1d4ed8"/>'
    )


def _axis(base: float, height: float, most: int, what: str) -> list[str]:
    named = (
        f'<text transform="translate(14,{base - height / 2:.1f}) rotate(-90)" text-anchor="middle" '
        f'font-size="11">{what}</text>'
    )
    line = f'<path d="M{LEFT},{base - height:.1f} V{base:.1f} H{WIDTH - 12}" fill="none" stroke="#333"/>'
    return [
        line,
        _text(LEFT - 6, base, "0", "end", 11),
        _text(LEFT - 6, base - height + 9, str(most), "end", 11),
        named,
    ]


def _hours(until: float, width: float, base: float) -> list[str]:
    step = next((step for step in (600, 1800, 3600, 7200, 14400) if until / step <= 9), 14400)
    marks = []
    for number in range(1, int(until / step) + 1):
        x = LEFT + number * step / until * width
        minutes = number * step // 60
        marks.append(f'<path d="M{x:.1f},{base:.1f} v4" stroke="#333"/>')
        marks.append(_text(x, base + 16, f"{minutes // 60}:{minutes % 60:02} h", "middle", 11))
    return marks


def _text(x: float, y: float, text: str, anchor: str, size: int, colour: str = "#111") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{colour}">{escape(text)}</text>'
    )
