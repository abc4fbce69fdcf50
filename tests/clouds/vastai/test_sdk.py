"""The emulator is what Vast.ai's own SDK speaks to, and what Vast.ai's own schema describes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.clouds.cloud import ROOT
from tests.clouds.plain_http import send
from tests.clouds.vastai.cloud import Cloud
from tests.waiting import until

pytestmark = pytest.mark.clouds

VERSION = "1.9.1"
# Vast.ai's own schema is no file of ours; `SKYWARD_OPENAPI` names the folder of those who have it.
SCHEMA = Path(os.environ.get("SKYWARD_OPENAPI", "nowhere"), "vastai.yaml")


@pytest.fixture(scope="session")
def interpreter() -> Path:
    """Give an interpreter that has the SDK; its pins are no others', so it has an environment to itself."""
    folder = ROOT / ".cache" / f"vastai-{VERSION}-{sys.version_info[0]}.{sys.version_info[1]}"
    ready, python = folder / ".ready", folder / "bin" / "python"
    if not ready.exists():
        uv = [sys.executable, "-m", "uv", "--quiet"]
        subprocess.run([*uv, "venv", "--clear", "--python", sys.executable, folder], check=True)
        subprocess.run([*uv, "pip", "install", "--python", python, f"vastai=={VERSION}"], check=True)
        ready.touch()
    return python


@pytest.mark.timeout(300)
def test_the_official_sdk_searches_rents_lists_labels_and_destroys(
    vastai: Cloud, interpreter: Path, tmp_path: Path
) -> None:
    """A machine that it rents is a host that lets its key in."""
    env = {**os.environ, **vastai.environment()}
    vastai.volumes(v7=3100007)
    words: list[str | Path] = [
        interpreter,
        Path(__file__).with_name("sdk.py"),
        vastai.url,
        vastai.key,
        "ssh-ed25519 AAAA somebody",
        tmp_path / "data",
    ]
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False, timeout=120)
    assert 0 == done.returncode, done.stderr
    seen = json.loads(done.stdout)
    assert 25.0 == seen["user"]["credit"]
    assert ["RTX 4090"] == sorted({offer["gpu_name"] for offer in seen["offers"]})
    assert ("running", "by-hand") == (seen["shown"]["actual_status"], seen["shown"]["label"])
    assert [seen["made"]["new_contract"]] == [row["id"] for row in seen["listed"]]
    assert "by-hand-again" == seen["listed"][0]["label"]
    assert "ssh-ed25519 AAAA somebody of the account" == seen["key"]["key"]["public_key"]
    assert ["ssh-ed25519 AAAA somebody of the account"] == [row["public_key"] for row in seen["keys"]]
    assert seen["attached"]["success"]
    assert [] == seen["left"]
    assert {"create_new": False, "volume_id": 7, "mount_path": str(tmp_path / "data")} == vastai.instances()[-1][
        "volume"
    ]
    assert [(7, 3100007)] == [(row["id"], row["machine_id"]) for row in seen["volumes"]]
    home = Path(vastai.folder, str(seen["made"]["new_contract"]), "home")
    assert "ssh-ed25519 AAAA somebody\n" == (home / ".ssh" / "authorized_keys").read_text()


def test_a_bid_can_be_changed_and_filters_are_checked(vastai: Cloud) -> None:
    """A bid within the limits that Vast.ai documents; a filter for nothing that there is, is refused."""
    number, _ = rented(vastai, price=0.3)
    path = f"/api/v0/instances/bid_price/{number}/"
    assert 400 == ask(vastai, "PUT", path, {"client_id": "me", "price": 33})[0]
    assert 200 == ask(vastai, "PUT", path, {"client_id": "me", "price": 0.5}, key=f"{vastai.key}2")[0]
    assert 0.5 == vastai.instances()[-1]["price"]
    assert 404 == ask(vastai, "PUT", f"/api/v0/instances/bid_price/7{number}/", {"price": 1}, key=f"{vastai.key}3")[0]
    status, refused = ask(vastai, "POST", "/api/v0/bundles/", {"gpu_nmae": {"eq": "RTX 4090"}})
    assert (400, "unknown search key 'gpu_nmae'") == (status, refused["msg"])
    for filters, count in (({"label": {"eq": "x"}}, 0), ({"id": {"in": [int(number)]}}, 1), ({"id": {"is": 1}}, 400)):
        said = ask(vastai, "GET", f"/api/v1/instances/?select_filters={quote(json.dumps(filters))}", key=vastai.key)
        assert count in (said[0], len(said[1].get("instances", ())))
        vastai.calm()
    vastai.terminate(number)


def ask(cloud: Cloud, method: str, path: str, body: Any = None, key: str | None = None) -> tuple[int, Any]:
    """Send a request, and return status and answer."""
    reply = send(f"{cloud.url}{path}", method, key or cloud.key, body)
    return reply.status, reply.body


def order(**changes: Any) -> dict[str, Any]:
    """Return what is sent to rent a machine."""
    return {"image": "ubuntu:24.04", "disk": 16, "runtype": "ssh_direct", "onstart": ":", **changes}


def rented(cloud: Cloud, **changes: Any) -> tuple[str, str]:
    """Rent a machine, wait until it runs, and return its number and its own key."""
    status, made = ask(cloud, "PUT", f"/api/v0/asks/{cloud.listings()[0]['id']}/", order(**changes))
    assert 200 == status, made
    number = str(made["new_contract"])
    until(lambda: [row for row in cloud.alive() if row["id"] == number and row["state"] == "running"])
    return number, made["instance_api_key"]


def test_a_bid_that_is_too_low_is_refused_and_leaves_a_contract(vastai: Cloud) -> None:
    """It is stopped, and lives on until it is destroyed."""
    status, refused = ask(vastai, "PUT", f"/api/v0/asks/{vastai.listings()[0]['id']}/", order(price=0.01))
    assert (400, "invalid_price") == (status, refused["error"])
    assert [str(refused["new_contract"])] == [row["id"] for row in vastai.alive()]
    assert 200 == ask(vastai, "DELETE", f"/api/v0/instances/{refused['new_contract']}/")[0]
    assert 404 == ask(vastai, "DELETE", f"/api/v0/instances/{refused['new_contract']}/", key=f"{vastai.key}2")[0]


def test_a_listing_is_rented_once_and_listed_again_after(vastai: Cloud) -> None:
    """The second to come hears that it is gone."""
    number, _ = rented(vastai)
    path = f"/api/v0/asks/{vastai.listings()[0]['id']}/"
    status, refused = ask(vastai, "PUT", path, order(), key=f"{vastai.key}2")
    assert (410, "no_such_ask") == (status, refused["error"])
    assert 404 == ask(vastai, "PUT", "/api/v0/asks/7/", order(), key=f"{vastai.key}3")[0]
    vastai.terminate(number)
    assert vastai.listings()[0]["rentable"]


def test_a_containers_own_key_reaches_its_own_contract_only(vastai: Cloud) -> None:
    """It ends itself, and no other, and rents nothing."""
    number, key = rented(vastai, onstart='echo "$CONTAINER_API_KEY $CONTAINER_ID" >told')
    assert f"{key} {number}\n" == Path(vastai.folder, number, "home", "told").read_text()
    assert 403 == ask(vastai, "DELETE", f"/api/v0/instances/{int(number) + 1}/", key=key)[0]
    assert 403 == ask(vastai, "GET", "/api/v1/instances/", key=key)[0]
    assert 200 == ask(vastai, "DELETE", f"/api/v0/instances/{number}/", key=key)[0]
    assert 404 == ask(vastai, "DELETE", f"/api/v0/instances/{number}/", key=key)[0]


def test_calls_that_follow_too_fast_are_refused_in_plain_text(vastai: Cloud) -> None:
    """Each kind of call has an interval of its own."""
    assert 200 == ask(vastai, "GET", "/api/v1/instances/")[0]
    assert (429, "API requests too frequent endpoint threshold=1") == ask(vastai, "GET", "/api/v1/instances/")
    assert 200 == ask(vastai, "GET", "/api/v0/users/current/")[0]


def test_a_wrong_key_and_the_old_list_are_refused_as_vast_does(vastai: Cloud) -> None:
    """One as something that is not there, the other as something that is no more."""
    status, refused = ask(vastai, "GET", "/api/v1/instances/", key="wrong")
    assert (404, "auth_error") == (status, refused["error"])
    status, refused = ask(vastai, "GET", "/api/v0/instances/")
    assert (410, "deprecated_endpoint") == (status, refused["error"])


def schema(path: str, method: str, status: int) -> dict[str, Any]:
    """Return the schema of an answer."""
    import yaml

    document = yaml.safe_load(SCHEMA.read_text())
    content = document["paths"][path][method]["responses"][str(status)]["content"]
    return {**content["application/json"]["schema"], "components": document["components"]}


if SCHEMA.is_file():

    def test_answers_are_what_vasts_own_schema_says(vastai: Cloud) -> None:
        """Those to listing, renting, describing and destroying, and those that refuse."""
        from jsonschema import Draft202012Validator

        number, _ = rented(vastai)
        gone = vastai.listings()[0]["id"]
        calls: list[tuple[str, str, str, Any, int]] = [
            ("/api/v1/instances", "get", "/api/v1/instances/", None, 200),
            ("/api/v0/bundles", "post", "/api/v0/bundles/", {"limit": 3}, 200),
            ("/api/v0/asks/{id}", "put", f"/api/v0/asks/{gone}/", order(), 410),
            ("/api/v0/asks/{id}", "put", "/api/v0/asks/7/", order(), 404),
            ("/api/v0/asks/{id}", "put", "/api/v0/asks/7/", order(image=""), 400),
            ("/api/v0/instances/{id}", "delete", f"/api/v0/instances/{number}/", {}, 200),
            ("/api/v0/instances/{id}", "delete", "/api/v0/instances/7/", {}, 404),
        ]
        for turn, (named, method, path, body, expected) in enumerate(calls):
            status, answer = ask(vastai, method.upper(), path, body, key=f"{vastai.key}{turn}")
            assert expected == status, answer
            wanted = Draft202012Validator(schema(named, method, status))
            assert [] == [error.message for error in wanted.iter_errors(answer)], named
