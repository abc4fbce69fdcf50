"""One node between its machine and its agent: what is first said of it decides, and nothing waits for it in vain."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve

import skyward as sky
from skyward.engine.nodes.node_shell import NodeShell
from skyward.hookspecs import Instance, InstanceState
from skyward.link.channel import SENSELESS
from skyward.link.emitted import encode_event
from skyward.link.frames import Frame, Kind, encode_json
from skyward.link.messages import CALL
from skyward.model.events.event import Progress
from skyward.model.instances.instance import InstanceInfo, NetworkInfo
from skyward.model.instances.machine import SSHAddress
from tests.renting import rented
from tests.simulated.engine import SimulatedEngine
from tests.simulated.host import SimulatedMachine

WAITING = Instance(id="i-1", node=0, provider="cloud", state=InstanceState.PENDING, private_ip="10.0.0.1")
RUNS = evolve(WAITING, state=InstanceState.RUNNING, address=SimulatedMachine("i-1"), private_ip=None)  # type: ignore[arg-type]
CONFIG = {"lanes": [{}], "slots": 1}


def run(engine: SimulatedEngine, body: Callable[[NodeShell], Any], instance: Instance = WAITING) -> Any:
    """Do something with a node, in the loop."""

    async def inside() -> Any:
        shell = NodeShell(engine, 0, rented(instance), InstanceInfo(node=0))
        return await body(shell)

    return engine.run(inside())


async def connected(shell: NodeShell, **machine: Any) -> SimulatedMachine:
    """Have a node reach its agent, on a machine like this."""
    made = SimulatedMachine("i-1", **machine)
    shell.host = made.make_host("mark", None)  # type: ignore[arg-type]  # it is not prepared
    await shell.connect()
    shell.start(CONFIG, b"", ())
    return made


async def runs(shell: NodeShell) -> bool:
    """Return whether the machine runs by now."""
    try:
        await asyncio.wait_for(shell.running(), 0.1)
    except TimeoutError:
        return False
    return True


def test_a_machine_that_runs_is_taken_over_with_what_was_known(engine: SimulatedEngine) -> None:
    """What a list leaves out is as it was said at the launch."""

    async def body(shell: NodeShell) -> None:
        assert not await runs(shell)
        shell.began(RUNS)
        assert await runs(shell)
        assert (RUNS.address, "10.0.0.1") == (shell.instance.address, shell.instance.private_ip)
        assert ("10.0.0.1", 22) == (shell.info.private_ip, shell.info.ssh_port)

    run(engine, body)


def test_the_port_of_a_machine_is_known_when_it_runs(engine: SimulatedEngine) -> None:
    """Clouds that map ports tell it with the address, and a list that comes later may say no more."""

    async def body(shell: NodeShell) -> None:
        shell.began(evolve(RUNS, address=SSHAddress(host="1.2.3.4", port=40022)))
        assert 40022 == shell.info.ssh_port
        shell.began(RUNS)
        assert 40022 == shell.info.ssh_port

    run(engine, body)


def test_what_a_node_tells_of_its_network_is_a_name_and_a_number(engine: SimulatedEngine) -> None:
    """Whatever else it sends is shortened, or refused with its frame."""

    def welcome(network: Any) -> Frame:
        told = {"hostname": "h", "port": 1, "network": network}
        return Frame(Kind.WELCOME, 0, 0, json.dumps(told).encode())

    async def body(shell: NodeShell) -> None:
        shell._on_frame(welcome({"interface": "ens5", "bandwidth_gbps": 25, "more": 1}), ())
        assert NetworkInfo(interface="ens5", bandwidth_gbps=25.0) == shell.info.network
        shell._on_frame(welcome({"interface": "x" * 1000}), ())
        assert 64 == len(shell.info.network_interface or "")
        shell._on_frame(welcome(None), ())
        assert NetworkInfo() == shell.info.network
        with pytest.raises(SENSELESS):
            shell._on_frame(welcome({"bandwidth_gbps": "fast"}), ())
        with pytest.raises(SENSELESS):
            shell._on_frame(welcome(1), ())

    run(engine, body)


def test_one_that_runs_from_the_first_is_waited_for_no_more(engine: SimulatedEngine) -> None:
    """Clouds of machines that are there anyway grant such."""

    async def body(shell: NodeShell) -> bool:
        return await runs(shell)

    assert run(engine, body, RUNS)


@pytest.mark.parametrize("told", ["never", "gone", "end"])
def test_whoever_waits_for_a_machine_hears_that_it_will_not_run(engine: SimulatedEngine, told: str) -> None:
    """Whatever the reason; a second word changes nothing."""

    async def body(shell: NodeShell) -> None:
        waiting = asyncio.ensure_future(shell.running())
        await asyncio.sleep(1.0)
        match told:
            case "never":
                shell.never(sky.ProvisionError("It did not run."))
            case "gone":
                shell.gone("it was taken")
            case "end":
                await shell.end(0.0)
        shell.began(RUNS)
        await waiting

    with pytest.raises(sky.ProvisionError, match=r"did not run|was lost: it was taken|is being terminated"):
        run(engine, body)


def test_work_on_a_machine_is_broken_off_when_it_is_lost(engine: SimulatedEngine) -> None:
    """At once, and what was being done is cancelled."""
    ended: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(1e6)
        finally:
            ended.append("work")

    async def body(shell: NodeShell) -> None:
        asyncio.get_running_loop().call_later(5.0, shell.gone, "it was taken")
        await shell.while_there(work())

    with pytest.raises(sky.ProvisionError, match="was lost: it was taken"):
        run(engine, body, RUNS)
    assert (["work"], 5.0) == (ended, pytest.approx(engine.now))


def test_a_node_is_ready_when_its_workers_are(engine: SimulatedEngine) -> None:
    """And knows then what only the machine itself knows."""

    async def body(shell: NodeShell) -> None:
        await connected(shell, starts=7.0)
        await shell.ready(10.0)
        assert ("i-1", 1) == (shell.info.hostname, shell.info.head_port)
        await shell.end(5.0)

    run(engine, body, RUNS)
    assert 7.0 == pytest.approx(engine.now)


def test_a_node_that_fails_to_start_says_why(engine: SimulatedEngine) -> None:
    """With how its worker ended, and the end of its output."""
    facts = {"message": "worker 0 ended", "exit_code": 3, "output": ["Traceback:\n", "  oh no\n"]}

    async def body(shell: NodeShell) -> None:
        machine = await connected(shell)
        machine.tell(Kind.WORKER, facts)
        await shell.ready(10.0)

    with pytest.raises(sky.ProvisionError, match=r"(?s)worker 0 ended \(exit code 3\).*\| {3}oh no"):
        run(engine, body, RUNS)


def test_a_ready_node_is_lost_once(engine: SimulatedEngine) -> None:
    """Whichever says so first: its link, the cloud, or a worker that cannot continue."""
    lost: list[str] = []

    async def body(shell: NodeShell) -> None:
        shell.listener.lost = lambda _, why: lost.append(why)
        machine = await connected(shell)
        await shell.ready(10.0)
        machine.switch_off("the line is cut")
        await asyncio.sleep(0.1)
        shell.gone("the provider lists it no more")

    run(engine, body, RUNS)
    assert ["the line is cut"] == lost


def test_a_node_that_is_given_back_is_not_lost(engine: SimulatedEngine) -> None:
    """Its link ends in good order."""
    lost: list[str] = []

    async def body(shell: NodeShell) -> None:
        shell.listener.lost = lambda _, why: lost.append(why)
        await connected(shell)
        await shell.ready(10.0)
        await shell.end(5.0)
        await shell.let_go()
        assert shell.host is not None
        assert shell.host.closed  # type: ignore[attr-defined]

    run(engine, body, RUNS)
    assert [] == lost


@pytest.mark.parametrize("before", [True, False])
def test_a_question_to_a_node_that_is_lost_is_answered(engine: SimulatedEngine, before: bool) -> None:
    """No caller waits for it in vain."""

    async def body(shell: NodeShell) -> None:
        machine = await connected(shell)
        await shell.ready(10.0)
        assert {"number": 1, "port": 1} == await shell.ask({"listen": 1.0})
        assert shell.host is not None
        shell.host.agent._answer = lambda question: None  # type: ignore[attr-defined]
        asyncio.get_running_loop().call_later(0.0 if before else 3.0, machine.switch_off)
        await asyncio.sleep(1.0)
        await shell.ask({"listen": 1.0})

    with pytest.raises(sky.ProvisionError, match="was lost before it answered"):
        run(engine, body, RUNS)


def test_a_frame_that_only_clients_send_is_refused(engine: SimulatedEngine) -> None:
    """It is no word of a node."""

    async def body(shell: NodeShell) -> None:
        shell._on_frame(Frame(Kind.STOP, 0, 0, encode_json(Kind.STOP, {})[8:]), ())

    with pytest.raises(sky.errors.ProtocolError, match="STOP frame, which only clients send"):
        run(engine, body, RUNS)


def test_a_node_that_sends_more_than_it_may_is_refused(engine: SimulatedEngine) -> None:
    """Notices without end, and buffers that no frame of a node has."""

    async def body(shell: NodeShell) -> None:
        told: list[Any] = []
        shell.listener.noticed = lambda _, notice: told.append(notice)
        await connected(shell)
        notice = Frame(Kind.NOTICE, 0, 0, encode_json(Kind.NOTICE, {"reason": "taken back", "certain": False})[8:])
        for _ in range(4096):
            shell._on_frame(notice, ())
        with pytest.raises(sky.errors.ProtocolError, match="more than 4096 NOTICE frames"):
            shell._on_frame(notice, ())
        assert 4096 == len(told)
        with pytest.raises(sky.errors.ProtocolError, match="announced buffers of a FILES frame, which has none"):
            shell._on_announced(Frame(Kind.FILES, 0, 1, b""))

    run(engine, body, RUNS)


def test_an_event_is_of_the_call_that_ran_when_it_came(engine: SimulatedEngine) -> None:
    """It may wait for handlers until that is over; one of a call that is elsewhere is passed over all the same."""
    heard: list[int] = []

    async def body(shell: NodeShell) -> None:
        behind, running = True, {7}
        shell.listener.behind = lambda _: behind
        shell.listener.emitting = lambda _, frame: CALL.unpack_from(frame.body)[0] in running
        shell.listener.emitted = lambda _, emitted: heard.append(emitted.call)
        await connected(shell)
        for call in (8, 7):
            shell._on_frame(Frame(Kind.EMIT, 0, 0, encode_event(call, Progress(label="f", done=1))[0]), ())
        running.clear()
        behind = False
        shell.go_on()

    run(engine, body, RUNS)
    assert [7] == heard


def test_a_line_that_makes_no_sense_ends_the_link_also_later(engine: SimulatedEngine) -> None:
    """It is read only when handlers have caught up, without blocking the loop."""
    lost: list[str] = []

    async def body(shell: NodeShell) -> None:
        behind = True
        shell.listener.lost = lambda _, why: lost.append(why)
        shell.listener.behind = lambda _: behind
        await connected(shell)
        await shell.ready(10.0)
        shell._on_frame(Frame(Kind.LOG, 0, 0, b"\x09"), ())
        assert [] == lost
        behind = False
        shell.go_on()

    run(engine, body, RUNS)
    assert "The node sent an invalid message: A LOG frame does not begin with a stream" in lost[0]


def test_workers_are_started_anew(engine: SimulatedEngine) -> None:
    """And waited for; a node that has no agent yet has nothing to start."""

    async def body(shell: NodeShell) -> None:
        await shell.refresh()
        await connected(shell)
        await shell.ready(10.0)
        await shell.refresh()
        await shell.end(5.0)

    run(engine, body, RUNS)


def test_an_agent_that_does_not_leave_is_waited_for_no_longer_than_it_may(engine: SimulatedEngine) -> None:
    """A second more than its patience, and then its host ends it."""

    async def body(shell: NodeShell) -> None:
        await connected(shell)
        await shell.ready(10.0)
        assert shell.host is not None
        shell.host.agent._hear = lambda frame, fds: None  # type: ignore[attr-defined]
        began = asyncio.get_running_loop().time()
        await shell.end(5.0)
        assert 6.0 == pytest.approx(asyncio.get_running_loop().time() - began)

    run(engine, body, RUNS)
