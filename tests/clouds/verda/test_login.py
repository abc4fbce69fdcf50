"""Who we are: one token for all calls, renewed in time, and shown nowhere."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from skyward.errors import ConfigError, CredentialsError, NoCredentialsError, SkywardError
from skyward.model.spec.spec import Spec
from tests.clouds.verda.client import client, refusal, run
from tests.clouds.verda.cloud import CLIENT_ID, CLIENT_SECRET, Cloud

pytestmark = [pytest.mark.clouds, pytest.mark.usefixtures("without_hosts")]


def grants(verda: Cloud) -> list[str]:
    """Return how each token was asked for."""
    return [json.loads(call["body"])["grant_type"] for call in verda.calls("POST /v1/oauth2/token")]


def test_all_calls_of_all_pools_share_one_token(verda: Cloud) -> None:
    """Many at once wait for the first; a second provider with the same credentials uses it as well."""

    async def scenario() -> None:
        one, other = verda.provider(), verda.provider()
        await asyncio.gather(*(each.skyward_offers(Spec()) for each in (one, other) * 5))
        async with client(one) as opened:
            await opened.launch()
        assert ["client_credentials"] == grants(verda)

    run(scenario())


def test_a_token_is_renewed_before_it_ends(verda: Cloud) -> None:
    """No call is refused for it; then the credentials would have been asked with again."""
    verda.ask("token_life", 2)

    async def scenario() -> None:
        provider = verda.provider()
        async with asyncio.timeout(10):
            while len(grants(verda)) < 2:
                await provider.skyward_owned()
        assert ["client_credentials", "refresh_token"] == grants(verda)

    run(scenario())


def test_a_refresh_that_is_refused_begins_anew(verda: Cloud) -> None:
    """Both tokens are worthless at once, and the next call does not notice."""
    verda.ask("token_life", 0)

    async def scenario() -> None:
        provider = verda.provider()
        verda.ask("token_life", 3600)
        await provider.skyward_owned()
        verda.ask("revoke", {})
        await provider.skyward_owned()
        assert ["client_credentials"] * 2 == grants(verda)

    run(scenario())


def test_a_token_that_lives_no_time_is_renewed_with_its_refresh_token(verda: Cloud) -> None:
    """And where that one is not known any more either, with the credentials."""
    verda.ask("token_life", 0)

    async def scenario() -> None:
        provider = verda.provider()
        assert isinstance(await refusal(provider.skyward_owned()), CredentialsError)
        verda.ask("revoke", {})
        verda.ask("token_life", 3600)
        await provider.skyward_owned()
        assert "refresh_token" in grants(verda)
        assert "client_credentials" == grants(verda)[-1]

    run(scenario())


@pytest.mark.parametrize("status", [400, 401])
def test_wrong_credentials_are_told_as_such(verda: Cloud, status: int) -> None:
    """Whichever status Verda chooses; neither the secret nor a token is shown."""
    body = {"code": "unauthorized_request", "message": f"Invalid client secret {CLIENT_SECRET}"}
    verda.fault("POST /v1/oauth2/token", status=status, body=body)

    async def scenario() -> SkywardError:
        return await refusal(verda.provider().skyward_preflight(Spec()))

    error = run(scenario())
    assert isinstance(error, CredentialsError)
    assert "VERDA_CLIENT_ID" in str(error)
    assert CLIENT_SECRET not in repr(error) + str(error) + repr(vars(error))


@pytest.mark.parametrize(
    "body",
    [{"access_token": "access-0123", "expires_in": "soon"}, {"refresh_token": "access-0123"}, "access-0123", "<html>"],
)
def test_an_answer_that_may_hold_a_token_is_not_shown(verda: Cloud, body: Any) -> None:
    """The error says what is wrong with it, and no more."""
    verda.fault("POST /v1/oauth2/token", status=200, body=body)

    async def scenario() -> SkywardError:
        return await refusal(verda.provider().skyward_owned())

    error = run(scenario())
    assert "POST /oauth2/token with what cannot be read" in str(error)
    assert "access-0123" not in repr(error) + str(error) + repr(vars(error)) + repr(error.__context__)


def test_no_credentials_lists_the_places(verda: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables, and the file with its profile."""
    monkeypatch.delenv("VERDA_CLIENT_ID")

    async def scenario() -> SkywardError:
        return await refusal(verda.provider().skyward_preflight(Spec()))

    error = run(scenario())
    assert isinstance(error, NoCredentialsError)
    for word in ("VERDA_CLIENT_ID and VERDA_CLIENT_SECRET", "profile 'default'", "credentials"):
        assert word in str(error)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["VERDA_API_KEY"], "VERDA_API_KEY alone is not enough: Verda's API wants a client's id and its secret."),
        (["VERDA_CLIENT_ID"], "VERDA_CLIENT_SECRET is not set."),
        (["DATACRUNCH_CLIENT_ID", "DATACRUNCH_CLIENT_SECRET"], "DATACRUNCH_CLIENT_SECRET alone is not enough"),
    ],
)
def test_variables_that_do_not_suffice_are_named(
    verda: Cloud, names: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other clouds have one key; the error names what is set, what is wanted, and shows nothing of it."""
    for name in ("VERDA_CLIENT_ID", "VERDA_CLIENT_SECRET"):
        monkeypatch.delenv(name)
    for name in names:
        monkeypatch.setenv(name, "hidden-0123")
    error = run(refusal(verda.provider().skyward_preflight(Spec())))
    assert isinstance(error, NoCredentialsError)
    assert said in str(error)
    assert "set VERDA_CLIENT_ID and VERDA_CLIENT_SECRET" in str(error)
    assert "hidden-0123" not in str(error)


def test_credentials_come_from_the_profile_that_is_named(verda: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """A profile is stronger than the variables; what is given is stronger than both."""
    file = Path(verda.environment()["VERDA_HOME"], "credentials")
    file.write_text(
        f"[work]\nverda_base_url = {verda.base_url}\nverda_client_id = {CLIENT_ID}\n"
        f"verda_client_secret = {CLIENT_SECRET}\n[other]\nverda_base_url = {verda.base_url}\n"
    )
    monkeypatch.setenv("VERDA_CLIENT_ID", "somebody-else")

    async def scenario() -> None:
        assert 0 == len(await verda.provider(profile="work").skyward_owned())
        given = {"client_id": CLIENT_ID, "client_secret": CLIENT_SECRET}
        assert 0 == len(await verda.provider(profile="other", **given).skyward_owned())
        assert isinstance(await refusal(verda.provider(profile="other").skyward_owned()), NoCredentialsError)
        monkeypatch.setenv("VERDA_PROFILE", "work")
        assert isinstance(await refusal(verda.provider().skyward_owned()), CredentialsError)

    run(scenario())


def test_a_file_that_cannot_be_read_is_named_and_not_shown(verda: Cloud) -> None:
    """There may be secrets in it."""
    Path(verda.environment()["VERDA_HOME"], "credentials").write_text("secret without a section")

    async def scenario() -> SkywardError:
        return await refusal(verda.provider().skyward_owned())

    error = run(scenario())
    assert isinstance(error, ConfigError)
    assert "credentials cannot be read" in str(error)
    assert "without a section" not in str(error) + repr(error.__cause__) + repr(error.__context__)


def test_an_account_without_credit_is_refused_before_anything_is_rented(verda: Cloud) -> None:
    """Its machines would be taken away at once."""
    verda.ask("balance", 0.0)

    async def scenario() -> SkywardError:
        return await refusal(verda.provider().skyward_preflight(Spec()))

    error = run(scenario())
    assert isinstance(error, CredentialsError)
    assert "no credit" in str(error)


def test_nothing_of_the_account_is_on_a_machine(verda: Cloud) -> None:
    """Neither the startup script nor what a machine is rented with holds a credential."""

    async def scenario() -> list[Any]:
        async with client(verda.provider()) as opened:
            await opened.launch()
            return [*verda.ask("script_text"), *(call["body"] for call in verda.calls("POST /v1/instances"))]

    texts = run(scenario())
    assert 2 <= len(texts)
    for word in (CLIENT_ID, CLIENT_SECRET, "access-", "refresh-"):
        assert not any(word in each for each in texts)
