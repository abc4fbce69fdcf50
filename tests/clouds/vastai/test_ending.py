"""The bill ends: whatever was rented is listed whole, and destroyed until no list has it."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from skyward.errors import ProvisionError
from skyward.hookspecs import InstanceState
from skyward_vastai.start import END_COMMAND
from tests.clouds.vastai.client import Client, client, in_real_time, refusal, run
from tests.clouds.vastai.cloud import Cloud
from tests.waiting import until

pytestmark = [pytest.mark.clouds, pytest.mark.timeout(90), pytest.mark.usefixtures("without_hosts")]

LIST = "GET /api/v1/instances/"


async def several(opened: Client, vastai: Cloud, count: int) -> list[str]:
    """Rent several machines of one pool, each with a key of its own so that no call waits."""
    found = []
    for number, offer in enumerate(opened.offers[:count]):
        other = Client(vastai.provider(api_key=f"{vastai.key}{number}"), evolve(opened.cluster, offer=offer), None)
        found += [each.id for each in await other.launch(number)]
    return found


def test_every_page_of_a_list_is_read(vastai: Cloud) -> None:
    """A machine on the last of them is no less ours."""

    async def scenario() -> None:
        async with client(vastai.provider()) as opened:
            ids = await several(opened, vastai, 3)
            vastai.page(2)
            assert set(ids) == {each.id for each in await opened.listed()}
            assert 2 == len(vastai.calls(LIST))
            await opened.provider.skyward_terminate(ids)
            assert [] == vastai.alive()

    run(scenario())


def kept_on(row: dict[str, Any]) -> tuple[int, str]:
    """Return what the start has kept on a machine for its end, and who may read it."""
    path = Path(row["base"], "home", ".skyward", "own")
    return path.stat().st_mode & 0o777, path.read_text()


FAILED_LISTS: list[tuple[int, Any]] = [
    (410, {"success": False, "error": "deprecated_endpoint", "msg": "Use /api/v2/", "instances": []}),
    (200, {"success": False, "error": "oh", "instances": []}),
    (200, {"success": True, "instances": None}),
    (200, "<html>busy</html>"),
    (200, {"instances": [{"label": "x"}]}),
    (403, {"success": False, "error": "forbidden", "instances": []}),
]


@pytest.mark.parametrize(("status", "body"), FAILED_LISTS)
def test_a_failed_list_is_never_an_empty_one(vastai: Cloud, status: int, body: Any) -> None:
    """Nothing counts as gone because nothing can say what is there."""

    async def scenario() -> None:
        async with client(vastai.provider()) as opened:
            await opened.launch()
            vastai.fault(f"{LIST}*", status=status, body=body)
            await refusal(opened.listed())
            await refusal(opened.provider.skyward_owned())
            vastai.calm()
            assert 1 == len(await opened.listed())

    run(scenario())


def test_an_end_that_no_list_confirms_is_an_error(vastai: Cloud) -> None:
    """The machine may be billed on, and is named."""

    async def scenario() -> None:
        async with client(vastai.provider()) as opened:
            [instance] = await opened.launch()
            vastai.fault(f"{LIST}*", status=403, body={"success": False, "error": "forbidden", "instances": []})
            error = await refusal(opened.provider.skyward_terminate([instance.id]))
            assert isinstance(error, ProvisionError)
            assert f"{instance.id} may still be running and billed" in str(error)
            assert f"vastai destroy instance {instance.id}" in str(error)
            vastai.calm()

    run(scenario())


def test_an_order_to_destroy_that_was_refused_by_a_success_is_given_again(vastai: Cloud) -> None:
    """A success that says that it is none counts as refused."""

    async def scenario() -> None:
        async with client(vastai.provider()) as opened:
            [instance] = await opened.launch()
            refused = {"success": False, "error": "busy", "msg": "try later"}
            vastai.fault("DELETE *", status=200, body=refused, times=1)
            await opened.provider.skyward_terminate([instance.id])
            assert [] == vastai.alive()
            assert 2 == len(vastai.calls("DELETE"))

    run(scenario())


def test_a_refused_order_counts_though_a_list_that_lags_has_nothing(vastai: Cloud) -> None:
    """A machine that was just rented may be missing from the list; it is not gone for that."""

    async def scenario() -> None:
        async with client(vastai.provider()) as opened:
            vastai.lag(30.0)
            [instance] = await opened.launch()
            assert [instance.id] == [each.id for each in await opened.listed()]
            refused = {"success": False, "error": "busy", "msg": "try later"}
            vastai.fault("DELETE *", status=200, body=refused, times=1)
            await opened.provider.skyward_terminate([instance.id])
            assert [] == vastai.alive()

    run(scenario())


def test_machines_that_end_together_are_destroyed_by_one_call(vastai: Cloud) -> None:
    """Each call has to keep a distance of seconds from the one before."""

    async def scenario() -> None:
        async with client(vastai.provider()) as opened:
            ids = await several(opened, vastai, 4)
            await asyncio.gather(*(opened.provider.skyward_terminate([each]) for each in ids))
            [call] = vastai.calls("DELETE")
            assert sorted(map(int, ids)) == json.loads(call["body"])["instance_ids"]
            assert [] == vastai.alive()
            assert 1 == len(vastai.calls(LIST))

    run(scenario())


def test_what_does_not_go_with_the_others_goes_by_itself(vastai: Cloud) -> None:
    """Where there is no call for many, each has one of its own."""

    async def scenario() -> None:
        async with client(vastai.provider()) as opened:
            ids = await several(opened, vastai, 2)
            vastai.ask("bulk", False)
            await opened.provider.skyward_terminate(ids)
            assert [] == vastai.alive()

    run(scenario())


def test_others_machines_are_neither_listed_nor_ended(vastai: Cloud) -> None:
    """One that was rented by hand has another label."""

    async def scenario() -> None:
        provider = vastai.provider()
        async with client(provider) as opened:
            order = {"image": "ubuntu:24.04", "disk": 8, "runtype": "ssh_direct", "label": "mine", "onstart": None}
            path = f"/api/v0/asks/{opened.cluster.offer.data['ask']}/"
            made = await provider._account.api.put(path, json=order, once=True, lane="create")
            assert [] == await opened.listed()
            assert str(made["new_contract"]) not in {each.id for each in await provider.skyward_owned()}
            assert [str(made["new_contract"])] == [row["id"] for row in vastai.alive()]
            vastai.terminate(str(made["new_contract"]))

    run(scenario())


def test_pools_of_one_account_share_its_lists(vastai: Cloud) -> None:
    """Twenty that look at the same time make one call in the time that a list holds."""
    vastai.lists_hold = hold = 1.0

    async def scenario() -> None:
        async with client(vastai.provider()) as opened:
            uses = [evolve(opened.cluster, pool_id=f"q{number}") for number in range(20)]
            pools = [Client(vastai.provider(), cluster, None) for cluster in uses]
            began = asyncio.get_running_loop().time()
            assert [[]] * 20 == await asyncio.gather(*(pool.listed() for pool in pools))
            took = asyncio.get_running_loop().time() - began
            assert 1 <= len(vastai.calls(LIST)) <= 1 + took // hold

    run(scenario())


def test_a_row_that_cannot_be_read_is_told_and_the_machine_ended_all_the_same(
    vastai: Cloud, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is guessed of it, and it hides nothing; to destroy it, nothing has to be known."""

    async def scenario() -> None:
        async with client(vastai.provider()) as opened:
            [instance] = await opened.launch()
            await opened.until(lambda found: found[0].state is InstanceState.RUNNING)
            vastai.fault("GET /api/v1/instances/*", "edit", body={"is_bid": "perhaps"})
            assert [instance.id] == [each.id for each in await opened.listed()]
            assert "field=is_bid" in caplog.text
            assert "'perhaps'" in caplog.text
            await opened.provider.skyward_terminate([instance.id])
            assert [] == vastai.alive()

    run(scenario())


@pytest.mark.usefixtures("with_hosts")
def test_a_container_that_nobody_comes_to_ends_its_own_bill(vastai: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its own key, which is good for nothing else; the account's is nowhere on it."""
    monkeypatch.setattr("skyward_vastai.start.LEAST_DEADLINE", 1.0)

    async def scenario() -> None:
        async with client(vastai.provider(), ttl=1.0) as opened:
            await opened.launch()
            [row] = vastai.alive()
            assert vastai.key not in row["onstart"]
            await asyncio.to_thread(until, lambda: not vastai.alive())
            [call] = vastai.calls("DELETE")
            assert f"DELETE /api/v0/instances/{row['id']}/" == call["name"]

    in_real_time(scenario())


@pytest.mark.usefixtures("with_hosts")
def test_what_runs_on_a_node_can_end_it_without_the_first_process_variables(vastai: Cloud) -> None:
    """SSH sessions do not see them, so that the start has kept them; no key of the account is among them."""

    async def scenario() -> None:
        async with client(vastai.provider()) as opened:
            await opened.launch()
            await opened.until(lambda found: found[0].state is InstanceState.RUNNING)
            [row] = vastai.alive()
            assert (0o600, f"key='{row['key']}'\nid='{row['id']}'\n") == kept_on(row)
            env = {"HOME": f"{row['base']}/home", "PATH": f"{row['base']}/bin:/usr/bin:/bin"}
            # It may be gone before it can say so.
            await asyncio.to_thread(subprocess.run, END_COMMAND, env=env, timeout=30, check=False)
            assert [] == vastai.alive()

    in_real_time(scenario())


def test_the_facts_tell_the_truth(vastai: Cloud) -> None:
    """Containers share no network, may be taken back, and end their own bill."""
    facts = vastai.provider().skyward_facts()
    assert (False, True, "running", END_COMMAND) == (
        facts.nodes_reach_each_other,
        facts.spot,
        facts.ends_own_bill,
        facts.end_command,
    )
