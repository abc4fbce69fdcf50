"""What DigitalOcean says, in our words, and what we write on droplets, in its words."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from skyward.errors import CapacityError, ConfigError, CredentialsError, ProvisionError, QuotaError
from skyward.model.instances.key_pair import KeyPair
from skyward.model.instances.machine import InstanceState
from skyward.model.instances.tags import Tags
from skyward.rest import Reply
from skyward_digitalocean.catalogue import image_for, to_offers
from skyward_digitalocean.droplets import described
from skyward_digitalocean.failure import meaning
from skyward_digitalocean.keys import fingerprint
from skyward_digitalocean.tagging import name_of, read, written

SIZE: dict[str, Any] = {
    "slug": "gpu-h100x8-640gb",
    "memory": 1966080,
    "vcpus": 160,
    "disk": 2046,
    "price_hourly": 47.599998474121094,
    "regions": ["nyc2"],
    "available": True,
    "gpu_info": {"count": 8, "model": "nvidia_h100", "vram": {"amount": 640, "unit": "gib"}},
}
ROW: dict[str, Any] = {
    "id": 3164444,
    "name": "skyward-p1-3",
    "status": "active",
    "created_at": "2026-11-21T14:00:00Z",
    "size_slug": "s-2vcpu-4gb",
    "size": {"slug": "s-2vcpu-4gb", "price_hourly": 0.035709999501705},
    "region": {"slug": "nyc3"},
    "tags": ["web", "skyward", "skyward:p1", "skyward:p1:token:t1"],
    "networks": {
        "v4": [
            {"ip_address": "10.116.0.2", "gateway": "nil", "type": "private"},
            {"ip_address": "203.0.113.7", "gateway": "203.0.113.1", "type": "public"},
        ],
        "v6": [],
    },
}


@pytest.mark.parametrize(("amount", "expected"), [(640, 80), (80, 80)])
def test_the_memory_of_a_card_is_that_of_one(amount: int, expected: int) -> None:
    """Whether the field counts one card or all of them, sizes are named after all."""
    info = {**SIZE["gpu_info"], "vram": {"amount": amount, "unit": "gib"}}
    [offer] = to_offers([{**SIZE, "gpu_info": info}], (), 0.0)
    assert (expected, 8, 47.599998) == (
        offer.accelerator_memory_gb,
        offer.accelerator_count,
        offer.on_demand_price,
    )


@pytest.mark.parametrize(
    ("model", "count", "image"),
    [
        ("nvidia_h100", 1, "gpu-h100x1-base"),
        ("nvidia_rtx6000_ada", 1, "gpu-h100x1-base"),
        ("nvidia_h200", 8, "gpu-h100x8-base"),
        ("amd_mi300x", 8, "gpu-amd-base"),
    ],
)
def test_the_image_has_the_driver(model: str, count: int, image: str) -> None:
    """One for one card of any model, one for eight, one for AMD."""
    info = {"count": count, "model": model, "vram": {"amount": 80, "unit": "gib"}}
    [offer] = to_offers([{**SIZE, "gpu_info": info}], (), 0.0)
    assert image == image_for(offer)


@pytest.mark.parametrize(
    ("status", "networks", "expected"),
    [
        ("new", {"v4": []}, InstanceState.PENDING),
        ("new", None, InstanceState.PENDING),
        ("active", {"v4": []}, InstanceState.PENDING),
        ("active", {"v4": ROW["networks"]["v4"][:1]}, InstanceState.PENDING),
        ("active", ROW["networks"], InstanceState.RUNNING),
        ("off", ROW["networks"], InstanceState.ENDING),
        ("archive", ROW["networks"], InstanceState.ENDING),
    ],
)
def test_a_droplet_runs_once_it_has_a_public_address(status: str, networks: Any, expected: InstanceState) -> None:
    """One that is off is billed and no longer a node of any pool."""
    found = described({**ROW, "status": status, "networks": networks}, KeyPair())
    assert expected is found.state
    assert (found.address is not None) is (expected is InstanceState.RUNNING)


def test_a_droplet_is_described() -> None:
    """Id, node, place, price and addresses."""
    found = described(ROW, KeyPair())
    assert ("3164444", 3, "nyc3", "s-2vcpu-4gb", 0.03571, "203.0.113.7", "10.116.0.2", 1795269600.0) == (
        found.id,
        found.node,
        found.region,
        found.instance_type,
        found.hourly_rate,
        found.ip,
        found.private_ip,
        found.launched_at,
    )


@pytest.mark.parametrize("word", ["migrating", None])
def test_a_state_that_is_new_counts_as_ending(word: str | None) -> None:
    """The droplet may still be billed."""
    assert InstanceState.ENDING is described({**ROW, "status": word}, KeyPair()).state


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"networks": {"v4": "none"}}, "field=networks reason=Misread: 'v4' is not a list"),
        (
            {"size": {"price_hourly": "0.1"}},
            "field=size.price_hourly reason=Misread: 'size.price_hourly' is not a numb",
        ),
        ({"created_at": "yesterday"}, "field=created_at reason=Misread: 'created_at' is not a time"),
        ({"region": {"slug": 3}}, "field=region reason=Misread: 'region.slug' is not text"),
        ({"tags": 7}, "field=tags reason=Misread: 'tags' is not a list"),
    ],
    ids=str,
)
def test_what_cannot_be_read_of_a_droplet_hides_it_not(
    change: dict[str, Any], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The fact is not known, with a warning; a price as text is none, and its pool is in its name too."""
    row = {**ROW, **change, "id": 4000 + len(reason)}
    found = described(row, KeyPair())
    assert (str(row["id"]), ROW["name"]) == (found.id, f"skyward-{found.tags and found.tags.pool_id}-{found.node}")
    assert f"provider=digitalocean instance={row['id']} {reason}" in caplog.text


@given(
    st.builds(
        Tags,
        pool_id=st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=20),
        pool_name=st.text(max_size=20),
        node=st.integers(0, 9999),
        owner=st.text(max_size=20),
        client=st.text(max_size=12),
        token=st.text(max_size=16),
        expires_at=st.one_of(st.none(), st.integers(0, 2**40).map(float)),
    )
)
def test_what_is_written_is_read_again(tags: Tags) -> None:
    """Whatever a user calls things, droplets take the tags, and tell the same afterwards."""
    words = written(tags)
    assert tags.node is not None
    name = name_of(tags.pool_id, tags.node)
    assert all(re.fullmatch("[a-z0-9:_-]{1,255}", word) for word in words)
    assert re.fullmatch("[a-zA-Z0-9.-]{1,255}", name)
    assert tags == read(["other", *reversed(words)], name)


def test_a_long_name_is_cut() -> None:
    """A tag has 255 characters at most."""
    words = written(Tags(pool_id="p1", pool_name="ß" * 400))
    assert max(map(len, words)) <= 255
    found = read(words, "skyward-p1-0")
    assert found is not None
    assert "ß" * 30 == found.pool_name[:30]


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        (["skyward:p1", "skyward:p1:expires:5", "skyward:p1:expires:40", "skyward:p1:expires:x"], 40.0),
        (["skyward:p1", "skyward:p2:expires:5", "skyward:p1:moon:3", "skyward:a:b:c:d"], None),
    ],
)
def test_strange_tags_are_passed_over(tags: list[str], expected: float | None) -> None:
    """Of two expiries the later one holds; those of others say nothing."""
    found = read(tags, "web")
    assert found is not None
    assert ("p1", None, expected) == (found.pool_id, found.node, found.expires_at)
    assert read(["web", "skyward"], "skyward-p1-0") is None


def test_a_fingerprint_is_the_one_that_openssh_gives(tmp_path: Path) -> None:
    """DigitalOcean knows keys by their MD5."""
    public = KeyPair().public
    path = tmp_path / "key.pub"
    path.write_text(public)
    done = subprocess.run(["ssh-keygen", "-l", "-E", "md5", "-f", path], check=True, capture_output=True, text=True)
    assert f"MD5:{fingerprint(public)}" == done.stdout.split()[1]


@pytest.mark.parametrize(
    ("method", "path", "status", "text", "expected"),
    [
        ("GET", "/v2/account", 401, "Unable to authenticate you", CredentialsError),
        ("GET", "/v2/sizes", 403, "no", CredentialsError),
        ("POST", "/v2/droplets", 404, "image not found", ConfigError),
        ("POST", "/v2/droplets", 422, '{"message": "Region is not available"}', CapacityError),
        ("POST", "/v2/droplets", 422, '{"error_attributes": {"available_regions": []}}', CapacityError),
        ("POST", "/v2/droplets", 422, "creating this/these droplet(s) will exceed your droplet limit", QuotaError),
        ("POST", "/v2/droplets", 422, "Moon is full", CapacityError),
        ("DELETE", "/v2/droplets/7", 422, "pending event", ProvisionError),
        ("GET", "/v2/droplets", 500, "", None),
        ("GET", "/v2/droplets", 429, "", None),
        ("GET", "/v2/droplets", 200, "{}", None),
    ],
)
def test_what_a_refusal_means(method: str, path: str, status: int, text: str, expected: type | None) -> None:
    """Capacity, quota and a wrong body share a status; only the words tell."""
    found = meaning(Reply(method=method, path=path, status=status, text=text))
    assert expected is (None if found is None else found.kind)


def test_a_size_that_may_be_taken_back_is_no_offer() -> None:
    """It would pass for a cheap one on demand."""
    assert 1 == len(to_offers([{**SIZE, "slug": "gpu-b300x1-288gb"}], (), 0.0))
    assert [] == to_offers([{**SIZE, "slug": "gpu-b300x1-288gb-spot"}], (), 0.0)


@pytest.mark.parametrize(
    ("method", "path", "scope"),
    [
        ("GET", "/v2/droplets?tag_name=skyward&page=1", "droplet:read"),
        ("DELETE", "/v2/droplets/7", "droplet:delete"),
        ("POST", "/v2/droplets", "droplet:create, tag:create, ssh_key:read and image:read, and vpc:read for a VPC"),
        ("DELETE", "/v2/account/keys/aa:bb", "ssh_key:delete"),
        ("POST", "/v2/tags", "tag:create"),
        ("POST", "/v2/tags/skyward:p1/resources", "tag:create and droplet:update"),
        ("GET", "/v2/vpcs/760e09ef", "vpc:read"),
        ("PUT", "/v2/moon", "the scope that this needs"),
    ],
)
def test_a_missing_scope_is_named(method: str, path: str, scope: str) -> None:
    """The hint says what the token needs."""
    found = meaning(Reply(method=method, path=path, status=403))
    assert found is not None
    assert f"Give the token {scope}, or see whether the account is locked." == found.hint
