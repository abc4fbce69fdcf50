"""Keys that end are answered to those that know a token, in the way that AWS's libraries ask."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from attrs import evolve

from skyward.node.volumes.key_server import KeyServer
from skyward.node.volumes.volume_order import VolumeOrder

ORDER = VolumeOrder(
    bucket="b-1",
    mount="/data",
    endpoint="http://h:1",
    region="x",
    access_key="id",
    secret_key="first",
    session_token="token",
    expires_at=1_800_000_000.0,
)


def ask(url: str, token: str) -> tuple[int, dict[str, Any]]:
    """Ask for keys, and return status and answer."""
    try:
        with urlopen(Request(url, headers={"Authorization": token}), timeout=10) as answer:
            return answer.status, json.load(answer)
    except HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_the_keys_are_those_of_now() -> None:
    """With their end, after which they are asked for again."""

    async def body() -> None:
        server = KeyServer()
        said = await server.variables(ORDER)
        url, token = said["AWS_CONTAINER_CREDENTIALS_FULL_URI"], said["AWS_CONTAINER_AUTHORIZATION_TOKEN"]
        expected = {
            "AccessKeyId": "id",
            "SecretAccessKey": "first",
            "Token": "token",
            "Expiration": "2027-01-15T08:00:00Z",
        }
        assert (200, expected) == await asyncio.to_thread(ask, url, token)
        server.renew(evolve(ORDER, secret_key="second"))
        assert "second" == (await asyncio.to_thread(ask, url, token))[1]["SecretAccessKey"]
        server.close()

    asyncio.run(body())


def test_without_the_token_there_is_nothing() -> None:
    """Other users of the machine can connect as well."""

    async def body() -> None:
        server = KeyServer()
        said = await server.variables(ORDER)
        url, token = said["AWS_CONTAINER_CREDENTIALS_FULL_URI"], said["AWS_CONTAINER_AUTHORIZATION_TOKEN"]
        assert (403, {}) == await asyncio.to_thread(ask, url, "guessed")
        assert (404, {}) == await asyncio.to_thread(ask, f"{url}/other", token)
        server.close()

    asyncio.run(body())
