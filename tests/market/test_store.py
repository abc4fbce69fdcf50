"""
The cache is a file that processes share, and that no user has to look after.
"""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from skyward.errors import ConfigError
from skyward.hookspecs import Offer
from skyward.market.store import KEPT, OfferStore, Source
from skyward.plan.offers.wanted import Wanted
from tests.market.clouds import gpu

ONE, OTHER = Source("cloud", "1"), Source("cloud", "2")
ALL = Wanted()


@pytest.fixture
def store(cache: Path) -> OfferStore:
    """Give a store whose file does not exist."""
    return OfferStore(cache / "offers.sqlite")


def prices(store: OfferStore, *sources: Source) -> list[float | None] | None:
    """Return the prices of all offers of some sources."""
    found = store.find(ALL, sources)
    return None if found is None else [offer.on_demand_price for offer in found]


def test_an_empty_store_has_nothing(store: OfferStore) -> None:
    """A source that is not there differs from one that sells nothing."""
    assert (None, None, None) == (store.asked_at(ONE), store.find(ALL, [ONE]), store.count(ALL, [ONE]))
    store.put(ONE, [], 10.0)
    assert (10.0, [], 0) == (store.asked_at(ONE), store.find(ALL, [ONE]), store.count(ALL, [ONE]))


def test_what_is_sold_replaces_what_was_sold(store: OfferStore) -> None:
    """Of each source by itself."""
    store.put(ONE, [gpu(price=1.0), gpu(price=2.0)], 10.0)
    store.put(OTHER, [gpu(price=5.0)], 10.0)
    store.put(ONE, [gpu(price=3.0)], 20.0)
    assert [3.0, 5.0] == prices(store, ONE, OTHER)
    assert ([5.0], 1) == (prices(store, OTHER), store.count(ALL, [OTHER]))
    assert (20.0, 10.0) == (store.asked_at(ONE), store.asked_at(OTHER))
    assert None is prices(store, ONE, Source("sky", "1"))


def test_what_nobody_asks_for_is_thrown_away(store: OfferStore) -> None:
    """The file does not grow with every account that was ever used."""
    store.put(ONE, [gpu()], 10.0)
    store.put(OTHER, [gpu()], 11.0 + KEPT)
    assert None is store.asked_at(ONE)
    with closing(sqlite3.connect(store.path)) as db:
        assert (1,) == db.execute("SELECT count(*) FROM offer").fetchone()


@pytest.mark.parametrize("content", [b"not a database" * 1000, b"", b"SQLite format 3\0" + bytes(4000)])
def test_a_file_that_is_none_is_made_anew(store: OfferStore, content: bytes) -> None:
    """Whatever another program wrote there."""
    store.path.parent.mkdir()
    store.path.write_bytes(content)
    assert None is prices(store, ONE)
    store.put(ONE, [gpu(price=1.0)], 10.0)
    assert [1.0] == prices(store, ONE)


@pytest.mark.parametrize(
    "statement", ["PRAGMA user_version = 999", "PRAGMA user_version = 0", "DROP TABLE offer", "DROP TABLE source"]
)
def test_a_file_of_another_version_is_made_anew(store: OfferStore, statement: str) -> None:
    """Older, newer, or without the tables."""
    store.put(ONE, [gpu()], 10.0)
    with closing(sqlite3.connect(store.path)) as db:
        db.execute(statement)
    store.put(OTHER, [gpu(price=1.0)], 20.0)
    assert [1.0] == prices(store, OTHER)


def test_damage_in_the_middle_is_noticed(store: OfferStore) -> None:
    """What can't be read is gone, and can be written again."""
    store.put(ONE, [gpu(price=1.0, instance_type="x" * 200 + str(number)) for number in range(2000)], 10.0)
    with closing(sqlite3.connect(store.path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with store.path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (store.path.stat().st_size - 4096))
    assert None is prices(store, ONE)
    store.put(ONE, [gpu(price=1.0)], 20.0)
    assert [1.0] == prices(store, ONE)


def test_a_place_that_can_t_be_used_is_an_error_that_names_it(cache: Path) -> None:
    """With the variable that names another."""
    cache.write_text("a file where a directory should be")
    with pytest.raises(ConfigError, match=r"cache of offers, .*offers\.sqlite, cannot be used: .* SKYWARD_CACHE"):
        OfferStore(cache / "offers.sqlite").asked_at(ONE)


def test_threads_write_and_read_at_once(store: OfferStore) -> None:
    """A reader sees all of an answer or none of it."""
    store.put(ONE, [gpu(price=0.0)] * 50, 1.0)
    seen: list[set[float | None]] = []

    def write(price: float) -> None:
        store.put(ONE, [gpu(price=price)] * 50, price)

    def look() -> None:
        seen.extend({*(prices(store, ONE) or ())} for _ in range(10))

    threads = [threading.Thread(target=write, args=(float(price),)) for price in range(1, 5)]
    threads += [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert [1] * 30 == [len(found) for found in seen]
    assert 50 == store.count(ALL, [ONE])


def test_processes_share_the_file(store: OfferStore) -> None:
    """Several that make it at once, write to it, and read what the others wrote."""
    script = f"""
import sys
from pathlib import Path
from skyward.market.store import OfferStore, Source
from skyward.hookspecs import Offer
store = OfferStore(Path({str(store.path)!r}))
sys.stdin.readline()
for number in range(5):
    store.put(Source("cloud", sys.argv[1]), [Offer(provider="cloud", instance_type=str(number))] * 20, float(number))
"""
    command = [sys.executable, "-c", script]
    running = [subprocess.Popen([*command, str(number)], stdin=subprocess.PIPE, text=True) for number in range(4)]
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in running:
        process.communicate(timeout=50)
    assert [0] * 4 == [process.returncode for process in running]
    assert 80 == store.count(ALL, [Source("cloud", str(number)) for number in range(4)])


def test_an_offer_s_data_comes_back(store: OfferStore) -> None:
    """The provider gets the offer as it gave it."""
    offer = Offer(provider="cloud", instance_type="a", vcpus=4, data={"ami": ["x", 1]})
    store.put(ONE, [offer], 1.0)
    assert [offer] == store.find(ALL, [ONE])


def test_who_dies_while_writing_leaves_what_was_there(store: OfferStore) -> None:
    """The older answer stands, whole, and can be replaced."""
    store.put(ONE, [gpu(price=1.0)], 10.0)
    script = f"""
import os, signal, sqlite3
from pathlib import Path
from skyward.hookspecs import Offer
from skyward.market.store import OfferStore, Source

class Deadly(sqlite3.Connection):
    def executemany(self, statement, rows):
        super().executemany(statement, [next(iter(rows))])
        os.kill(os.getpid(), signal.SIGKILL)

connect = sqlite3.connect
sqlite3.connect = lambda *args, **options: connect(*args, factory=Deadly, **options)
OfferStore(Path({str(store.path)!r})).put(Source("cloud", "1"), [Offer(provider="cloud", instance_type="a")] * 9, 20.0)
"""
    killed = subprocess.run([sys.executable, "-c", script], check=False, timeout=50)
    assert -signal.SIGKILL == killed.returncode
    assert ([1.0], 10.0) == (prices(store, ONE), store.asked_at(ONE))
    store.put(ONE, [gpu(price=2.0)], 30.0)
    assert [2.0] == prices(store, ONE)
