"""What a machine hears for its first boot."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from skyward.model.instances.key_pair import KeyPair
from skyward.plan.bootstrap.first_boot import HostKey, boot_deadline, boot_watchdogs, cloud_config, host_key


def test_a_machine_has_one_host_key_and_no_other() -> None:
    """It is the same whenever it is asked for, and another for another machine or pool."""
    key = KeyPair()
    assert host_key(key, "t/0") == host_key(key, "t/0")
    assert host_key(key, "t/0") != host_key(key, "t/1")
    assert host_key(key, "t/0") != host_key(KeyPair(), "t/0")
    assert "PRIVATE" not in repr(host_key(key, "x"))


def test_a_host_key_is_what_openssh_reads(tmp_path: Path) -> None:
    """The tool of OpenSSH finds the public half in the private one."""
    made = host_key(KeyPair(), "x")
    path = tmp_path / "key"
    path.write_text(made.private)
    path.chmod(0o600)
    done = subprocess.run(["ssh-keygen", "-y", "-f", str(path)], check=True, capture_output=True, text=True)
    assert made.public == done.stdout.strip()


@pytest.mark.parametrize(("user", "closed"), [("root", False), ("ubuntu", True)])
def test_a_machine_lets_one_key_in_and_is_known_by_one(user: str, closed: bool) -> None:
    """No login gets in by password, and root only where root is who logs in."""
    config = json.loads(
        cloud_config("ssh-ed25519 AAAA", HostKey("ssh-ed25519 BBBB", "private"), user).split("\n", 1)[1]
    )
    [[*words, script], again] = config.pop("bootcmd")
    assert ["sh", "-c", boot_watchdogs(user)] == again
    assert ["cloud-init-per", "instance", "skyward", "sh", "-c"] == words
    assert "/var/lib/cloud" in script
    keys = {"ed25519_private": "private", "ed25519_public": "ssh-ed25519 BBBB\n"}
    assert {
        "ssh_deletekeys": True,
        "ssh_genkeytypes": [],
        "ssh_keys": keys,
        "ssh_authorized_keys": ["ssh-ed25519 AAAA skyward"],
        "ssh_pwauth": False,
        "disable_root": closed,
    } == config


@pytest.mark.slow
@pytest.mark.parametrize("has_node", [True, False])
def test_a_machine_that_nobody_makes_a_node_of_ends_itself(has_node: bool, tmp_path: Path) -> None:
    """The deadline runs the command that ends it, unless a node is there by then."""
    lease = tmp_path / ".cache" / "skyward" / "nodes" / "n" / "lease"
    lease.parent.mkdir(parents=True)
    if has_node:
        lease.touch()
    ended = tmp_path / "ended"
    script = boot_deadline("root", 0.1, f"touch {ended}")
    subprocess.run(["sh", "-c", f"{script}\nwait"], check=True, env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"})
    assert ended.exists() is not has_node
