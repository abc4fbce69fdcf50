"""
A pool in a notebook: what is known of it, as HTML and as lines of text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from skyward.console.bar_wording import BAR_STAYS_S, how_far
from skyward.console.closing import closing_of
from skyward.console.minimal import summary
from skyward.console.shown_nodes import WAITING, shown_nodes
from skyward.console.state import Bar, NodeView, State
from skyward.console.wording import count, lasted, several
from skyward.markup import DIM, FRAME, cell, element, escaped, table
from skyward.model.instances.cost_report import money

__all__ = ["html_of", "text_of"]

# What is readable at a glance, and small enough to be sent several times a second.
_NODES = 16
_BARS = 8
_COLOURS = {"ready": "#2e9e5b", "silent": "#c78a00", "lost": "#d64545", "stopping": "#c78a00", "gone": "inherit"}
_WAITS = "#c78a00"
_TRACK = (
    "display:inline-block;width:14em;height:.7em;border-radius:.35em;background:rgba(128,128,128,.25);overflow:hidden"
)
_FILL = "display:block;height:100%;border-radius:.35em;background:#3b82f6"
_ENDLESS = "display:block;height:100%;background:repeating-linear-gradient(45deg,#3b82f6 0 6px,transparent 6px 12px)"


def html_of(state: State, now: float) -> str:
    """
    Return a pool as HTML: its nodes, bars, calls and cost, and at the end what it did.

    Args:
        state: What is known.
        now: The time, in seconds since the epoch.

    >>> "opening" in html_of(State(wanted=2, began=10.0), 11.0)
    True
    """
    parts = [_heading(state, now)]
    if state.phase != "closed":
        parts += _nodes(state, now)
    parts += [*_calls(state, now), *_bars(state, now), *_cost(state, now)]
    last = closing_of(state) if state.phase == "closed" else None
    if last is not None:
        parts.append(
            element("div", escaped(last.text), f"color:{_COLOURS['lost' if last.kind == 'error' else 'ready']}")
        )
    return element("div", "".join(parts), FRAME)


def text_of(state: State, now: float) -> str:
    """
    Return a pool in plain text, for a reader without HTML.

    Args:
        state: What is known.
        now: The time, in seconds since the epoch.

    >>> text_of(State(wanted=2, began=10.0), 11.0)
    '0/2 nodes | opening 1.0 s'
    """
    last = closing_of(state) if state.phase == "closed" else None
    if last is not None:
        return last.text
    return "closed" if state.phase == "closed" else summary(state, now)


def _heading(state: State, now: float) -> str:
    ready = sum(view.state == "ready" for view in state.nodes.values())
    there = sum(view.state != "gone" for view in state.nodes.values())
    wanted = max(state.wanted, there)
    nodes = several(ready, "node") if ready >= wanted else f"{ready} of {several(wanted, 'node')}"
    if state.phase == "closed":
        nodes = several(len(state.nodes) or state.wanted, "node")
    phases = {
        "opening": f"opening {lasted(now - state.began)}",
        "ready": "ready",
        "stopping": "closing",
        "closed": f"closed after {lasted(state.at - state.began)}",
    }
    facts = [fact for fact in (state.provider, state.region or "", nodes) if fact]
    title = element("b", escaped(" · ".join(facts)))
    return element("div", f"{title} {element('span', escaped(f'· {phases[state.phase]}'), DIM)}")


def _nodes(state: State, now: float) -> Iterator[str]:
    if not state.nodes:
        return
    chosen, left_out = shown_nodes(state, _NODES)
    running = Counter(task.node for task in state.running.values())
    yield table(_node(index, state, running[index], now) for index in chosen)
    if left_out:
        rest = ", ".join(f"{count(number)} {name}" for name, number in left_out.items())
        yield element("div", escaped(f"+ {rest}"), DIM)


def _node(index: int, state: State, running: int, now: float) -> list[str]:
    view = state.nodes[index]
    standing = element("span", escaped(f"● {view.state}"), f"color:{_COLOURS.get(view.state, _WAITS)}")
    said = " ".join(_waiting(view, now))
    return [
        cell(escaped(f"node-{index}"), "font-weight:600"),
        cell(f"{standing} {element('span', escaped(said), DIM)}"),
        cell(escaped(" · ".join(_work(index, state, running)))),
        cell(escaped(" ".join(_loads(view)))),
        cell(escaped(" ".join(_machine(view))), DIM),
    ]


def _waiting(view: NodeView, now: float) -> Iterator[str]:
    """Yield for how long a node has been on its way, and what it does meanwhile."""
    if view.state in WAITING:
        yield lasted(now - view.since)
    if view.detail:
        yield view.detail
        if view.state in WAITING and now - view.detail_since >= 1:
            yield lasted(now - view.detail_since)


def _work(index: int, state: State, running: int) -> Iterator[str]:
    counts = {"running": running, "done": state.done.get(index, 0), "failed": state.failed.get(index, 0)}
    yield from (f"{count(number)} {word}" for word, number in counts.items() if number)


def _loads(view: NodeView) -> Iterator[str]:
    loads = {"cpu": view.cpu, "mem": view.memory, "gpu": view.gpu, "vram": view.gpu_memory}
    yield from (f"{name} {percent:.0f}%" for name, percent in loads.items() if percent is not None)


def _machine(view: NodeView) -> Iterator[str]:
    facts = ("spot" if view.spot else "", view.instance_type, f"({view.accelerator})" if view.accelerator else "")
    yield from (fact for fact in facts if fact)


def _calls(state: State, now: float) -> Iterator[str]:
    done, failed = sum(state.done.values()), sum(state.failed.values())
    if state.phase == "closed" or not (done or failed or state.running or state.cancelled):
        # The closing line counts them.
        return
    parts = [f"{count(len(state.running))} running", f"{count(done)} done"]
    parts += [
        f"{count(number)} {word}" for word, number in (("failed", failed), ("cancelled", state.cancelled)) if number
    ]
    rate = state.rate(now)
    if rate >= 0.1:
        parts.append(f"{count(rate)}/s")
    yield element("div", f"{element('span', 'calls', DIM)} {escaped(' · '.join(parts))}")


def _bars(state: State, now: float) -> Iterator[str]:
    bars = {name: bar for name, bar in state.bars.items() if not bar.complete or now - bar.at < BAR_STAYS_S}
    if not bars or state.phase == "closed":
        return
    yield table(
        [cell(escaped(label)), cell(_bar(bar)), cell(escaped(how_far(bar, now)), DIM)]
        for label, bar in list(bars.items())[-_BARS:]
    )


def _bar(bar: Bar) -> str:
    if bar.total is None:
        return element("span", element("span", "", _ENDLESS), _TRACK)
    share = min(1.0, bar.done / bar.total) if bar.total > 0 else 1.0
    return element("span", element("span", "", f"{_FILL};width:{share:.1%}"), _TRACK)


def _cost(state: State, now: float) -> Iterator[str]:
    cost = state.cost
    if state.phase == "closed" or cost is None:
        return
    kinds = ((cost.spot_count, "spot"), (cost.ondemand_count, "on demand"))
    counts = ", ".join(f"{number} {name}" for number, name in kinds if number)
    said = f"{money(state.owed(now))} · {money(cost.hourly_rate)}/h{f' ({counts})' if counts else ''}"
    yield element("div", f"{element('span', 'cost', DIM)} {escaped(said)}")
