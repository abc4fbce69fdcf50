"""The rehearsal cloud does what its faults say, by its hooks alone, and its books tell the truth to everybody."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from attrs import asdict, evolve

from skyward.engine.instances.provider_handle import ProviderHandle
from skyward.errors import CapacityError, ConfigError, QuotaError, TransportError
from skyward.hookspecs import InstanceState, Tags
from skyward.model.spec.spec import Spec
from skyward.testing import (
    ListingLag,
    LostResponse,
    NeverBoots,
    NoCapacity,
    Preempt,
    Quota,
    Rehearsal,
    SlowApi,
    SlowBoot,
    TerminateFails,
    TooManyRequests,
)
from skyward.testing.books import GRACE, Books, Machine
from skyward.testing.market import offers
from tests.strangers import give_away
from tests.testing.client import Client
from tests.waiting import until

PENDING, RUNNING = InstanceState.PENDING, InstanceState.RUNNING


def test_a_good_day(books: str) -> None:
    """Machines run at once, are listed by pool, carry their tags, and are gone when they are ended."""
    one, other = Client(books), Client(books, pool="b2")
    made = one.launch(0, 1)
    [foreign] = other.launch(0)
    assert [(0, RUNNING), (1, RUNNING)] == [(machine.node, machine.state) for machine in made]
    assert Tags(pool_id="a1", pool_name="train", node=1, token="t1") == made[1].tags
    assert {machine.id: RUNNING for machine in made} == one.list()
    assert {foreign.id} == {machine.id for machine in one.cloud.machines()} - set(one.list())
    assert {*one.list(), foreign.id} == {machine.id for machine in one.ask("skyward_owned")}
    one.end(*(machine.id for machine in made), "m-unknown")
    assert ({}, {foreign.id: RUNNING}) == (one.list(), other.list())
    other.ask("skyward_end", instances=[foreign, foreign])
    assert [] == one.ask("skyward_owned")
    assert 0 < one.cloud.bill() < 0.01


def test_a_token_rents_once(books: str) -> None:
    """Asked again, the cloud gives the same machines; a new token gets others."""
    client = Client(books)
    first, again = client.launch(0, 1), client.launch(0, 1)
    assert [machine.id for machine in first] == [machine.id for machine in again]
    assert not {machine.id for machine in first} & {machine.id for machine in client.launch(0, token="t2")}
    client.end()


def test_capacity_by_kind_place_and_market(books: str) -> None:
    """What is not concerned can be had."""
    client = Client(books, NoCapacity(zone="north-a"), NoCapacity(spot=True, region="south"))
    by_place = {offer.zone: offer for offer in offers() if offer.instance_type == "gpu"}
    with pytest.raises(CapacityError, match="no gpu left on demand in north-a"):
        client.launch(0, offer=by_place["north-a"])
    with pytest.raises(CapacityError, match="no gpu left as spot in south-b"):
        client.launch(0, offer=by_place["south-b"], spot=True)
    [dear] = client.launch(0, offer=by_place["south-b"])
    [spot] = client.launch(1, offer=by_place["north-b"], spot=True, token="t2")
    assert (0.66, 0.22, True) == (dear.hourly_rate, spot.hourly_rate, spot.spot)
    client.end()


def test_fewer_machines_than_asked_for(books: str) -> None:
    """A launch gets what is left, and the next one nothing, until one is given back."""
    client = Client(books, NoCapacity(left=2))
    made = client.launch(0, 1, 2)
    assert [0, 1] == [machine.node for machine in made]
    with pytest.raises(CapacityError):
        client.launch(2, token="t2")
    client.end(made[0].id)
    assert 1 == len(client.launch(2, token="t3"))
    client.end()


def test_quota(books: str) -> None:
    """More than the account may have is refused as a whole."""
    client = Client(books, Quota(machines=2))
    client.launch(0)
    with pytest.raises(QuotaError, match="2 machines at a time; it has 1, and wants 2 more"):
        client.launch(1, 2, token="t2")
    client.launch(1, token="t3")
    client.end()


def test_a_slow_boot(books: str) -> None:
    """A machine is pending, without an address, until it runs."""
    client = Client(books, SlowBoot(seconds=0.3))
    [machine] = client.launch(0)
    assert (PENDING, None, None) == (machine.state, machine.address, machine.ip)
    until(lambda: client.list() == {machine.id: RUNNING})
    client.end()


def test_a_machine_that_never_boots(books: str) -> None:
    """It is pending for ever, and billed."""
    client = Client(books, NeverBoots())
    [machine] = client.launch(0)
    [row] = Books(books).machines()
    assert PENDING == machine.state == row.state(time.time() + 1e9)
    assert row.cost(row.launched_at + 3600) == pytest.approx(0.1)
    client.end()


def test_a_machine_that_is_taken_back(books: str) -> None:
    """It is gone from the list by itself, and costs nothing more."""
    client = Client(books, Preempt(after=0.2))
    [machine] = client.launch(0)
    [row] = Books(books).machines()
    until(lambda: client.list() == {})
    assert [] == client.cloud.machines()
    assert client.cloud.bill() == row.cost(row.launched_at + 0.2) == row.cost(row.launched_at + 9)
    client.end(machine.id)


def test_a_lost_response(books: str) -> None:
    """The call fails, the machine is there, and the same token finds it."""
    client = Client(books, LostResponse())
    with pytest.raises(TransportError, match="broke before it answered"):
        client.launch(0)
    [left] = client.list()
    assert [left] == [machine.id for machine in client.launch(0)]
    client.end()


def test_a_lost_response_about_a_machine_that_is_taken_back(books: str) -> None:
    """Asked again, the cloud has seen to its end already."""
    client = Client(books, LostResponse(), Preempt(after=0.5))
    with pytest.raises(TransportError, match="broke before it answered"):
        client.launch(0)
    client.launch(0)
    until(lambda: client.list() == {})
    client.end()


def test_termination_that_fails(books: str) -> None:
    """The machine goes on; asked often enough, the cloud ends it."""
    client = Client(books, TerminateFails(times=2))
    [machine] = client.launch(0)
    for _ in range(2):
        with pytest.raises(TransportError, match=f"has not ended {machine.id}"):
            client.end(machine.id)
    assert [machine.id] == [left.id for left in client.cloud.machines()]
    client.end(machine.id)


@pytest.mark.slow
def test_lists_that_lag(books: str) -> None:
    """What was rented is not listed yet, and what is gone is listed still; the books know better."""
    client = Client(books, ListingLag(seconds=0.5))
    [machine] = client.launch(0)
    assert ({}, [machine.id]) == (client.list(), [each.id for each in client.cloud.machines()])
    until(lambda: client.list() == {machine.id: RUNNING})
    client.end()
    assert ({machine.id: RUNNING}, []) == (client.list(), client.cloud.machines())
    until(lambda: client.list() == {})


@pytest.mark.slow
def test_too_many_requests(books: str) -> None:
    """The provider asks again for a while, and each pool has its own count."""
    assert {} == Client(books, TooManyRequests(times=4)).list()
    impatient = Client(books, TooManyRequests(times=5), pool="b2")
    with pytest.raises(TransportError, match="5 times with 429 Too Many Requests"):
        impatient.list()
    assert {} == impatient.list()


def test_a_slow_cloud(books: str) -> None:
    """Every call takes its time."""
    client = Client(books, SlowApi(seconds=0.2))
    began = time.monotonic()
    client.list()
    assert time.monotonic() - began >= 0.2


def test_counts_end_with_the_pool(books: str) -> None:
    """What went wrong for one use of a pool goes wrong for the next as well."""
    client = Client(books, LostResponse())
    for token in ("t1", "t2"):
        with pytest.raises(TransportError):
            client.launch(0, token=token)
        client.end()
        client.ask("skyward_release", cluster=client.cluster, infra=None)


def test_a_machine_ends_itself_when_its_client_is_gone(books: str) -> None:
    """Unless its expiry is put off, as long as the client lives."""
    client = Client(books)
    [machine] = client.launch(0, tags=Tags(pool_id="a1", token="t1", expires_at=time.time() - GRACE - 2))
    assert ({}, InstanceState.ENDED) == (client.list(), machine.state)
    [machine] = client.launch(0, token="t2", tags=Tags(pool_id="a1", token="t2", expires_at=time.time() + 1))
    later = float(int(time.time() + 600))
    client.ask("skyward_renew", cluster=client.cluster, infra=None, ids=[machine.id, "m-gone"], expires_at=later)
    [renewed] = client.cloud.machines()
    assert renewed.tags is not None
    assert (machine.id, later) == (renewed.id, renewed.tags.expires_at)
    client.end()


def test_every_begun_second_is_billed() -> None:
    """From the launch to the end, at the machine's own rate."""
    machine = Machine(
        id="m",
        tags=Tags(pool_id="a1").to_strings(),
        instance_type="small",
        region="north",
        zone="north-a",
        spot=False,
        rate=3600.0,
        on_demand_rate=3600.0,
        host="",
        launched_at=100.0,
        boots_at=101.0,
    )
    assert [0, 1, 3] == [machine.cost(100 + seconds) for seconds in (0, 0.1, 2.5)]
    assert 2 == evolve(machine, ended_at=101.5).cost(200)
    assert 0 == machine.cost(50)


def test_another_process_reads_the_books(books: str) -> None:
    """What exists is written, not remembered."""
    client = Client(books)
    [machine] = client.launch(0)
    script = f"""
import json
from skyward.testing import Rehearsal
print(json.dumps([machine.id for machine in Rehearsal(directory={books!r}).machines()]))
"""
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert [machine.id] == json.loads(done.stdout)
    client.end()


def test_clear_takes_everything_away(books: str) -> None:
    """Machines, and what is written about them."""
    client = Client(books)
    client.launch(0, 1)
    client.cloud.clear()
    assert ([], 0) == (client.cloud.machines(), client.cloud.bill())


def test_the_log_says_what_will_go_wrong(books: str, caplog: pytest.LogCaptureFixture) -> None:
    """As a value that can be pasted into a program."""
    Client(books, NoCapacity(zone="north-a")).ask("skyward_preflight", spec=Spec())
    assert "Rehearsal(faults=(NoCapacity(zone='north-a'),), seed=0)" in caplog.text


def test_machines_that_cannot_end_their_own_bill(books: str) -> None:
    """They stay when their expiry is long over, and cost money, until a client ends them."""
    client = Client(books)
    client.cloud = Rehearsal(directory=books, ends_own_bill=False)
    assert not ProviderHandle(client.cloud).facts.ends_own_bill
    [machine] = client.launch(0, tags=Tags(pool_id="a1", token="t1", expires_at=time.time() - GRACE - 100))
    [row] = Books(books).machines()
    assert (None, [machine.id]) == (row.gone_at(), list(client.list()))
    assert row.cost(time.time() + 7200) > row.cost(time.time() + 3600)
    client.end()
    assert {} == client.list()


def planted(books: Path, victim: Path) -> None:
    """Write a machine into books whose directory is a folder of the user's."""
    row = Machine(
        id="m-0",
        tags=Tags(pool_id="a1", pool_name="train", node=0).to_strings(),
        instance_type="small",
        region=None,
        zone=None,
        spot=False,
        rate=1.0,
        on_demand_rate=None,
        host=str(victim),
        launched_at=0.0,
        boots_at=0.0,
    )
    (books / "machines").mkdir(parents=True)
    (books / "machines" / "m-0.json").write_text(json.dumps(asdict(row)))


def test_books_that_another_user_wrote_are_not_read(tmp_path: Path) -> None:
    """He could have any folder be deleted, and any process be killed."""
    (victim := tmp_path / "thesis").mkdir()
    planted(tmp_path / "books", victim)
    give_away(tmp_path / "books")
    cloud = Rehearsal(directory=tmp_path / "books")
    for ask in (cloud.clear, cloud.machines, cloud.bill, lambda: cloud.preempt("m-0")):
        with pytest.raises(ConfigError, match=r"is not used, because it .*Rehearsal\(directory=\.\.\.\) may name"):
            ask()
    assert victim.is_dir()


def test_only_what_is_in_the_books_is_cleared(tmp_path: Path) -> None:
    """Neither a folder that a row names elsewhere, nor what the user keeps beside them."""
    (victim := tmp_path / "thesis").mkdir()
    planted(tmp_path / "books", victim)
    (tmp_path / "books" / "notes.txt").touch()
    cloud = Rehearsal(directory=tmp_path / "books")
    assert [] == cloud.machines()
    cloud.clear()
    assert victim.is_dir()
    assert ["notes.txt"] == [path.name for path in (tmp_path / "books").iterdir()]


def test_cleared_books_leave_nothing(tmp_path: Path) -> None:
    """Not even their directory; made for the user alone, whatever the umask."""
    before = os.umask(0)
    try:
        Client(str(tmp_path / "books")).launch()
    finally:
        os.umask(before)
    assert {0o700} == {path.stat().st_mode & 0o777 for path in (tmp_path / "books", tmp_path / "books" / "machines")}
    Rehearsal(directory=tmp_path / "books").clear()
    assert [] == list(tmp_path.iterdir())
