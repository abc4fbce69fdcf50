"""What the ranks of a broadcast know in common."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
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


def test_a_call_is_abandoned_by_a_thread_beside_it() -> None:
    """The client gets the error, and the next call another process."""
    with sky.Compute(console="silent") as pool:
        before = sky.function(os.getpid)() >> pool
        with pytest.raises(ValueError, match="stuck") as caught:
            stuck() >> pool
        assert ("stuck",) == caught.value.args
        assert before != sky.function(os.getpid)() >> pool


@pytest.mark.slow
def test_the_ranks_of_a_broadcast_share_its_number() -> None:
    """Each broadcast has another, and a call that is none has 0."""
    with sky.Compute(nodes=2, per_node=2, console="silent") as pool:
        first, second = place() @ pool, place() @ pool
        alone, _ = place() >> pool
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
def test_ranks_tell_each_other_something() -> None:
    """All of them learn the same, in the order of ranks, as often as they like; alone there is nobody else."""
    with sky.Compute(nodes=2, per_node=2, console="silent") as pool:
        expected = [tuple(f"rank {rank}" for rank in range(4))] * 4
        assert expected == exchanged() @ pool == exchanged() @ pool
        assert 1 == len(exchanged() >> pool)


@pytest.mark.parametrize("raising", [False, True])
def test_a_process_retires_with_its_call_answered(raising: bool) -> None:
    """Whether it raised or not; the calls that follow at once are answered by others."""
    with sky.Compute(console="silent") as pool:
        before = sky.function(os.getpid)() >> pool
        if raising:
            with pytest.raises(ValueError, match="enough"):
                retires(raising=True) >> pool
        else:
            assert before == retires(raising=False) >> pool
        after = {sky.function(os.getpid)() >> pool for _ in range(3)}
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
@pytest.mark.parametrize("keep_errors", [False, True])
def test_a_broadcast_begins_again_where_processes_were_spent(keep_errors: bool) -> None:
    """Its user sees one that works, in fresh processes on ranks that were not fresh."""
    plugin = sky.Plugin.create("fresh").with_decorator(spent_unless_fresh)
    with sky.Compute(nodes=2, plugins=[plugin], console="silent") as pool:
        getpid = sky.function(os.getpid)
        first = pool.broadcast(getpid(), return_exceptions=keep_errors)
        again = pool.broadcast(getpid(), return_exceptions=keep_errors)
        assert 4 == len({*first, *again})


@pytest.mark.slow
def test_a_call_begins_again_where_its_process_was_spent() -> None:
    """Whichever operator sends it."""
    plugin = sky.Plugin.create("fresh").with_decorator(spent_unless_fresh)
    with sky.Compute(plugins=[plugin], console="silent") as pool:
        getpid = sky.function(os.getpid)
        pids = [getpid() >> pool, (getpid() > pool).result(), *((getpid() & getpid()) >> pool)]
        assert 4 == len(set(pids))


def always_spent(fn: Callable[..., Any]) -> Callable[..., Any]:
    def run() -> None:
        sky.retire()
        raise sky.WorkerSpentError("This never gets better.")

    return run


@pytest.mark.slow
def test_a_broadcast_does_not_begin_again_for_ever() -> None:
    """What fresh processes do not help is the broadcast's error."""
    plugin = sky.Plugin.create("spent").with_decorator(always_spent)
    with sky.Compute(plugins=[plugin], console="silent") as pool, pytest.raises(sky.WorkerSpentError, match="never"):
        sky.function(os.getpid)() @ pool


@pytest.mark.slow
def test_a_broadcast_after_a_call_was_abandoned_has_each_rank_in_its_place() -> None:
    """Also where its call had been sent to the process that was about to end."""
    with sky.Compute(nodes=2, console="silent") as pool:
        for _ in range(5):
            with pytest.raises(ValueError, match="stuck"):
                stuck() >> pool
            assert [0, 1] == sky.function(lambda: sky.instance_info().node)() @ pool
