"""What the ranks of a broadcast know in common."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import skyward as sky


@sky.function
def place() -> tuple[int, int]:
    info = sky.instance_info()
    return info.broadcast, info.head_port


@sky.function
def serve() -> bool:
    """Listen at the port that frameworks meet at, as they do."""
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("127.0.0.1", sky.instance_info().head_port))
        sock.listen()
        with socket.create_connection(sock.getsockname()):
            return True


@sky.function
def stuck() -> None:
    """Be given up by a thread beside it."""
    threading.Thread(target=sky.abandon, args=(ValueError("stuck"),), daemon=True).start()
    threading.Event().wait()


@pytest.fixture(scope="module")
def ranks() -> Iterator[sky.Pool]:
    """Two Local nodes of two ranks each."""
    with sky.Compute(nodes=2, per_node=2, console="silent") as pool:
        yield pool


def test_a_call_is_abandoned_by_a_thread_beside_it(pool: sky.Pool) -> None:
    """The client gets the error, and the next call another process."""
    before = pool.run(sky.function(os.getpid)(), target=0)
    with pytest.raises(ValueError, match="stuck") as caught:
        pool.run(stuck(), target=0)
    assert ("stuck",) == caught.value.args
    assert before != pool.run(sky.function(os.getpid)(), target=0)


@pytest.mark.slow
def test_the_ranks_of_a_broadcast_share_its_number(ranks: sky.Pool) -> None:
    """Each broadcast has another, and a call that is none has 0."""
    first, second = place() @ ranks, place() @ ranks
    alone, _ = place() >> ranks
    numbers = {number for number, _ in first}, {number for number, _ in second}
    assert (1, 1) == (len(numbers[0]), len(numbers[1]))
    assert 3 == len(numbers[0] | numbers[1] | {0})
    assert 0 == alone


@pytest.mark.slow
def test_two_pools_meet_at_ports_of_their_own() -> None:
    """A pool's port is kept for it as long as it lives, and a task of its head may listen there, again and again."""
    with sky.Compute(console="silent") as one, sky.Compute(console="silent") as other:
        assert (place() >> one)[1] != (place() >> other)[1]
        assert [True, True] == [serve() >> one, serve() >> one]


@sky.function
def exchanged() -> tuple[str, ...]:
    return sky.exchange(f"rank {sky.instance_info().global_worker_index}")


@sky.function
def retires(*, raising: bool) -> int:
    """Be the last call of its process."""
    sky.retire()
    if raising:
        raise ValueError("enough")
    return os.getpid()


@pytest.mark.slow
def test_ranks_tell_each_other_something(ranks: sky.Pool) -> None:
    """All of them learn the same, in the order of ranks, as often as they like; alone there is no other."""
    expected = [tuple(f"rank {rank}" for rank in range(4))] * 4
    assert expected == exchanged() @ ranks == exchanged() @ ranks
    assert 1 == len(exchanged() >> ranks)


@pytest.mark.parametrize("raising", [False, True])
def test_a_process_retires_with_its_call_answered(pool: sky.Pool, *, raising: bool) -> None:
    """Whether it raised or not; the calls that follow at once are answered by others."""
    before = pool.run(sky.function(os.getpid)(), target=0)
    if raising:
        with pytest.raises(ValueError, match="enough"):
            pool.run(retires(raising=True), target=0)
    else:
        assert before == pool.run(retires(raising=False), target=0)
    after = {pool.run(sky.function(os.getpid)(), target=0) for _ in range(3)}
    assert (1, False) == (len(after), before in after)


@pytest.mark.slow
def test_calls_that_wait_behind_one_that_retires_run_elsewhere() -> None:
    """Those that were sent ahead are given back."""
    with sky.Compute(console="silent") as pool:
        pids = sky.gather(*(retires(raising=False) for _ in range(4))) >> pool
        assert 4 == len(set(pids))


def spent_unless_fresh(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Refuse a process in which a call has run before, once all ranks know who has one."""

    def run(*args: Any, **kwargs: Any) -> Any:
        used = os.environ.get("USED", "")
        os.environ["USED"] = "yes"
        if "yes" in sky.exchange(used):
            if used:
                sky.retire()
            raise sky.WorkerSpentError("The process has run a call before.")
        return fn(*args, **kwargs)

    return run


@pytest.mark.slow
def test_a_broadcast_begins_again_where_processes_were_spent() -> None:
    """Its user sees one that works, in fresh processes on ranks that were not fresh."""
    plugin = sky.Plugin.create("fresh").with_decorator(spent_unless_fresh)
    with sky.Compute(nodes=2, plugins=[plugin], console="silent") as pool:
        getpid = sky.function(os.getpid)
        first = getpid() @ pool
        again = getpid() @ pool
        assert 4 == len({*first, *again})


@pytest.mark.slow
def test_a_call_begins_again_where_its_process_was_spent() -> None:
    """Whichever operator sends it."""
    plugin = sky.Plugin.create("fresh").with_decorator(spent_unless_fresh)
    with sky.Compute(plugins=[plugin], console="silent") as pool:
        getpid = sky.function(os.getpid)
        pids = [getpid() >> pool, (getpid() > pool).result(), *((getpid() & getpid()) >> pool)]
        assert 4 == len(set(pids))


@pytest.mark.slow
def test_a_broadcast_after_a_call_was_abandoned_has_each_rank_in_its_place(pool: sky.Pool) -> None:
    """Also where its call had been sent to the process that was about to end."""
    for _ in range(5):
        with pytest.raises(ValueError, match="stuck"):
            stuck() >> pool
        assert [0, 1] == sky.function(lambda: sky.instance_info().node)() @ pool
