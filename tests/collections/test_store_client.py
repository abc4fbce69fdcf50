"""Commands to the store: lost connections, a lost store, a full one."""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context

import pytest

from skyward.collections.named_collections import Collections
from skyward.collections.store_address import StoreAddress
from skyward.errors import CollectionError, NoPoolError, StoreFullError, StoreLostError
from tests.collections.cutting_proxy import cutting
from tests.collections.store_server import PASSWORD, Opener, StoreServer, address_of
from tests.seeds import seeds


def test_where_there_is_no_store_the_address_says_why(collections: Collections) -> None:
    """The error of the address is raised as it is."""

    def none() -> StoreAddress:
        raise NoPoolError("No pool is active.")

    with pytest.raises(NoPoolError, match="No pool is active"):
        Collections(none).dict("d")


def test_a_store_that_is_gone_is_lost(own_store: StoreServer) -> None:
    """After a while of attempts the error says where it was, and what to look at."""
    collections = Collections(lambda: address_of(own_store), patience=0.3)
    shared = collections.dict("d")
    shared["k"] = 1
    own_store.end()
    started = time.monotonic()
    with pytest.raises(StoreLostError, match=rf"cannot be reached at {own_store.path}: .*see the pool's log"):
        shared["k"]
    assert time.monotonic() - started < 20


def test_a_wrong_password_is_an_error_of_ours(store: StoreServer) -> None:
    """Nothing of the library's comes out, and the password is in no message."""
    address = StoreAddress(path=store.path, password="wrong one", generation="1", holder="h", task="")
    with pytest.raises(StoreLostError, match="cannot be reached") as caught:
        Collections(lambda: address, patience=0.1).dict("d")
    assert "wrong one" not in str(caught.value) + repr(address)


def test_a_store_that_comes_back_is_used(own_store: StoreServer) -> None:
    """A restart is survived by operations that are under way."""
    collections = Collections(lambda: address_of(own_store), patience=20)
    counter = collections.counter("c")
    counter.increment()
    own_store.end()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(counter.increment)
        own_store.start()
        # This one kept nothing.
        assert 1 == waiting.result(20)


def test_a_new_store_is_not_taken_for_the_old_one(own_store: StoreServer) -> None:
    """Under another generation all operations raise, rather than see an empty store."""
    generation = "first"
    collections = Collections(lambda: address_of(own_store, generation=generation), patience=1)
    shared = collections.dict("d")
    shared["k"] = 1
    own_store.end()
    own_store.start()
    generation = "second"
    for _ in range(2):
        with pytest.raises(StoreLostError, match="a new one was started, which is empty"):
            shared.get("k")
    with pytest.raises(StoreLostError, match="a new one was started"):
        collections.counter("c")
    assert Collections(lambda: address_of(own_store, generation=generation)).dict("d").get("k") is None


def test_where_the_store_is_gets_asked_again_as_long_as_none_is_there(own_store: StoreServer) -> None:
    """The first answers may still name the one that is gone: each attempt asks again."""
    asked: list[str] = []

    def address() -> StoreAddress:
        asked.append("first" if len(asked) < 4 else "second")
        return address_of(own_store, generation=asked[-1])

    shared = Collections(address, patience=20).dict("d")
    shared["k"] = 1
    own_store.end()
    with pytest.raises(StoreLostError, match="a new one was started, which is empty"):
        shared.get("k")


def test_a_store_that_moved_is_followed(own_store: StoreServer) -> None:
    """The address is asked for again when a connection broke."""
    path = f"{own_store.path}.other"
    moved = False

    def address() -> StoreAddress:
        return StoreAddress(path if moved else own_store.path, PASSWORD, "first", "one", "")

    collections = Collections(address, patience=5)
    collections.counter("c").increment()
    own_store.end()
    own_store.path, moved = path, True
    own_store.start()
    assert 1 == collections.counter("c").increment()


@pytest.mark.parametrize("seed", seeds("cut connections", 2))
def test_each_write_takes_effect_once_over_a_bad_line(store: StoreServer, seed: int) -> None:
    """Connections that are cut before the reply lose no write and repeat none."""
    with cutting(store.path, 0.1, seed) as proxy:
        address = StoreAddress(proxy.path, PASSWORD, "first", "one", "")
        collections = Collections(lambda: address, patience=30)
        counter, shared, jobs = collections.counter("c"), collections.dict("d"), collections.queue("q")
        eventual = collections.counter("e", consistency="eventual")
        for number in range(150):
            assert number + 1 == counter.increment()
            eventual.increment()
            shared[number] = number
            assert number == shared.pop(number, "gone")
            jobs.put(number)
            assert number == jobs.get(timeout=10)
            with collections.lock("l"):
                pass
        collections.finish(True)
    assert proxy.cuts > 0
    direct = Collections(lambda: address_of(store, "two"))
    assert (150, 150, 0) == (direct.counter("c").value, direct.counter("e").value, direct.queue("q").qsize())


def test_a_full_store_says_so(own_store: StoreServer) -> None:
    """Writes are refused, what is there can be read and removed, and locks are released."""
    own_store.end()
    own_store.arguments = ("--maxmemory", "4mb", "--maxmemory-policy", "noeviction")
    own_store.start()
    collections = Collections(lambda: address_of(own_store))
    shared = collections.dict("d")
    lock = collections.lock("l")
    lock.acquire()

    def fill() -> None:
        for number in range(1000):
            shared[number] = os.urandom(50_000)

    with pytest.raises(StoreFullError, match="store is full"):
        fill()
    assert 50_000 == len(shared[0])
    lock.release()
    del shared[0]
    shared.clear()
    shared["k"] = 1
    collections.finish(True)


def test_threads_share_one_client(collections: Collections) -> None:
    """Many threads at once get each their own replies."""
    shared = collections.dict("d")

    def work(number: int) -> bool:
        shared[number] = [number] * 100
        return bool([number] * 100 == shared[number])

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(work, range(500)))


def _count_in_child(counter: object) -> None:
    counter.increment()  # type: ignore[attr-defined]


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_has_connections_of_its_own(collections: Collections) -> None:
    """Parent and child count on, and neither reads the other's replies."""
    counter = collections.counter("c")
    counter.increment()
    child = get_context("fork").Process(target=_count_in_child, args=(counter,))
    child.start()
    for _ in range(100):
        counter.increment()
    child.join(20)
    assert 0 == child.exitcode
    assert 102 == counter.value


def test_an_interrupt_leaves_no_reply_behind(collections: Collections) -> None:
    """A wait that Ctrl-C ends takes nothing, and the thread's next operations read their own replies."""
    shared, counter = collections.queue("q"), collections.counter("c")
    assert 1 == counter.increment()
    main, before = threading.main_thread().ident, signal.signal(signal.SIGINT, signal.default_int_handler)
    assert main is not None
    timer = threading.Timer(0.3, signal.pthread_kill, (main, signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            shared.get(timeout=20)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert [2, 3] == [counter.increment(), counter.increment()]
    shared.put("a")
    assert "a" == shared.get(timeout=20)


def test_what_the_store_refuses_is_an_error_of_ours(store: StoreServer, collections: Collections) -> None:
    """A key of another type, which only another program can have made, is said."""
    client = store.client()
    client.set("sky:dict:d", "no hash")
    client.close()
    with pytest.raises(CollectionError, match=r"refused a command: .*Operation against"):
        collections.dict("d").get("k")


def test_a_script_that_the_store_forgot_is_sent_again(store: StoreServer, collections: Collections) -> None:
    """A store that was restarted has no scripts."""
    counter = collections.counter("c")
    counter.increment()
    client = store.client()
    client.script_flush()
    client.close()
    assert 2 == counter.increment()


def test_nothing_waits_after_the_end(opened: Opener) -> None:
    """`finish` ends the threads that collections started."""
    collections = opened("one")
    collections.counter("c", consistency="eventual").increment()
    collections.lock("l").acquire()
    collections.finish(True)
    deadline = time.monotonic() + 5
    while any(thread.name in ("skyward-lease", "skyward-write-behind") for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
