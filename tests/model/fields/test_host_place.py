import pytest

from skyward.errors import ConfigError
from skyward.model.fields.host_place import HostPlace, place, places
from skyward.model.instances.machine import SSHAddress
from skyward.providers.ssh import SSH


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("gpu-box", HostPlace(None, "gpu-box", None)),
        (" me@gpu-box ", HostPlace("me", "gpu-box", None)),
        ("me@corp@gate:22", HostPlace("me@corp", "gate", 22)),
        ("ssh://me@gate:2222", HostPlace("me", "gate", 2222)),
        ("[fe80::1]:22", HostPlace(None, "fe80::1", 22)),
        ("me@[fe80::1]", HostPlace("me", "fe80::1", None)),
        ("fe80::1", HostPlace(None, "fe80::1", None)),
    ],
)
def test_a_place_is_written_as_for_ssh(written: str, kept: HostPlace) -> None:
    """User and port may be left out, and addresses with colons stand in brackets."""
    assert kept == place(written, "hosts")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("gate:ssh", r"jump has 'gate:ssh', whose port 'ssh' is no number"),
        ("gate:٢٢", r"whose port '٢٢' is no number"),
        ("gate:0", r"the port of 'gate:0' must be a whole number of at least 1"),
        ("gate:70000", r"the port of 'gate:70000' must be a number from 1 to 65535"),
        ("me@", r"jump has 'me@', which names no host\. Write user@host:port"),
        (":22", r"jump has ':22', which names no host"),
        ("two words", r"jump has 'two words', which names no host"),
        ("gate,,inner", r"jump has '', which names no host"),
        ("  ", r"jump must not be blank"),
    ],
)
def test_what_is_no_place_is_refused(wrong: str, message: str) -> None:
    """Where it is written, before any host is dialled."""
    with pytest.raises(ConfigError, match=message):
        SSHAddress(host="gpu-box", jump=wrong)
    with pytest.raises(ConfigError, match=message):
        SSH(["gpu-box"], jump=wrong)


def test_a_chain_has_commas() -> None:
    """The first is entered first; "none" is no host."""
    assert (HostPlace("me", "gate", None), HostPlace(None, "inner", 2222)) == places("me@gate, inner:2222", "jump")
    assert () == places("none", "jump") == places("NONE", "jump")
