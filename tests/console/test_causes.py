"""Each cause of a failure is told once."""

from __future__ import annotations

from collections.abc import Iterable

from skyward.console.causes import AGAIN_S, Causes
from skyward.model.events.event import BootstrapFailed, Error, LaunchDelayed, NodeReady, SkywardEvent
from skyward.model.instances.instance import InstanceInfo


def told(events: Iterable[SkywardEvent]) -> list[str]:
    causes = Causes()
    return [line.text for event in events if (line := causes.tell(event)) is not None]


def failed(node: int, why: str, at: float = 0.0) -> BootstrapFailed:
    return BootstrapFailed(phase="deps", error=why, instance=InstanceInfo(node=node), at=at)


def test_nodes_that_fail_alike_say_so_in_a_few_words() -> None:
    """Once each, however often they are tried, and whatever their machines and directories are called."""
    events: list[SkywardEvent] = []
    for attempt in range(3):
        for node in range(3):
            why = f"no such package in /env/py3.11-3e51c{attempt}{node} of node-{node}-755cc{attempt}"
            events += [failed(node, why), Error(message=why, at=0.0)]
    assert told(events) == [
        "bootstrap failed in deps: no such package in /env/py3.11-3e51c00 of node-0-755cc0",
        "bootstrap failed in deps, for the same reason",
        "bootstrap failed in deps, for the same reason",
    ]


def test_another_cause_is_told() -> None:
    """Also of the same node."""
    assert told([failed(0, "no such package"), failed(0, "no room"), Error(message="no network", at=0.0)]) == [
        "bootstrap failed in deps: no such package",
        "bootstrap failed in deps: no room",
        "no network",
    ]


def test_a_start_that_is_put_off_again_says_until_when() -> None:
    """Its reason was told."""
    delayed = [LaunchDelayed(nodes=(1,), failures=n, retry_in=10.0 * n, reason="no capacity") for n in (1, 2)]
    assert told(delayed) == [
        "1 start failed: no capacity (tried again in 10.0 s)",
        "2 starts failed: for the same reason (tried again in 20.0 s)",
    ]


def test_what_still_fails_later_is_told_again() -> None:
    """After ten minutes."""
    late = Error(message="cannot reach the cloud", at=AGAIN_S)
    assert told([Error(message="cannot reach the cloud", at=0.0), late]) == [late.message] * 2


def test_what_is_no_failure_is_told_each_time() -> None:
    """As it is anywhere else."""
    assert told([NodeReady(node=0), NodeReady(node=0)]) == ["ready", "ready"]
