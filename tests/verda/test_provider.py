"""What holds at Verda, and what its settings take."""

from __future__ import annotations

from typing import Any

import pytest

from skyward.errors import ConfigError
from skyward.model.instances.key_pair import KeyPair
from skyward.plan.bootstrap.first_boot import host_key
from skyward_verda import Verda
from skyward_verda.instances import door
from skyward_verda.startup import startup_script


def test_facts() -> None:
    """A machine cannot end its bill, none has a network with others, and ten minutes are taken as counted."""
    facts = Verda(region=["FIN-01", "ICE-01"]).skyward_facts()
    assert ("verda", False, False, True) == (
        facts.name,
        facts.ends_own_bill,
        facts.nodes_reach_each_other,
        facts.spot,
    )
    assert (600.0, ("FIN-01", "ICE-01")) == (facts.billing_granularity_s, facts.regions)
    assert () == facts.end_command


@pytest.mark.parametrize(
    "settings",
    [
        {"client_id": "me"},
        {"client_secret": "secret"},
        {"region": ""},
        {"region": [3]},
        {"ssh_port": 0},
        {"ssh_port": "22"},
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any]) -> None:
    """At once, and without showing a secret."""
    with pytest.raises(ConfigError) as raised:
        Verda(**settings)
    assert "secret" not in str(raised.value).replace("client_secret", "")


def test_secrets_are_in_no_text() -> None:
    """Neither of the provider, nor of how its machines are reached."""
    assert "hidden" not in repr(Verda(client_id="me", client_secret="hidden"))
    key = KeyPair()
    assert key.private not in repr(door(key, "a1", 22)("192.0.2.1"))


def test_the_script_lets_us_in_and_gives_the_machine_its_key() -> None:
    """The key is there before its server is started again; without ttl no machine stops by itself."""
    key = KeyPair()
    own = host_key(key, "a1")
    script = startup_script(key.public, own, 600)
    assert key.public in script
    assert own.private in script
    assert key.private not in script
    lines = script.splitlines()
    restarts = next(number for number, line in enumerate(lines) if line.startswith("systemctl restart"))
    assert lines.index("-----END OPENSSH PRIVATE KEY-----") < lines.index("else") < restarts
    assert "shutdown -h now" in script
    assert "shutdown" not in startup_script(key.public, own, 0)
    assert door(key, "a1", 22)("192.0.2.1").host_key == own.public
