"""An agent talks to a server over its input and output: what it may do, what it costs, and what is refused."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.mcp.desk import Agent, Desk, talk
from tests.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

HELLO = "import sys, os\nprint('hello', sys.argv[1:], os.environ['WHO'])\nsys.exit(3)\n"
FOREVER = "import time\nprint('begun', flush=True)\ntime.sleep(3600)\n"
SMALL = {"provider": "rehearsal", "machine": "small", "allocation": "on-demand"}


def test_a_script_is_run_and_its_machine_ends(desk: Desk) -> None:
    """Its lines, its exit code and its cost are told, and the rest of its grant is free again."""

    async def conversation() -> None:
        async with desk.client("--budget", "20") as agent:
            started = await agent.does(
                "start", script=HELLO, args=["a"], env={"WHO": "me"}, name="hi", budget=5, **SMALL
            )
            pool = started["pool"]
            assert pool.startswith("hi-")
            assert 15 == (await agent.does("status"))["left"]
            assert "node 0: hello ['a'] me" in await agent.printed(pool, "node 0: hello ['a'] me")
            over = await agent.until(pool, "over", "failed")
            assert ("over", [{"node": 0, "state": "ended", "exit_code": 3}]) == (over["state"], over["scripts"])
            assert 0 < over["cost"] < 1
            status = await agent.does("status")
            assert 20 - over["cost"] == pytest.approx(status["left"])
            assert {pool: over["cost"]} == status["spent"]
        assert [] == desk.cloud.machines()

    talk(conversation)


def test_a_pool_is_kept_for_more_scripts_until_it_is_ended(desk: Desk) -> None:
    """On each node, if that is said; ended means terminated, whatever still runs."""

    async def conversation() -> None:
        async with desk.client("--budget", "20") as agent:
            pool = (await agent.does("start", keep=True, nodes=2, **SMALL))["pool"]
            await agent.until(pool, "open")
            assert 2 == len(desk.cloud.machines())
            await agent.does("run", pool=pool, script="print('here')", on="all")
            lines = await agent.printed(pool, "node 0: here")
            if "node 1: here" not in lines:
                await agent.printed(pool, "node 1: here")
            await agent.does("run", pool=pool, script=FOREVER)
            await agent.printed(pool, "node 0: begun")
            ended = await agent.does("end", pool=pool)
            assert "over" == ended["state"]
            assert [] == desk.cloud.machines()
            assert ["ended", "ended", "failed"] == [script["state"] for script in ended["scripts"]]
            assert "is over" in await agent.is_refused("run", pool=pool, script=FOREVER)
            assert ended == await agent.does("end", pool=pool)

    talk(conversation)


def test_offers_are_looked_up(desk: Desk) -> None:
    """With their prices; nothing is rented."""

    async def conversation() -> None:
        async with desk.client("--budget", "1") as agent:
            found = (await agent.does("offers", provider="rehearsal"))["offers"]
            assert {"small", "large"} == {offer["instance_type"] for offer in found}
            [one] = (await agent.does("offers", provider="rehearsal", accelerator="A100:8", limit=1))["offers"]
            assert ("8 × A100 40GB", True) == (one["accelerators"], one["available"])
            assert one["spot_price"] < one["on_demand_price"]
            cheap = await agent.does("offers", provider="rehearsal", max_price=0.05, market="spot")
            assert {"small"} == {offer["instance_type"] for offer in cheap["offers"]}
            assert "Did you mean" in await agent.is_refused("offers", provider="rehearsel")
        assert 0 == desk.cloud.bill()

    talk(conversation)


def test_the_budget_is_that_of_all_pools(desk: Desk) -> None:
    """More than is left is refused before anything is rented, and a pool that uses its part up is stopped."""

    async def conversation() -> None:
        async with desk.client("--budget", "1") as agent:
            assert "$1.00 is left" in await agent.is_refused("start", script=FOREVER, budget=1.5, **SMALL)
            # 30 seconds for its end are a part of what counts.
            big = {"provider": "rehearsal", "accelerator": "A100:8", "allocation": "on-demand"}
            pool = (await agent.does("start", script=FOREVER, budget=0.31, **big))["pool"]
            assert "$0.69 is left" in await agent.is_refused("start", script=FOREVER, budget=0.7, **SMALL)
            await agent.until(pool, "open", "over", "failed")
            stopped = await agent.until(pool, "over", "failed")
            assert "BudgetExceededError" in f"{stopped}"
            assert stopped["cost"] <= 0.31
            tiny = (await agent.does("start", script=FOREVER, budget=0.0001, **SMALL))["pool"]
            assert "BudgetExceededError" in (await agent.until(tiny, "failed"))["error"]
            status = await agent.does("status")
            assert {} == status["granted"]
            assert 1 - stopped["cost"] == pytest.approx(status["left"])
        assert desk.cloud.bill() <= 0.31

    talk(conversation)


def test_what_it_did_not_start_is_refused(desk: Desk) -> None:
    """A pool of another program of the same user stays as it is."""
    other = (
        "import sys, os\nimport skyward as sky\nfrom skyward.testing import Rehearsal\n"
        "with sky.Compute(provider=Rehearsal(directory=os.environ['BOOKS']), label='theirs', console='silent'):\n"
        "    print('ready', flush=True)\n    sys.stdin.readline()\n"
    )

    async def conversation() -> None:
        async with desk.client("--budget", "1") as agent:
            mine = (await agent.does("start", keep=True, budget=0.5, **SMALL))["pool"]
            for tool, rest in (("end", {}), ("logs", {}), ("status", {}), ("run", {"script": "1"})):
                said = await agent.is_refused(tool, pool="theirs", **rest)
                assert f"has started no pool 'theirs', and touches no other. It has started: {mine}." in said
            assert f"Did you mean '{mine}'?" in await agent.is_refused("end", pool=mine[:-1])
            await agent.does("end", pool=mine)

    with subprocess.Popen(
        [sys.executable, "-c", other], env=desk.env, cwd=desk.folder, stdin=-1, stdout=-1, text=True
    ) as client:
        assert client.stdout is not None
        assert client.stdin is not None
        assert "ready\n" == client.stdout.readline()
        talk(conversation)
        assert 1 == len(desk.cloud.machines())
        client.stdin.close()


def test_what_makes_no_sense_is_refused(desk: Desk) -> None:
    """Each refusal says what is wrong, and nothing is rented for any."""

    async def refusals(agent: Agent) -> dict[str, str]:
        cases: dict[str, dict[str, object]] = {
            "unknown": {"script": "1", "budgets": 1, **SMALL},
            "type": {"script": "1", "nodes": "many", **SMALL},
            "few": {"script": "1", "nodes": 0, **SMALL},
            "nothing": {**SMALL},
            "no provider": {"script": "1"},
            "both": {"script": "1", "pool": "train", "provider": "rehearsal"},
            "no file": {"script": "1", "pool": "train"},
            "provider": {"script": "1", "provider": "rehearsel"},
            "local": {"script": "1", "provider": "local"},
            "accelerator": {"script": "1", "provider": "rehearsal", "accelerator": "H1000"},
            "name": {"script": "1", "name": "../x", **SMALL},
            "negative": {"script": "1", "budget": -1, **SMALL},
            "lease": {"script": "1", "lease": 60, **SMALL},
        }
        return {case: await agent.is_refused("start", **arguments) for case, arguments in cases.items()}

    async def conversation() -> dict[str, str]:
        async with desk.client("--budget", "1") as agent:
            said = await refusals(agent)
            assert "script" in await agent.is_refused("run", pool="x")
            assert "no pool 'x'" in await agent.is_refused("logs", pool="x")
            assert [] == (await agent.does("status"))["pools"]
            return said

    said = talk(conversation)
    assert "budgets" in said["unknown"]
    assert "nodes" in said["type"]
    assert "nodes" in said["few"]
    assert "Say script or keep=true" in said["nothing"]
    assert "Neither provider nor pool was said" in said["no provider"]
    assert "cannot be said as well" in said["both"]
    assert "There is no skyward.toml" in said["no file"]
    assert "Did you mean 'Rehearsal'?" in said["provider"]
    assert "skyward-mcp --provider local" in said["local"]
    assert "H100" in said["accelerator"]
    assert "name must be" in said["name"]
    assert "budget must be more than 0 USD" in said["negative"]
    assert "skyward-mcp --lease SECONDS" in said["lease"]
    assert 0 == desk.cloud.bill()


def test_this_machine_is_used_only_if_that_is_allowed(desk: Desk) -> None:
    """Scripts would run as the user, who says so where the server is started; what they print is no message."""

    async def conversation() -> None:
        async with desk.client("--budget", "1", "--provider", "local") as agent:
            assert "--provider rehearsal" in await agent.is_refused("start", script="1", provider="rehearsal")
            pool = (await agent.does("start", script="print('here')", provider="local"))["pool"]
            await agent.printed(pool, "node 0: here")
            over = await agent.until(pool, "over", "failed")
            assert ("over", 0.0) == (over["state"], over["cost"])

    talk(conversation)


@pytest.mark.parametrize("script", [FOREVER, None], ids=["in a script", "without one"])
def test_a_client_that_is_gone_leaves_nothing_rented(desk: Desk, script: str | None) -> None:
    """The server's input is closed, and it is killed two seconds later, while its machines still end."""

    async def conversation() -> None:
        async with desk.client("--budget", "1") as agent:
            pool = (await agent.does("start", script=script, keep=True, **SMALL))["pool"]
            await agent.until(pool, "open")
            assert 1 == len(desk.cloud.machines())

    talk(conversation)
    until(lambda: not desk.cloud.machines(), 60, what="the machine is terminated")


def test_a_pool_that_is_opening_when_the_client_goes_is_broken_off(desk: Desk) -> None:
    """Whatever it had rented until then is terminated."""

    async def conversation() -> None:
        async with desk.client("--budget", "1") as agent:
            await agent.does("start", script=FOREVER, **SMALL)

    talk(conversation)
    until(lambda: not desk.cloud.machines(), 60, what="the machine is terminated")
