"""The consoles that draw: what they show of a pool."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import textwrap
import time
from collections.abc import Callable

import pytest

from skyward.console import screen as screen_module
from skyward.console.footer import FooterConsole
from skyward.console.live import LiveConsole
from skyward.console.minimal import MinimalConsole
from skyward.console.screen import Screen
from skyward.model.events.event import (
    BootstrapPhase,
    ClusterReady,
    CostFinal,
    CostUpdate,
    InfraCreating,
    InstanceLaunched,
    InstanceRequested,
    Log,
    Metrics,
    NodeReady,
    PoolStopping,
    Progress,
    SkywardEvent,
    TaskCompleted,
    TaskStarted,
)
from skyward.model.instances.instance import InstanceInfo
from tests.console.terminal import Terminal

Shown = Callable[..., list[str]]


@pytest.fixture(autouse=True)
def still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Feet are drawn at once, and only when a test says so."""
    monkeypatch.setattr(screen_module, "GRACE_S", 0.0)
    monkeypatch.setattr(screen_module, "INTERVAL_S", 3600.0)


def shown(kind: type[FooterConsole], *events: SkywardEvent, columns: int = 100, lines: int = 30) -> list[str]:
    """What a terminal shows after some events."""
    terminal = Terminal(columns, lines)
    screen = Screen(terminal, terminal.size)
    console = kind(terminal, colours=False, screen=screen)
    for event in events:
        console.handle(event)
    screen.draw()
    rows = terminal.scrolled
    console.close()
    return rows


def failed(number: int) -> TaskCompleted:
    return TaskCompleted(task_id=str(number), function="f", node=0, success=False, error="no")


READY = (NodeReady(node=0), NodeReady(node=1), ClusterReady(nodes=2, elapsed=1.0))


def test_minimal_shows_one_row() -> None:
    """The small console says in one row what is up, what runs and how far it is."""
    rows = shown(
        MinimalConsole,
        *READY,
        TaskStarted(task_id="1", function="f", node=0),
        failed(2),
        Progress(label="f", done=1, total=4),
    )
    assert "node-0 · f failed after 0 ms: no" == rows[0]
    assert "2 nodes | 1 running | 1 failed | f 25%" == rows[1][2:]
    assert 2 == len(rows)


def test_minimal_shows_what_a_pool_waits_for() -> None:
    """While it opens, the row names the state of a node that is not ready."""
    rows = shown(MinimalConsole, InstanceRequested(node=0), NodeReady(node=1))
    assert rows[0][2:].startswith("1/2 nodes | requested")


def test_minimal_fits_the_width() -> None:
    """The row is cut rather than wrapped."""
    assert ["2 nodes | …"] == [row[2:] for row in shown(MinimalConsole, *READY, failed(1), columns=13)[-1:]]


def test_live_shows_nodes_tasks_bars_and_cost() -> None:
    """The full console has a heading, a row for each node, and rows for tasks, bars and cost."""
    rows = shown(
        LiveConsole,
        InfraCreating(provider="aws", region="eu-west-1"),
        *READY,
        TaskStarted(task_id="1", function="f", node=1),
        TaskCompleted(task_id="2", function="f", node=0),
        Progress(label="rows", done=50, total=100),
        CostUpdate(elapsed_seconds=1, accumulated_cost=0.5, hourly_rate=12.0, spot_count=2, ondemand_count=0),
    )
    assert rows[0].startswith("aws · eu-west-1 · 2 nodes · ")
    assert ["node-0", "ready", "1", "done"] == rows[1].split()
    assert ["node-1", "ready", "1", "running"] == rows[2].split()
    assert rows[3].startswith("tasks  1 running · 1 done")
    assert ["rows", "50/100"] == [rows[4].split()[0], rows[4].split()[-1]]
    assert "cost   $0.50 · $12.00/h (2 spot)" == rows[5]


def test_live_summarises_nodes_that_have_no_room() -> None:
    """Of many nodes those that are not ready are shown, and the rest is counted."""
    rows = shown(
        LiveConsole,
        *(NodeReady(node=node) for node in range(100)),
        InstanceRequested(node=100),
        lines=16,
    )
    nodes = [row.split()[0] for row in rows if row.startswith("node-")]
    assert "node-100" == nodes[-1]
    assert ["+", str(101 - len(nodes)), "ready"] == rows[-1].split()
    assert len(rows) <= 12


@pytest.mark.parametrize("columns", [20, 40, 70, 89])
def test_live_fits_the_width(columns: int) -> None:
    """No row is wrapped, and nodes can be told apart, however narrow the terminal."""
    rows = shown(LiveConsole, *READY, failed(1), Progress(label="x" * 60, done=5, total=9), columns=columns)
    assert ["node-0", "node-1", "tasks"] == [row.split()[0] for row in rows[-4:-1]]
    assert "─" in rows[-5] or "…" in rows[-5]


LAUNCHED = InstanceLaunched(
    instance_id="i", node=1, provider="aws", instance_type="g5.xlarge", accelerator="A10G", spot=False
)
MEASURED = Metrics(
    instance_id="i",
    node=1,
    cpu_percent=93.0,
    memory_percent=40.0,
    memory_used_mb=4.0,
    memory_total_mb=10.0,
    gpu_utilization=71.0,
    gpu_memory_used_mb=60.0,
    gpu_memory_total_mb=80.0,
)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (120, "node-1  ready  cpu 93%  mem 40%  gpu 71%  vram 75%  1 running  1 done  g5.xlarge (A10G)"),
        (80, "node-1  ready  cpu 93%  mem 40%  gpu 71%  vram 75%  1 running  1 done"),
        (62, "node-1  ready  cpu 93%  gpu 71%  vram 75%  1 running  1 done"),
        (50, "node-1  ready  cpu 93%  gpu 71%  1 running  1 done"),
        (30, "node-1  ready  1 running"),
        (14, "node-1  ready"),
    ],
)
def test_live_shows_what_fits(columns: int, expected: str) -> None:
    """The loads of a node stand at 80 columns; fewer show what is needed most, and nothing is cut in the middle."""
    rows = shown(
        LiveConsole,
        LAUNCHED,
        NodeReady(node=1),
        TaskStarted(task_id="1", function="f", node=1),
        TaskCompleted(task_id="2", function="f", node=1),
        MEASURED,
        columns=columns,
    )
    assert expected == next(row for row in rows if row.startswith("node-1")).rstrip()


def test_live_shows_what_a_node_does_and_for_how_long() -> None:
    """Its state and its phase have a time each."""
    began = time.time()
    events = (
        InstanceRequested(node=0, at=began - 70),
        BootstrapPhase(instance=InstanceInfo(node=0), phase="pip", event="started", at=began - 65),
    )
    assert "node-0  bootstrap 1:05 pip 1:05" == shown(LiveConsole, *events)[1]
    assert "node-0  bootstrap 1:05" == shown(LiveConsole, *events, columns=25)[1]


@pytest.mark.parametrize("lines", range(1, 13))
@pytest.mark.parametrize("columns", [1, 8, 20, 80])
def test_live_fits_any_window(columns: int, lines: int) -> None:
    """Small ones have one row, or fewer nodes, and those that are too small none."""
    terminal = Terminal(columns, lines)
    screen = Screen(terminal, terminal.size)
    console = LiveConsole(terminal, colours=False, screen=screen)
    for event in (*READY, failed(1), Progress(label="x" * 60, done=5, total=9), MEASURED):
        console.handle(event)
    screen.draw()
    assert 0 < len(console.rows(console._state, time.time(), columns, 3)) <= 3
    assert len([row for row in terminal.rows if row]) <= lines
    console.close()


def test_what_is_owed_grows_between_two_reports() -> None:
    """By the machines' hourly rate."""
    rented = {"spot_count": 0, "ondemand_count": 2}
    cost = CostUpdate(elapsed_seconds=1, accumulated_cost=0.5, hourly_rate=36.0, **rented, at=time.time() - 100)
    assert shown(LiveConsole, *READY, cost)[-1].startswith("cost   $1.50 · $36.00/h")


def test_a_line_stays_when_the_pool_was_left() -> None:
    """Calls, failures, what was cancelled, time and cost."""
    terminal = Terminal(100, 24)
    console = LiveConsole(terminal, colours=False, screen=Screen(terminal, terminal.size))
    stopped = TaskCompleted(task_id="3", function="f", node=0, success=False, stopped=True)
    final = CostFinal(total_cost=0.25, total_seconds=60.0, savings_vs_ondemand=0.0)
    for event in (*READY, TaskCompleted(task_id="2", function="f", node=0), failed(1), stopped, final):
        console.handle(event)
    console.close()
    text = re.sub("in [^,]* on", "in … on", terminal.scrolled[-1])
    assert text == "skyward · 1 call done, 1 failed, 1 cancelled, in … on 2 nodes, $0.25"


def test_live_says_that_it_closes() -> None:
    """The heading tells what the pool is doing."""
    assert " · closing · " in shown(LiveConsole, *READY, PoolStopping())[0]


@pytest.mark.parametrize("kind", [MinimalConsole, LiveConsole])
def test_log_lines_scroll_above_with_their_node(kind: type[FooterConsole]) -> None:
    """What nodes write is shown as it comes, with the node's prefix."""
    rows = shown(kind, *READY, Log(line="loss 0.1", node=1), Log(line="\x1b[2Jloss 0.2", node=0))
    assert ["node-1 | loss 0.1", "node-0 | loss 0.2"] == rows[:2]


@pytest.mark.parametrize("kind", [MinimalConsole, LiveConsole])
def test_failures_do_not_flood(kind: type[FooterConsole]) -> None:
    """The first failures have lines; the rest is counted when the console closes."""
    terminal = Terminal(lines=40)
    console = kind(terminal, colours=False, screen=Screen(terminal, terminal.size))
    for number in range(5000):
        console.handle(failed(number))
    console.close()
    assert 12 == len(terminal.scrolled)
    assert "skyward · 4,990 more failed or are tried again" == terminal.scrolled[-2]
    assert terminal.scrolled[-1].startswith("skyward · 5,000 calls failed, in ")


@pytest.mark.parametrize("kind", [MinimalConsole, LiveConsole])
def test_a_closed_console_stays_closed(kind: type[FooterConsole]) -> None:
    """An event that comes late puts up no footer."""
    terminal = Terminal()
    screen = Screen(terminal, terminal.size)
    console = kind(terminal, colours=False, screen=screen)
    console.close()
    console.handle(NodeReady(node=0))
    screen.draw()
    assert terminal.raw == ""


@pytest.mark.parametrize("mode", ["rich", "minimal"])
def test_prints_of_the_user_survive_in_a_real_terminal(mode: str) -> None:
    """In a process with a terminal of its own, what the user prints stays whole while the footer is redrawn."""
    script = """
        import sys, time
        from skyward.console import open_console, screen
        from skyward.model.events.event import NodeReady, Log
        screen.GRACE_S, screen.INTERVAL_S = 0.0, 0.01
        console = open_console(sys.argv[1])
        console.handle(NodeReady(node=0))
        for number in range(40):
            print("print", number)
            console.handle(Log(line=f"line {number}", node=0))
            time.sleep(0.01)
        console.close()
        print("bye")
    """
    control, terminal_end = pty.openpty()
    fcntl.ioctl(terminal_end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environment = os.environ | {"TERM": "xterm-256color", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), mode],
        stdin=terminal_end,
        stdout=terminal_end,
        stderr=terminal_end,
        env=environment,
    )
    os.close(terminal_end)
    received = bytearray()
    with os.fdopen(control, "rb", buffering=0) as reader:
        try:
            while piece := reader.read(4096):
                received += piece
        except OSError:  # how Linux says that the other end was closed
            pass
    assert 0 == process.wait(30)
    terminal = Terminal(80, 24)
    terminal.write(received.decode().replace("\r\n", "\n"))
    expected = [text for number in range(40) for text in (f"print {number}", f"node-0 | line {number}")]
    assert [*expected, "bye"] == terminal.scrolled
    assert "ready" in received.decode() or "1 node" in received.decode()
