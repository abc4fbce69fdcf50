"""What Vast.ai's refusals mean: decided by what they say, because their statuses say different things."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skyward.errors import CapacityError, ConfigError, CredentialsError, NoCredentialsError, ProvisionError, QuotaError
from skyward.rest import Reply
from skyward_vastai import VastAI
from skyward_vastai.service import KEY, meaning


def reply(status: int, body: Any) -> Reply:
    """Make an answer."""
    text = body if isinstance(body, str) else json.dumps(body)
    return Reply(method="PUT", path="/api/v0/asks/7/", status=status, text=text, once=True)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (404, {"success": False, "error": "auth_error", "msg": "Invalid user key"}, CredentialsError),
        (401, {"success": False, "error": "auth_error", "msg": "Invalid user key"}, CredentialsError),
        (404, {"msg": "Invalid user key"}, CredentialsError),
        (
            404,
            {"success": False, "error": "invalid_args", "msg": "404/3603: no_such_ask Instance"},
            CapacityError,
        ),
        (410, {"success": False, "error": "no_such_ask", "msg": "no longer available"}, CapacityError),
        (410, {"success": False, "error": "deprecated_endpoint", "msg": "Use /api/v1/instances/"}, ProvisionError),
        (400, {"success": False, "error": "invalid_price", "msg": "bid is too low", "new_contract": 9}, CapacityError),
        (200, {"success": False, "error": "invalid_price", "msg": "bid is too low"}, CapacityError),
        (200, {"success": False, "msg": "no reason"}, ProvisionError),
        (400, {"success": False, "error": "missing_billing", "msg": "x"}, CredentialsError),
        (402, "Insufficient credits", CredentialsError),
        (400, {"success": False, "error": "label_too_long", "msg": "x"}, ConfigError),
        (400, {"success": False, "error": "invalid_args", "msg": "image"}, ConfigError),
        (429, {"error": "search_quota_exceeded"}, QuotaError),
    ],
)
def test_a_refusal_is_the_error_that_says_what_to_do(status: int, body: Any, kind: type[Exception]) -> None:
    """None of them gets better by asking again."""
    found = meaning(reply(status, body))
    assert found is not None
    assert (kind, False) == (found.kind, found.again)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, {"success": True, "new_contract": 9}),
        (200, {"instances": None}),
        (429, "API requests too frequent endpoint threshold=4.5"),
        (500, "<html>oh</html>"),
        (503, ""),
    ],
)
def test_all_else_is_for_the_status_to_say(status: int, body: Any) -> None:
    """A plain-text 429 is waited for, and trouble of the other side as well."""
    assert meaning(reply(status, body)) is None


def test_the_key_is_looked_for_where_vasts_own_tools_look(tmp_path: Path) -> None:
    """What was given, the variable, the settings, the home directory, in this order."""
    environment = {"VAST_API_KEY": "variable", "XDG_CONFIG_HOME": str(tmp_path / "c"), "HOME": str(tmp_path)}
    (tmp_path / ".vast_api_key").write_text("home\n")
    (tmp_path / "c" / "vastai").mkdir(parents=True)
    (tmp_path / "c" / "vastai" / "vast_api_key").write_text("settings\n")
    assert "given" == KEY.find("given", environment)
    assert "variable" == KEY.find(None, environment)
    del environment["VAST_API_KEY"]
    assert "settings" == KEY.find(None, environment)
    (tmp_path / "c" / "vastai" / "vast_api_key").unlink()
    assert "home" == KEY.find(None, environment)
    (tmp_path / ".vast_api_key").unlink()
    with pytest.raises(NoCredentialsError, match=r"VAST_API_KEY, .*/c/vastai/vast_api_key, ~/\.vast_api_key"):
        KEY.find(None, environment)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"region": "us-east-1"}, "region must be the code of a country such as 'US'"),
        ({"region": ["US", 7]}, "region must be the code of a country"),
        ({"docker_image": "no image"}, "docker_image='no image' is no name of a Docker image"),
        ({"bid_factor": 0.5}, "bid_factor must be at least 1, not 0.5"),
        ({"bid_factor": "high"}, "bid_factor must be a finite number"),
        ({"reliability": 1.5}, "reliability must be a number from 0 to below 1, not 1.5"),
        ({"verified": "yes"}, "verified must be True or False"),
    ],
)
def test_a_setting_that_is_none_is_refused(settings: dict[str, Any], said: str) -> None:
    """Before anything is asked."""
    with pytest.raises(ConfigError, match=said):
        VastAI(**settings)


def test_no_secret_is_in_the_repr() -> None:
    """Neither the key nor the registry's password."""
    shown = repr(VastAI(api_key="k-e-y", registry="-u me -p pass-word registry.example"))
    assert "k-e-y" not in shown
    assert "pass-word" not in shown
