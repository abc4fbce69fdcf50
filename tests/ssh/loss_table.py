"""
Write the table of measured losses in docs/staying-up.md: each fault happens to a pool on real hosts, default settings.

    python -m tests.ssh.loss_table                    all rows
    python -m tests.ssh.loss_table "host cut off"     this one, and the others stay

A pool of two nodes runs calls, and a third host is free. The fault hits the node of the first call.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

import skyward as sky
from skyward.hookspecs import Instance, Offer, ProviderFacts, hookimpl
from tests.clouds.cloud import ROOT
from tests.freezing import frozen as standing_still, runs_of
from tests.hosts import Host
from tests.ssh.street import Street, Troubled, street
from tests.waiting import until
from tests.yard import ENDED

PAGE = ROOT / "docs" / "staying-up.md"
BEGIN, END = "<!-- Written by python -m tests.ssh.loss_table; do not edit. -->", "<!-- End of what is written. -->"
COLUMNS = ("fault", "noticed in", "its call begun elsewhere after", "whole again after", "results lost", "billed of it")

SILENT = 25.0
"""Seconds for which a node is silent that is heard again: more than `suspect_timeout`, less than `lost_timeout`."""

OTHERS = 10
"""Calls that run beside the one that is watched."""

PATIENCE = 55.0
NOTICE = "notice"


@frozen(kw_only=True)
class Spot(Troubled):
    """Rent out spot machines, which learn from a file in their home that they are reclaimed."""

    @hookimpl
    def skyward_facts(self) -> ProviderFacts:
        """Return how a notice is asked for."""
        command = ("sh", "-c", f'cat "$HOME/{NOTICE}" 2>/dev/null || :')
        end = ("sh", "-c", f': >"$HOME/{ENDED}"')
        return ProviderFacts(name="yard", ends_own_bill=True, end_command=end, notice_command=command, spot=True)

    @hookimpl
    async def skyward_offers(self) -> Sequence[Offer]:
        """Sell one kind, as spot."""
        return (Offer(provider="yard", instance_type="box", vcpus=2, memory_gb=8, spot_price=self.price),)

    def _instance(self, row: dict[str, Any]) -> Instance:
        return evolve(super()._instance(row), spot=True)


@sky.function
def take(runs: str, go: str, number: int) -> int:
    """Note that this runs and where, and wait until a file is there."""
    with open(runs, "a") as file:
        file.write(f"{os.environ['HOME']}\n")
    while not os.path.exists(go):
        time.sleep(0.01)
    return number


@sky.function
def touch() -> str:
    """Return where this runs."""
    return os.environ["HOME"]


@frozen
class Fault:
    """
    Hold a fault.

    Args:
        name: What happens.
        happens: Has it happen to a host; returns what undoes it.
        sign: The event by which it is noticed; None where the pool notices nothing.
        within: Seconds in which it has to be noticed.
        elsewhere: Whether the call is begun on another node.
        lasts: Seconds after which it is undone.
    """

    name: str
    happens: Callable[[Street, int, Troubled], Callable[[], object] | None]
    sign: type[Any] | None
    within: float = 5.0
    elsewhere: bool = True
    lasts: float = 0.0


def _killed(signal_: signal.Signals, find: str) -> Callable[[Street, int, Troubled], None]:
    def happen(there: Street, number: int, provider: Troubled) -> None:
        for pid in getattr(there, find)(there.hosts[number])[:1]:
            os.kill(pid, signal_)

    return happen


def _stopped(pids: Callable[[Street, Host], Sequence[int]]) -> Callable[[Street, int, Troubled], Callable[[], object]]:
    def happen(there: Street, number: int, provider: Troubled) -> Callable[[], object]:
        still = standing_still(*pids(there, there.hosts[number]))
        still.__enter__()
        return lambda: still.__exit__(None, None, None)

    return happen


def _server(there: Street, host: Host) -> Sequence[int]:
    assert host._process is not None
    return host._process.pid, *host.connections()


def _gone(there: Street, number: int, provider: Troubled) -> None:
    provider.lose(number)
    there.hosts[number].stop()
    there.hosts[number].sweep()


def _rebooted(there: Street, number: int, provider: Troubled) -> None:
    host = there.hosts[number]
    host.stop()
    host.sweep()
    host.start()


def _links_cut(there: Street, number: int, provider: Troubled) -> None:
    for host in there.hosts:
        host.cut()


def _warned(there: Street, number: int, provider: Troubled) -> None:
    text = json.dumps({"reason": "rebalance", "certain": True, "at": None})
    (there.hosts[number].base / "home" / NOTICE).write_text(text)


def _full(there: Street, number: int, provider: Troubled) -> Callable[[], object]:
    there.fill(there.hosts[number])
    return lambda: there.make_room(there.hosts[number])


FAULTS: Sequence[Fault] = (
    Fault("agent killed (SIGKILL)", _killed(signal.SIGKILL, "agents"), sky.InstancePreempted),
    Fault("worker killed (SIGKILL), `retries=1`", _killed(signal.SIGKILL, "workers"), None, elsewhere=True),
    Fault(
        "whole node frozen for 25 s (SIGSTOP)",
        _stopped(lambda there, host: [*there.agents(host), *there.workers(host)]),
        sky.NodeSuspected,
        within=20.0,
        lasts=SILENT,
    ),
    Fault(
        "host cut off for 25 s, no connection reset", _stopped(_server), sky.NodeSuspected, within=20.0, lasts=SILENT
    ),
    Fault("instance gone", _gone, sky.InstancePreempted),
    Fault("host rebooted", _rebooted, sky.InstancePreempted),
    Fault("notice, the call goes on", _warned, sky.InstancePreempted, within=8.0, elsewhere=False),
    Fault("all links of the client cut", _links_cut, None, elsewhere=False),
    Fault("disk full for 5 s", _full, None, elsewhere=False, lasts=5.0),
)


@frozen
class Row:
    """Hold what was measured: seconds, and numbers of results; None where there is nothing to measure."""

    noticed: float | None
    elsewhere: float | None
    whole: float
    lost: int
    billed: float

    def cells(self) -> str:
        """Write it."""
        noticed = "not noticed" if self.noticed is None else f"{self.noticed:.1f} s"
        elsewhere = "stays" if self.elsewhere is None else f"{self.elsewhere:.2f} s"
        billed = f"{self.billed:.1f} s" if self.billed else "stays"
        return f"{noticed} | {elsewhere} | {self.whole:.1f} s | {self.lost} | {billed}"


def measure(there: Street, fault: Fault, folder: Path) -> Row:
    """Have a fault happen to a pool, and measure what comes of it."""
    places = there.provider(folder)
    provider = Spot(
        hosts=places.hosts, key=places.key, books=places.books, trouble=places.trouble, known_hosts=places.known_hosts
    )
    heard: list[tuple[float, Any]] = []
    runs, go = folder / "runs", folder / "go"
    pool = sky.Compute(
        provider=provider,
        nodes=2,
        allocation="spot",
        concurrency=OTHERS + 2,
        console="silent",
        logging=False,
    )
    pool.on(sky.SkywardEvent, lambda event: heard.append((time.monotonic(), event)))
    with pool:
        homes = touch() @ pool
        first = take(str(runs), str(go), 0).with_retries(1) > pool
        until(lambda: runs_of(runs), what="the call does not begin")
        number = next(n for n, host in enumerate(there.hosts) if str(host.base / "home") == runs_of(runs)[0])
        others = [take(str(folder / "others"), str(go), 1 + n) > pool for n in range(OTHERS)]
        at = time.monotonic()
        undo = fault.happens(there, number, provider)
        noticed = elsewhere = None
        if fault.sign is not None:
            seen = lambda: [when for when, event in list(heard) if isinstance(event, fault.sign) and when >= at]
            until(seen, PATIENCE, what="it is not noticed")
            noticed = seen()[0] - at
        if fault.elsewhere:
            until(lambda: len(runs_of(runs)) == 2, PATIENCE, what="the call is begun nowhere else")
            elsewhere = max(0.0, time.monotonic() - at - (noticed or 0.0))
        if undo is not None:
            time.sleep(max(0.0, at + fault.lasts - time.monotonic()))
            undo()
            at = time.monotonic() if fault.sign is None else at
        go.touch()
        results = [_value(future) for future in (first, *others)]
        until(lambda: len(set(touch() @ pool)) == len(homes), PATIENCE, what="the pool is not whole again")
        whole = time.monotonic() - at
        billed = provider.ended_after(number, at)
    lost = sum(value != n for n, value in enumerate(results))
    return Row(noticed, elsewhere, whole, lost, billed)


def _value(future: Any) -> Any:
    try:
        return future.result(PATIENCE)
    except sky.SkywardError as error:
        return error


def rows() -> dict[str, str]:
    """Read the rows of the page."""
    lines = [line for line in _written().splitlines() if line.startswith("| ")][1:]
    return {
        name.strip(): cells.strip().rstrip("|").strip() for name, cells in (line[2:].split(" | ", 1) for line in lines)
    }


def _written() -> str:
    found = re.search(f"{re.escape(BEGIN)}(.*){re.escape(END)}", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return found[1] if found else ""


def write(measured: Mapping[str, str]) -> None:
    """Write the rows, in their order."""
    text = PAGE.read_text(encoding="utf-8")
    body = "".join(f"| {fault.name} | {measured[fault.name]} |\n" for fault in FAULTS if fault.name in measured)
    head = f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|"
    table = f"{BEGIN}\n\n{head}\n{body}\n{END}"
    PAGE.write_text(text.replace(f"{BEGIN}{_written()}{END}", table), encoding="utf-8")


def main(*names: str) -> None:
    """Measure some faults, or all, and write their rows."""
    measured: dict[str, str] = {}
    with street() as there:
        for fault in FAULTS:
            if names and fault.name not in names:
                continue
            there.clean()
            for host in there.hosts:
                (host.base / "home" / NOTICE).unlink(missing_ok=True)
            with tempfile.TemporaryDirectory() as folder:
                os.environ["SKYWARD_STATE"] = str(Path(folder, "state"))
                measured[fault.name] = measure(there, fault, Path(folder)).cells()
            print(f"{fault.name} | {measured[fault.name]}", flush=True)
    write({**rows(), **measured})


if __name__ == "__main__":
    main(*sys.argv[1:])
