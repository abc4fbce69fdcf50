"""RunPod's own traps, one by one: what is sold, rented, listed and ended."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest
from attrs import evolve

import skyward as sky
from skyward.errors import CapacityError, ConfigError, CredentialsError, ProvisionError, SkywardError
from skyward.hookspecs import InstanceState
from skyward.model.spec.spec import Spec
from tests.clouds.runpod.client import client, in_real_time, refusal, run, runs
from tests.clouds.runpod.cloud import GPU, Cloud
from tests.clouds.runpod.server import FULL
from tests.waiting import until

pytestmark = [pytest.mark.clouds, pytest.mark.usefixtures("without_hosts")]


def asked(runpod: Cloud, name: str = "GET /v2/catalog/gpus") -> set[tuple[str, str]]:
    """Return for which numbers and clouds the catalogue was asked."""
    return {(call["query"]["count"], call["query"]["cloud"]) for call in runpod.calls(name)}


def test_stock_is_asked_for_each_number_and_each_cloud(runpod: Cloud) -> None:
    """What one GPU is left of says nothing of eight, and one cloud nothing of the other."""
    runpod.stock(**{f"{GPU}/SECURE": 4})

    async def scenario() -> None:
        for count, available in ((4, True), (8, False)):
            spec = Spec(accelerator=f"RTX 4090:{count}")
            offers = await runpod.provider().skyward_offers(spec)
            assert [available] == [each.available for each in offers if each.accelerator_name == GPU]

    run(scenario())
    assert {("4", "SECURE"), ("8", "SECURE")} == asked(runpod)
    assert {"POD"} == {call["query"]["product"] for call in runpod.calls("GET /v2/catalog/gpus")}
    runpod.calm()
    run(runpod.provider(cloud="all").skyward_offers(Spec()))
    assert {(str(count), cloud) for count in (1, 2, 4, 8) for cloud in ("SECURE", "COMMUNITY")} == asked(runpod)


def test_stock_without_gpus_is_asked_for_each_number_of_vcpus(runpod: Cloud) -> None:
    """A kind that has two vCPUs left on a machine may have no sixteen."""
    runpod.stock(cpu3c=8)

    async def scenario() -> None:
        offers = await runpod.provider().skyward_offers(Spec(vcpus=4))
        left = {each.vcpus: each.available for each in offers if each.instance_type.startswith("cpu3c")}
        assert {4: True, 8: True, 16: False, 32: False} == left

    run(scenario())
    asked = [call["query"]["vcpuCount"] for call in runpod.calls("GET /v2/catalog/cpus")]
    assert ["16", "32", "4", "8"] == sorted(asked)


@pytest.mark.parametrize("machine", ["cpu3c:2", "cpu5c:2", "cpu5g:16"])
def test_the_smallest_machines_without_gpus_can_be_rented(runpod: Cloud, machine: str) -> None:
    """Their container is no larger than RunPod allows; a pool that wants more gets larger machines only."""

    async def scenario() -> None:
        async with client(runpod.provider(), machine=machine) as one:
            await one.launch()
            assert 1 == len(runpod.alive())
        larger = await runpod.provider(disk_gb=50).skyward_offers(Spec())
        assert {"cpu3c:8", "cpu5c:4", "cpu5g:8"} == {
            min((each.vcpus, each.instance_type) for each in larger if each.instance_type.startswith(kind))[1]
            for kind in ("cpu3c", "cpu5c", "cpu5g")
        }

    run(scenario())


def test_what_a_pod_has_beside_its_gpus_is_not_known_and_not_made_up(runpod: Cloud) -> None:
    """A wish for vCPUs or memory is answered with machines that tell theirs."""
    offers = run(runpod.provider().skyward_offers(Spec()))
    assert {(None, None)} == {(each.vcpus, each.memory_gb) for each in offers if each.accelerator_name}
    assert all(each.vcpus and each.memory_gb for each in offers if not each.accelerator_name)
    assert {None} == {each.spot_price for each in offers}


@pytest.mark.parametrize("allocation", ["spot", "always-spot", 0.5])
def test_spot_is_refused_plainly(runpod: Cloud, allocation: Any) -> None:
    """Nothing is asked of RunPod for it; what may be spot and need not is rented on demand."""
    error = run(refusal(runpod.provider().skyward_preflight(Spec(allocation=allocation))))
    assert isinstance(error, ConfigError)
    assert "RunPod sells no spot machines over REST v2." in str(error)
    assert [] == runpod.calls()
    run(runpod.provider().skyward_preflight(Spec(allocation="spot-if-available")))


def test_a_data_centre_is_kept_to(runpod: Cloud) -> None:
    """The list of places is sent with the launch, and nothing is offered elsewhere."""

    async def scenario() -> None:
        async with client(
            runpod.provider(data_center=["EU-RO-1", "CA-MTL-3"]), machine=None, accelerator="A100"
        ) as one:
            [instance] = await one.launch()
            assert "EU-RO-1" == (await one.until(runs))[0].region
            assert {"EU-RO-1", "CA-MTL-3"} == set(runpod.alive()[0]["body"]["dataCenterIds"])
            assert instance.tags is not None
        offers = await runpod.provider().skyward_offers(Spec(region="OC-AU-1", accelerator="A100"))
        assert [] == [each for each in offers if each.available and each.accelerator_name != "NVIDIA L40S"]

    run(scenario())


def test_a_country_is_asked_of_the_catalogue(runpod: Cloud) -> None:
    """No country is read out of the name of a data centre."""
    offers = run(runpod.provider(country="RO").skyward_offers(Spec(accelerator="RTX 4090")))
    assert [("EU-RO-1",)] == [tuple(each.data["places"]) for each in offers if each.accelerator_name == GPU]
    assert {"RO"} == {call["query"].get("countryCodes") for call in runpod.calls("GET /v2/catalog/gpus")}


def test_a_data_centre_that_there_is_not_is_answered_with_the_nearest(runpod: Cloud) -> None:
    """Too narrow a list would be refused as a lack of machines, with no word about places."""
    error = run(refusal(runpod.provider(data_center="EU-R0-1").skyward_preflight(Spec())))
    assert isinstance(error, ConfigError)
    assert "RunPod has no data centre 'EU-R0-1'. Did you mean 'EU-RO-1'?" in str(error)


def test_pods_of_the_network_reach_each_other_and_others_do_not_claim_to(runpod: Cloud) -> None:
    """The network is joined where it is asked for, in the data centres that have it, by NVIDIA's GPUs."""
    assert not runpod.provider().skyward_facts().nodes_reach_each_other
    provider = runpod.provider(global_networking=True)
    assert provider.skyward_facts().nodes_reach_each_other

    async def scenario() -> None:
        async with client(provider, machine=None, accelerator="A100") as one:
            assert {"NVIDIA"} == {str(each.accelerator_name).split()[0] for each in one.offers}
            await one.launch()
            [instance] = await one.until(runs)
            assert instance.private_ip
            assert {"EU-RO-1", "US-KS-2"} == set(runpod.alive()[0]["body"]["dataCenterIds"])

    run(scenario())


def test_machines_whose_driver_is_too_old_for_the_image_are_not_offered(runpod: Cloud) -> None:
    """The image's CUDA decides, that of the base image where none was chosen; without CUDA any driver will do."""
    runpod.fault("GET /v2/catalog/gpus", "edit", body={"version": "12.4"})

    async def available(**changes: Any) -> set[bool]:
        offers = await runpod.provider(**changes).skyward_offers(Spec(accelerator="RTX 4090"))
        return {each.available for each in offers if each.accelerator_name == GPU}

    assert {False} == run(available())
    assert {False} == run(available(container_image=sky.containers.cuda("12.9")))
    assert {True} == run(available(container_image=sky.containers.cuda("12.4")))
    assert {True} == run(available(container_image=sky.containers.ubuntu()))


def test_a_lack_of_machines_is_known_by_its_words(runpod: Cloud) -> None:
    """The status is that of a broken rule."""

    async def scenario() -> None:
        async with client(runpod.provider()) as one:
            runpod.fault("POST /v2/pods", status=400, body={"title": "Bad Request", "status": 400, "detail": FULL})
            error = await refusal(one.launch())
            assert isinstance(error, CapacityError)
            assert "cpu5c:2, Secure Cloud" in str(error)

    run(scenario())
    assert 1 == len(runpod.calls("POST"))


def test_the_same_token_rents_once_though_names_may_be_the_same(runpod: Cloud) -> None:
    """RunPod knows no token; before anything is rented again, the pods are listed."""

    async def scenario() -> None:
        async with client(runpod.provider()) as one:
            first = await one.launch(0, 1, token="t1")
            assert [] == [call for call in runpod.calls("GET /v2/pods") if call["at"] > runpod.calls("POST")[0]["at"]]
            again = await one.launch(0, 1, 2, token="t1")
            assert {each.id for each in first} < {each.id for each in again}
            assert 3 == len(runpod.alive())

    run(scenario())


def test_a_pod_that_lists_do_not_show_yet_is_ended_all_the_same(runpod: Cloud) -> None:
    """Ending is believed when RunPod confirmed it, not when a list that lags has no such pod."""

    async def scenario() -> None:
        async with client(runpod.provider()) as one:
            runpod.lag(3.0)
            [instance] = await one.launch()
            [pending] = await one.listed()
            assert (pending.id, pending.state) == (instance.id, InstanceState.PENDING)
            runpod.fault(f"DELETE /v2/pods/{instance.id}", status=404, body={"detail": "pod not found"}, times=2)
            await one.end(instance.id)
            assert [] == runpod.alive()

    run(scenario())


@pytest.mark.parametrize(
    "fault",
    [
        {"status": 409, "body": {"detail": "busy"}},
        {"status": 502, "body": "<html>bad gateway</html>"},
    ],
    ids=["409", "HTML"],
)
def test_a_pod_is_ended_until_it_is_gone(runpod: Cloud, fault: dict[str, Any]) -> None:
    """A refusal ends no bill, whatever it looks like."""

    async def scenario() -> None:
        async with client(runpod.provider()) as one:
            [instance] = await one.launch()
            await one.listed()
            runpod.fault("DELETE *", times=2, **fault)
            await one.end(instance.id)
            assert [] == runpod.alive()
            await one.end(instance.id)

    run(scenario())


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"status": 200, "body": {"pods": None}}, "'pods' is not a list but None"),
        ({"status": 200, "body": {}}, "the field 'pods' is missing"),
        ({"effect": "edit", "body": {"id": None}}, "the field 'id' is missing"),
    ],
    ids=["null", "a field that vanished", "without ids"],
)
def test_a_list_that_cannot_be_read_is_an_error_and_never_empty(
    runpod: Cloud, fault: dict[str, Any], words: str
) -> None:
    """The answer is shown, without the key."""

    async def scenario() -> None:
        async with client(runpod.provider()) as one:
            await one.launch()
            runpod.fault("GET /v2/pods", times=1, **fault)
            error = await refusal(one.listed())
            assert ProvisionError is type(error)
            assert words in str(error)
            assert runpod.key not in str(error)

    run(scenario())


def test_what_others_have_in_the_account_is_nothing_to_us(runpod: Cloud) -> None:
    """A pod of another user, with an unknown status, is neither listed nor an error."""

    async def scenario() -> None:
        provider = runpod.provider()
        body = {"name": "notebook", "image": "i", "cpu": {"id": "cpu5c", "vcpuCount": 2}}
        made = await provider._account.api.post("/v2/pods", json=body)
        runpod.fault("GET /v2/pods", "edit", body={"status": "HIBERNATED"})
        assert [] == list(await provider.skyward_owned())
        assert [made["id"]] == [row["id"] for row in runpod.alive()]
        runpod.calm()
        runpod.terminate(made["id"])
        await asyncio.to_thread(until, lambda: not runpod.alive())

    run(scenario())


def test_pods_in_clusters_are_found_and_end_with_their_cluster(runpod: Cloud) -> None:
    """They are left out of lists unless they are asked for, and cannot be ended one by one."""
    runpod.cluster("skyward-01d01d01-0-0123456789abcdef-me", "skyward-01d01d01-1-0123456789abcdef-me")

    async def scenario() -> None:
        provider = runpod.provider()
        found = list(await provider.skyward_owned())
        assert {"01d01d01"} == {each.tags.pool_id for each in found if each.tags is not None}
        await provider.skyward_end(found)
        assert [] == list(await provider.skyward_owned())

    run(scenario())
    assert [] == runpod.alive()


def test_a_pod_that_was_stopped_is_lost_and_still_billed(runpod: Cloud) -> None:
    """RunPod stops pods when the balance is used up; its disk costs until it is ended."""

    async def scenario() -> None:
        async with client(runpod.provider()) as one:
            [instance] = await one.launch()
            await one.until(runs)
            runpod.stop(instance.id)
            found = await one.until(lambda found: found[0].state is not InstanceState.RUNNING)
            assert [InstanceState.ENDING] == [each.state for each in found]
            assert [instance.id] == [row["id"] for row in runpod.alive()]

    run(scenario())
    assert [] == runpod.alive()


def test_an_image_that_does_not_exist_is_the_users_to_change(runpod: Cloud) -> None:
    """No other machine is tried for it."""

    async def scenario() -> None:
        async with client(runpod.provider(container_image="me/missing-image:1")) as one:
            error = await refusal(one.launch())
            assert isinstance(error, ConfigError)
            assert "$.image: image not found" in str(error)

    run(scenario())
    assert 1 == len(runpod.calls("POST"))


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        ({"status": 402, "body": {"detail": "insufficient balance"}}, CredentialsError, "Add money"),
        ({"status": 403, "body": {"detail": "access denied"}}, SkywardError, "may not rent this kind"),
    ],
)
def test_an_account_that_may_not_is_told_what_to_do(
    runpod: Cloud, fault: dict[str, Any], kind: type[SkywardError], words: str
) -> None:
    """What is missing is money, or a right."""

    async def scenario() -> None:
        async with client(runpod.provider()) as one:
            runpod.fault("POST /v2/pods", **fault)
            error = await refusal(one.launch())
            assert isinstance(error, kind)
            assert words in str(error)

    run(scenario())


def test_the_accounts_key_is_in_nothing_that_is_sent_to_a_pod(runpod: Cloud) -> None:
    """Neither in its variables nor in its arguments nor in its image's name."""

    async def scenario() -> None:
        async with client(runpod.provider()) as one:
            await one.launch()

    run(scenario())
    [call] = runpod.calls("POST /v2/pods")
    assert runpod.key not in call["body"]
    assert ["22/tcp"] == json.loads(call["body"])["ports"]


def test_pools_that_look_one_after_the_other_share_a_list(runpod: Cloud) -> None:
    """What they know together lasts between two looks, and a pod that was just rented is asked for anew."""
    runpod.lists_hold = 30.0

    async def scenario() -> None:
        first, second = runpod.provider(), runpod.provider()
        async with client(runpod.provider()) as one:
            for provider in (first, second, first):
                await provider.skyward_instances(one.cluster)
            assert 1 == len(runpod.calls("GET /v2/pods"))
            [pod] = await one.launch()
            assert [pod.id] == [each.id for each in await one.listed()]

    in_real_time(scenario())


def test_an_end_that_is_given_up_says_what_to_type(runpod: Cloud) -> None:
    """RunPod's own command ends one pod a call."""

    async def scenario() -> None:
        async with client(runpod.provider()) as one:
            pods = sorted(each.id for each in [*await one.launch(token="a"), *await one.launch(token="b")])
            runpod.fault("DELETE *", status=401, body={"status": 401, "title": "x", "detail": "no"})
            error = await refusal(one.end(*pods))
            assert f"Type: for pod in {pods[0]} {pods[1]}; do runpodctl pod delete $pod; done" in str(error)
            runpod.calm()

    run(scenario())


def test_pools_of_one_account_stay_within_what_it_is_allowed(runpod: Cloud) -> None:
    """Twenty pools look at once and again: one list serves all, and what is left is spread over what is to come."""
    runpod.lists_hold = 1.0
    runpod.policy(30, 6.0)

    async def scenario() -> None:
        provider = runpod.provider()
        async with client(provider) as one:
            pools = [evolve(one.cluster, pool_id=f"{one.cluster.pool_id}n{number}") for number in range(20)]
            began = time.monotonic()
            while time.monotonic() - began < 8.0:
                await asyncio.gather(*(provider.skyward_instances(pool) for pool in pools))
                await asyncio.gather(*(provider.skyward_offers(Spec(accelerator="H100:8")) for _ in range(2)))

    in_real_time(scenario())
    assert len(runpod.calls()) > 30
    times = [call["at"] for call in runpod.calls()]
    assert all(sum(at <= other < at + 6.0 for other in times) <= 31 for at in times)
