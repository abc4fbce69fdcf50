"""DigitalOcean's own SDK takes the test cloud for the real one: it creates, lists and deletes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from azure.core.pipeline.policies import SansIOHTTPPolicy
from pydo import Client

from skyward.model.instances.key_pair import KeyPair
from tests.clouds.digitalocean.cloud import CPU, GPU, TOKEN, Cloud
from tests.waiting import until

pytestmark = [pytest.mark.clouds, pytest.mark.usefixtures("without_hosts")]


class _Bearer(SansIOHTTPPolicy):
    """The SDK's own policy sends no token without TLS."""

    def __init__(self, token: str) -> None:
        self.token = token

    def on_request(self, request: Any) -> None:
        request.http_request.headers["Authorization"] = f"Bearer {self.token}"


def sdk(ocean: Cloud, token: str = TOKEN) -> Any:
    """Make the SDK's client, which repeats nothing."""
    return Client(token, endpoint=ocean.url, authentication_policy=_Bearer(token), retry_total=0)


@pytest.fixture
def key(ocean: Cloud) -> Iterator[int]:
    """Have a key in the account."""
    made = sdk(ocean).ssh_keys.create(body={"name": "sdk", "public_key": KeyPair().public})["ssh_key"]
    assert made in sdk(ocean).ssh_keys.list()["ssh_keys"]
    yield made["id"]
    assert sdk(ocean).ssh_keys.delete(made["id"]) is None
    assert "not_found" == sdk(ocean).ssh_keys.delete(made["id"])["id"]


@pytest.mark.parametrize(("size", "kind"), [(CPU, "droplets"), (GPU, "gpus")])
def test_it_creates_lists_and_deletes(ocean: Cloud, key: int, size: str, kind: str) -> None:
    """The SDK checks every status, and reads addresses, actions and tags."""
    client = sdk(ocean)
    region = next(each for each in client.sizes.list(per_page=200)["sizes"] if each["slug"] == size)["regions"][0]
    body = {"names": ["one", "two"], "region": region, "size": size, "image": "ubuntu-24-04-x64", "ssh_keys": [key]}
    made = client.droplets.create(body={**body, "tags": ["mine"]})
    ids = [each["id"] for each in made["droplets"]]
    assert [("new", [])] * 2 == [(each["status"], each["networks"]["v4"]) for each in made["droplets"]]
    for link in made["links"]["actions"]:
        until(lambda link=link: client.actions.get(link["id"])["action"]["status"] == "completed")
    shown = client.droplets.get(ids[0])["droplet"]
    assert ("active", ["private", "public"]) == (shown["status"], [each["type"] for each in shown["networks"]["v4"]])
    assert set(ids) == {each["id"] for each in client.droplets.list(type=kind)["droplets"]}
    by_tag = {each["id"] for each in client.droplets.list(tag_name="mine")["droplets"]}
    assert by_tag == (set(ids) if kind == "droplets" else set())
    for each in ids:
        assert client.droplets.destroy(each) is None
        until(lambda each=each: client.droplets.get(each).get("id") == "not_found")
        assert "not_found" == client.droplets.destroy(each)["id"]
    client.tags.delete("mine")


def test_it_deletes_by_tag(ocean: Cloud, key: int) -> None:
    """All droplets with the tag go."""
    client = sdk(ocean)
    body = {"name": "one", "region": "nyc3", "size": CPU, "image": "ubuntu-24-04-x64", "ssh_keys": [key]}
    droplet = client.droplets.create(body={**body, "tags": ["swept"]})["droplet"]["id"]
    assert client.droplets.destroy_by_tag(tag_name="swept") is None
    until(lambda: client.droplets.get(droplet).get("id") == "not_found")
    client.tags.delete("swept")


def test_it_makes_lists_attaches_and_deletes_volumes(ocean: Cloud, key: int) -> None:
    """One is for one droplet, and is there when that is gone."""
    client = sdk(ocean)
    wanted = {"name": "sdk", "region": "nyc3", "size_gigabytes": 10, "filesystem_type": "ext4"}
    made = client.volumes.create(body=wanted)["volume"]
    assert [made["id"]] == [each["id"] for each in client.volumes.list(name="sdk", region="nyc3")["volumes"]]
    body = {"region": "nyc3", "size": CPU, "image": "ubuntu-24-04-x64", "ssh_keys": [key], "volumes": [made["id"]]}
    droplet = client.droplets.create(body={"name": "one", **body})["droplet"]["id"]
    assert [droplet] == client.volumes.get(made["id"])["volume"]["droplet_ids"]
    assert [made["id"]] == client.droplets.get(droplet)["droplet"]["volume_ids"]
    for names, words in ((["two"], "already attached"), (["two", "three"], "multiple droplets")):
        with pytest.raises(HttpResponseError, match=words):
            client.droplets.create(body={"names": names, **body})
    client.droplets.destroy(droplet)
    until(lambda: client.volumes.get(made["id"])["volume"]["droplet_ids"] == [])
    client.volumes.delete(made["id"])
    assert "not_found" == client.volumes.get(made["id"])["id"]


def test_it_pages(ocean: Cloud) -> None:
    """A page of two tells where the next one is."""
    first = sdk(ocean).sizes.list(per_page=2, page=1)
    assert (2, 8) == (len(first["sizes"]), first["meta"]["total"])
    assert "page=2" in first["links"]["pages"]["next"]
    assert "pages" not in sdk(ocean).sizes.list(per_page=200)["links"]


def test_it_reads_the_limits(ocean: Cloud) -> None:
    """Every answer tells what is left."""
    headers = sdk(ocean).sizes.list(cls=lambda _response, _data, headers: headers)
    assert 5000 == headers["ratelimit-limit"] > headers["ratelimit-remaining"]


def test_it_is_refused_as_by_the_real_one(ocean: Cloud) -> None:
    """A wrong token, a wrong pair of filters, and no capacity."""
    with pytest.raises(ClientAuthenticationError, match="Unable to authenticate you"):
        sdk(ocean, "dop_v1_wrong").account.get()
    with pytest.raises(HttpResponseError) as refused:
        sdk(ocean).droplets.list(tag_name="mine", type="gpus")
    assert 422 == refused.value.status_code
    with pytest.raises(HttpResponseError, match="not available") as refused:
        sdk(ocean).droplets.create(body={"name": "x", "region": "tor1", "size": CPU, "image": "ubuntu-24-04-x64"})
    assert 422 == refused.value.status_code
    assert "available_regions" in refused.value.response.json()["error_attributes"]
