"""`sky.barrier`: together, again, and never for the dead."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from skyward.collections.named_collections import Collections
from skyward.errors import BarrierBrokenError, UsageError
from tests.collections.holder_process import holder_process, said
from tests.collections.store_server import Opener, StoreServer

TIMEOUT_S = 20


def await_members(store: StoreServer, count: int) -> None:
    """Wait until so many participants wait."""
    client = store.client()
    deadline = time.monotonic() + TIMEOUT_S
    while client.hlen("sky:barrier-members:b") < count:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    client.close()


def test_all_go_on_when_the_last_arrives(opened: Opener) -> None:
    """None goes on before, and each gets an index of its own, round after round."""
    n, rounds = 4, 10
    arrived = [0] * rounds
    counting = threading.Lock()

    def participant(number: int) -> list[int]:
        barrier = opened(f"p{number}").barrier("b", n)
        found = []
        for round_ in range(rounds):
            with counting:
                arrived[round_] += 1
            found.append(barrier.wait(TIMEOUT_S))
            assert n == arrived[round_]
        return found

    with ThreadPoolExecutor(n) as pool:
        indices = list(pool.map(participant, range(n)))
    assert [list(range(n))] * rounds == [sorted(of_round) for of_round in zip(*indices, strict=True)]


def test_one_alone_does_not_wait(collections: Collections) -> None:
    """A barrier for one lets it pass."""
    assert [0, 0] == [collections.barrier("b", 1).wait(), collections.barrier("b", 1).wait()]


@pytest.mark.parametrize("n", [0, -1, 1.5, True, None])
def test_n_is_a_number_of_participants(collections: Collections, n: object) -> None:
    """Anything else is refused."""
    with pytest.raises(UsageError, match="whole number of participants from 1 on"):
        collections.barrier("b", n)  # type: ignore[arg-type]


def test_another_n_is_refused_while_one_waits(store: StoreServer, opened: Opener) -> None:
    """The error says what the others wait for; they go on waiting."""
    one, other = opened("one"), opened("other")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(one.barrier("b", 2).wait, TIMEOUT_S)
        await_members(store, 1)
        with pytest.raises(UsageError, match="for 2 participants, who wait there, and not for 3"):
            other.barrier("b", 3).wait(0)
        assert 1 == other.barrier("b", 2).wait(TIMEOUT_S)
        assert 0 == waiting.result(TIMEOUT_S)


def test_a_participant_without_time_breaks_the_round(opened: Opener) -> None:
    """All that wait raise, and the next round is whole."""
    one, other = opened("one").barrier("b", 3), opened("other").barrier("b", 3)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(one.wait, TIMEOUT_S)
        with pytest.raises(BarrierBrokenError, match=r"a participant waited for 0\.3 s"):
            other.wait(0.3)
        with pytest.raises(threading.BrokenBarrierError, match=r"a participant waited for 0\.3 s"):
            waiting.result(TIMEOUT_S)
    with ThreadPoolExecutor(3) as pool:
        again = [opened(f"p{number}").barrier("b", 3) for number in range(3)]
        assert [0, 1, 2] == sorted(pool.map(lambda barrier: barrier.wait(TIMEOUT_S), again))


def test_a_killed_participant_breaks_the_round(store: StoreServer, opened: Opener) -> None:
    """The others raise when its lease is over, and do not hang."""
    code = "say('here')\ncollections.barrier('b', 3).wait()"
    with holder_process(store, "dying", code) as process, ThreadPoolExecutor(1) as pool:
        assert "here" == said(process)
        waiting = pool.submit(opened("living").barrier("b", 3).wait, TIMEOUT_S)
        await_members(store, 2)
        process.send_signal(signal.SIGKILL)
        with pytest.raises(BarrierBrokenError, match="a participant has ended"):
            waiting.result(TIMEOUT_S)


def test_processes_wait_for_each_other(store: StoreServer) -> None:
    """A round is complete when all processes are there."""
    code = "say(collections.barrier('b', 3).wait(20))"
    with ExitStack() as stack:
        found = [stack.enter_context(holder_process(store, f"p{number}", code)) for number in range(3)]
        assert ["0", "1", "2"] == sorted(said(process) for process in found)


def test_coroutines_use_the_twin(collections: Collections) -> None:
    """More of them wait than an event loop has threads; one that is cancelled breaks the round."""

    async def work() -> None:
        barrier = collections.barrier("b", 40)
        assert list(range(40)) == sorted(await asyncio.gather(*(barrier.wait_async(TIMEOUT_S) for _ in range(40))))
        one, other = (asyncio.ensure_future(barrier.wait_async(TIMEOUT_S)) for _ in range(2))
        await asyncio.sleep(0.1)
        one.cancel()
        with pytest.raises(asyncio.CancelledError):
            await one
        with pytest.raises(BarrierBrokenError, match="a participant was cancelled"):
            await other

    asyncio.run(work())
