"""What is known to fail is refused before anything is rented."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from skyward.errors import CredentialsError, QuotaError
from skyward.model.spec.spec import Spec
from tests.clouds.aws.client import client, refusal, run
from tests.clouds.aws.cloud import KEY, SECRET, Cloud

pytestmark = [pytest.mark.clouds, pytest.mark.usefixtures("without_hosts")]


def _in(**time: float) -> str:
    return (datetime.now(UTC) + timedelta(**time)).strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.mark.parametrize(("minutes", "words"), [(-1, "have run out"), (4, "run out in 2")])
def test_credentials_that_are_about_to_run_out_are_refused(
    aws: Cloud, monkeypatch: pytest.MonkeyPatch, minutes: float, words: str
) -> None:
    """Before AWS is asked anything."""
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token")
    monkeypatch.setenv("AWS_CREDENTIAL_EXPIRATION", _in(minutes=minutes))
    error = run(refusal(aws.provider().skyward_preflight(Spec())))
    assert isinstance(error, CredentialsError)
    assert words in str(error)
    assert aws.calls() == []


@pytest.mark.parametrize(("minutes", "warned"), [(30, True), (90, False)])
def test_credentials_that_run_out_within_the_hour_are_warned_of(
    aws: Cloud, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, minutes: float, warned: bool
) -> None:
    """Those that last longer are used without a word."""
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token")
    monkeypatch.setenv("AWS_CREDENTIAL_EXPIRATION", _in(minutes=minutes))
    run(aws.provider().skyward_preflight(Spec()))
    assert warned is ("run out in" in caplog.text)


def test_a_profile_says_when_its_session_ends(aws: Cloud, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As the tools that log in write it."""
    lines = [
        "[work]",
        f"aws_access_key_id={KEY}",
        f"aws_secret_access_key={SECRET}",
        "aws_session_token=token",
        f"x_security_token_expires={_in(minutes=2)}",
    ]
    (tmp_path / "credentials").write_text("\n".join(lines))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.fspath(tmp_path / "credentials"))
    error = run(refusal(aws.provider(profile="work").skyward_preflight(Spec())))
    assert isinstance(error, CredentialsError)


def test_a_type_that_the_quota_has_no_room_for_is_refused_without_a_launch(aws: Cloud) -> None:
    """The error has the quota's code; the other market has a quota of its own."""
    aws.quota("L-DB2E81BA", 0.0)

    async def scenario() -> None:
        async with client(aws.provider(), machine="g4dn.xlarge") as opened:
            error = await refusal(opened.launch())
            assert isinstance(error, QuotaError)
            assert "L-DB2E81BA" in str(error)
            assert "ec2:RunInstances" not in [call["name"] for call in aws.calls()]
            assert len(await opened.launch(spot=True)) == 1

    run(scenario())


def test_a_quota_that_cannot_be_asked_is_no_obstacle(aws: Cloud) -> None:
    """A key that may not look hears so from EC2 itself."""
    aws.fault("GetServiceQuota", code="AccessDeniedException", status=400)

    async def scenario() -> None:
        async with client(aws.provider()) as opened:
            assert len(await opened.launch()) == 1

    run(scenario())
