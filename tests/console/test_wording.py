"""How the consoles put things."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from skyward.console.line_style import dressed
from skyward.console.wording import Line, clean, lasted, money, tell
from skyward.model.events.event import (
    ALL,
    BootstrapFailed,
    BootstrapPhase,
    BootstrapProgress,
    ClusterReady,
    CostFinal,
    Error,
    InstanceLaunching,
    InstanceLingers,
    InstancePreempted,
    InstanceProvisioned,
    LaunchDelayed,
    Log,
    NodeRecovered,
    NodeSuspected,
    NodeUnhealthy,
    SkywardEvent,
    TaskCompleted,
    TaskStarted,
)
from skyward.model.instances.cost_report import FirstResult, NodeReceipt, Receipt
from skyward.model.instances.instance import InstanceInfo


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (Log(line="hello", node=1), "hello"),
        (InstanceLaunching(count=1, instance_type="p4d", provider="aws"), "launching 1 instance of type p4d at aws"),
        (
            InstanceLaunching(
                count=2,
                instance_type="p4d",
                provider="aws",
                accelerator="8 × A100 40GB",
                place="eu-central-1b",
                spot=True,
                price=9.8312,
                next_best=("p4d in us-east-1a, spot at $10.02/h", "p4d in eu-central-1b, on demand at $32.77/h"),
            ),
            (
                "launching 2 instances of type p4d with 8 × A100 40GB at aws eu-central-1b, spot at $9.83 an hour "
                "each; next: p4d in us-east-1a, spot at $10.02/h; p4d in eu-central-1b, on demand at $32.77/h"
            ),
        ),
        (
            InstanceLaunching(count=2, instance_type="p4d", provider="aws", accelerator="8 × A100 40GB"),
            "launching 2 instances of type p4d with 8 × A100 40GB at aws",
        ),
        (
            InstanceProvisioned(
                instance_id="i-1", node=0, spot=True, provider="aws", ip="1.2.3.4", instance_type="p4d", price_spot=9.8
            ),
            "runs: i-1, p4d, spot, 1.2.3.4, $9.80 an hour",
        ),
        (
            InstanceProvisioned(
                instance_id="i-1", node=0, spot=False, provider="aws", instance_type="p4d", accelerator="8 × A100 40GB"
            ),
            "runs: i-1, p4d, 8 × A100 40GB",
        ),
        (
            BootstrapPhase(phase="apt", event="completed", elapsed=3.0, instance=InstanceInfo(node=2)),
            "bootstrap, apt: completed in 3.0 s",
        ),
        (BootstrapProgress(instance_id="i", step="pulling image", instance=InstanceInfo(node=2)), "pulling image"),
        (BootstrapFailed(phase="apt", error="no such package"), "bootstrap failed in apt: no such package"),
        (ClusterReady(nodes=4, elapsed=61.0), "ready: 4 nodes in 1:01"),
        (
            LaunchDelayed(nodes=(3,), failures=2, retry_in=4.0, reason="none."),
            "2 starts failed: none. (tried again in 4.0 s)",
        ),
        (LaunchDelayed(nodes=(3, 4), failures=2, retry_in=4.0), "2 nodes could not be started (tried again in 4.0 s)"),
        (TaskCompleted(task_id="1", function="train", node=0, duration=90.0), "train returned after 1:30"),
        (
            TaskCompleted(task_id="1", function="train", node=0, success=False, duration=2.0, error="ValueError: no"),
            "train failed after 2.0 s: ValueError: no",
        ),
        (
            TaskCompleted(
                task_id="1", function="train", node=0, success=False, duration=2.0, error="ValueError: no", again=True
            ),
            "train is tried again, after 2.0 s: ValueError: no",
        ),
        (
            TaskCompleted(
                task_id="1", function="train", node=0, success=False, duration=2.0, error="cancelled", stopped=True
            ),
            "train was stopped after 2.0 s",
        ),
        (InstancePreempted(reason="spot interruption", node=1), "lost its instance: spot interruption"),
        (NodeSuspected(node=1, silent=16.0), "has been silent for 16.0 s"),
        (NodeRecovered(node=1, silent=75.0), "is heard again after 1:15"),
        (NodeUnhealthy(check="user", reason="hot", node=1, replaced=True), "is replaced: hot"),
        (NodeUnhealthy(check="disk", reason="full", node=1), "may be ill: full"),
        (
            CostFinal(total_cost=1.5, total_seconds=600, savings_vs_ondemand=0.5),
            "cost $1.50 for 10:00, $0.50 less than on demand",
        ),
        (Error(message="no heartbeat"), "no heartbeat"),
    ],
)
def test_events_are_told_in_one_line(event: SkywardEvent, text: str) -> None:
    """What happened is said with its facts."""
    line = tell(event)
    assert line is not None
    assert text == line.text


@pytest.mark.parametrize(
    "event",
    [
        TaskStarted(task_id="1", function="f", node=0),
        TaskCompleted(task_id="1", function="f", node=0, duration=0.5),
        BootstrapPhase(phase="apt", event="started"),
        CostFinal(total_cost=0.0, total_seconds=1.0),
    ],
)
def test_what_is_no_news_has_no_line(event: SkywardEvent) -> None:
    """Short tasks, beginnings of phases and pools that cost nothing have no line."""
    assert tell(event) is None


def test_every_line_has_words() -> None:
    """No event is shown as a line without text."""
    plain = {"Error": Error(message="x"), "ClusterReady": ClusterReady(nodes=0, elapsed=0.0)}
    lines = [tell(event) for event in plain.values()]
    assert all(line is not None and line.text for line in lines)
    assert set(plain) <= {kind.__name__ for kind in ALL}


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("plain", "plain"),
        ("tab\tstays", "tab\tstays"),
        ("10 %\r20 %\r30 %", "30 %"),
        ("30 %\r", "30 %"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[2J\x1b[1;1Hhome", "home"),
        ("\x1b]0;title\x07text", "text"),
        ("bell\x07\x08", "bell"),
        ("\x1b", ""),
        ("ünïcödé ✓", "ünïcödé ✓"),
    ],
)
def test_what_moves_the_cursor_is_taken_out(written: str, shown: str) -> None:
    """User code cannot disturb the terminal with what it writes."""
    assert shown == clean(written)


def test_colours_stay_where_there_are_colours() -> None:
    """A terminal shows the colours that user code wrote, and nothing runs on into the next line."""
    assert "\x1b[31mred\x1b[0m" == clean("\x1b[31mred\x1b[2K", colours=True)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 ms"), (-1, "0 ms"), (0.0996, "100 ms"), (0.5, "0.5 s"), (59.96, "1:00"), (3599.9, "1:00:00")],
)
def test_durations_round_into_the_next_unit(seconds: float, text: str) -> None:
    """A duration never reads 60 seconds."""
    assert text == lasted(seconds)


def test_small_amounts_are_not_nothing() -> None:
    """A cost of fractions of a cent is shown."""
    assert ("$0.0012", "$1,234.50") == (money(0.0012), money(1234.5))


def test_each_line_of_a_text_has_the_prefix() -> None:
    """Text of several lines can be told apart from other nodes'."""
    assert ["node-1 · a", "node-1 · b"] == dressed(Line("a\nb", "error", 1), colours=False)
    assert ["skyward · ready"] == dressed(Line("ready"), colours=False)


def test_nodes_have_colours_of_their_own() -> None:
    """Neighbours can be told apart by the colour of their prefix."""
    first, second = (dressed(Line("x", "log", node), colours=True)[0].split("n")[0] for node in (0, 1))
    assert first != second


def a_receipt(**changes: Any) -> Receipt:
    """Make a receipt of two machines, one of which was not seen to end."""
    node = NodeReceipt(
        node=0, instance_id="i-0", provider="aws", instance_type="p4d", spot=True, hourly_rate=3.6, seconds=99.5,
        billed_seconds=100, booting=40, preparing=20, computing=30, idle=5, ending=4.5, cost=0.1, ended=True,
    )  # fmt: skip
    other = evolve(node, node=1, instance_id="i-1", ended=False)
    first = FirstResult(offers=1, launch=1, boot=2, bootstrap=1, agent=1, waiting=0, first_call=2)
    facts: dict[str, Any] = {"nodes": (node, other), "total_cost": 0.2, "foreseen": 3.6, "first_result": first}
    return Receipt(**(facts | changes))


def test_a_receipt_is_told_in_six_lines() -> None:
    """The final cost brings it along, with what may still be billed at its end."""
    line = tell(CostFinal(total_cost=0.2, total_seconds=99.5, receipt=a_receipt()))
    assert line is not None
    assert [
        "cost $0.20 for 1:40",
        "foreseen $3.60 for as long as timeout= allows",
        "billed 3:20 of 2 machines",
        "time booting 1:20, preparing 40.0 s, computing 1:00, idle 10.0 s, ending 9.0 s",
        (
            "first result after 8.0 s: offers 1.0 s, launch 1.0 s, boot 2.0 s, bootstrap 1.0 s, agent 1.0 s, "
            "waiting 0 ms, first call 2.0 s"
        ),
        "may still be billed: i-1",
    ] == line.text.split("\n")


def test_a_receipt_tells_which_accelerators_were_rented() -> None:
    """A name without a memory means several, so that the one that was taken is named."""
    first, second = a_receipt().nodes
    nodes = (evolve(first, accelerator="1 × A100 40GB"), evolve(second, accelerator="1 × A100 80GB"), first)
    line = tell(CostFinal(total_cost=0.2, total_seconds=99.5, receipt=a_receipt(nodes=nodes)))
    assert line is not None
    assert "billed 5:00 of 3 machines (1 with 1 × A100 40GB, 1 with 1 × A100 80GB)" in line.text.split("\n")


def test_a_receipt_tells_what_waiting_for_the_next_pool_costs() -> None:
    """At most, and apart from the sum."""
    receipt = evolve(a_receipt(), lingering=2, linger_s=600.0, linger_cost=1.2)
    line = tell(CostFinal(total_cost=0.2, total_seconds=99.5, receipt=receipt))
    assert line is not None
    assert "2 machines waiting for the next pool for 10:00, for $1.20 more at most" in line.text.split("\n")


def test_a_machine_that_lingers_is_told() -> None:
    """With its price, where it has one."""
    one = InstanceLingers(instance_id="i-1", node=0, seconds=600.0, cost=0.12)
    assert "i-1 waits 10:00 for the next pool, for $0.12 at most" == tell(one).text  # type: ignore[union-attr]
    assert "i-1 waits 10:00 for the next pool" == tell(evolve(one, cost=0.0)).text  # type: ignore[union-attr]


def test_a_receipt_tells_only_what_there_is() -> None:
    """A pool without a planned time and without a result has no lines about them, and one that costs nothing none."""
    receipt = a_receipt(foreseen=None, first_result=None)
    line = tell(CostFinal(total_cost=0.2, total_seconds=99.5, receipt=evolve(receipt, nodes=receipt.nodes[:1])))
    assert line is not None
    assert ["cost", "billed", "time"] == [text.split()[0] for text in line.text.split("\n")]
    assert tell(CostFinal(total_cost=0.0, total_seconds=99.5, receipt=receipt)) is None
