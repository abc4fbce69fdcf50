"""The key of a host that was never seen is remembered where it is found again."""

from __future__ import annotations

import subprocess
from pathlib import Path

import asyncssh
import pytest

from skyward.errors import HostKeyError
from skyward.model.instances.machine import SSHAddress
from skyward.ssh.host_keys import HostKeys

OTHER = "other-box ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJvWmmGPZlhJ2kYBIIF0YTyOVxEbnjs5qqbHn6xUiHVJ"


@pytest.mark.parametrize("before", ["", f"{OTHER}\n", OTHER, "# a comment"])
@pytest.mark.parametrize("port", [22, 2222])
def test_a_first_use_sticks(tmp_path: Path, before: str, port: int) -> None:
    """Also in a file whose last line an editor left without its end; that line stays what it was."""
    path = tmp_path / "known_hosts"
    path.write_text(before)
    keys = HostKeys(SSHAddress(host="gpu-box", known_hosts=str(path)))
    key = asyncssh.generate_private_key("ssh-ed25519").convert_to_public()
    assert keys.client().validate_host_public_key("gpu-box", "10.0.0.5", port, key)
    [found] = keys.known("gpu-box", "10.0.0.5", port)[0]
    assert key.public_data == found.public_data
    assert len(keys.known("other-box", "10.0.0.6", 22)[0]) == before.startswith("other-box")
    lines = path.read_text().splitlines()
    assert [each for each in before.splitlines() if each] == lines[:-1]
    other = asyncssh.generate_private_key("ssh-ed25519").convert_to_public()
    assert not keys.client().validate_host_public_key("gpu-box", "10.0.0.5", port, other)
    assert lines == path.read_text().splitlines()


@pytest.mark.parametrize("port", [22, 2222])
def test_the_old_key_is_forgotten_by_what_is_said(tmp_path: Path, port: int) -> None:
    """The command names the file, and a shell takes it as it stands."""
    path = tmp_path / "my hosts" / "known & 'mine'"
    path.parent.mkdir()
    keys = HostKeys(SSHAddress(host="gpu-box", known_hosts=str(path)))
    old, new = (asyncssh.generate_private_key("ssh-ed25519").convert_to_public() for _ in range(2))
    assert keys.client().validate_host_public_key("gpu-box", "10.0.0.5", port, old)
    assert not keys.client().validate_host_public_key("gpu-box", "10.0.0.5", port, new)
    command = str(keys.refusal()).rpartition("forget the old key: ")[2]
    assert command.startswith("ssh-keygen -R ")
    subprocess.run(command, shell=True, check=True, capture_output=True)
    assert keys.client().validate_host_public_key("gpu-box", "10.0.0.5", port, new)


def test_a_key_that_was_given_is_in_no_file(tmp_path: Path) -> None:
    """There is nothing to forget: another one has to be given."""
    given = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode().strip()
    keys = HostKeys(SSHAddress(host="gpu-box", host_key=given, known_hosts=str(tmp_path / "known_hosts")))
    other = asyncssh.generate_private_key("ssh-ed25519").convert_to_public()
    assert not keys.client().validate_host_public_key("gpu-box", "10.0.0.5", 22, other)
    assert "give the new one: SSHAddress(host_key=...)" in str(keys.refusal())
    assert "ssh-keygen" not in str(keys.refusal())


@pytest.mark.parametrize("before", ["", "gpu-box"])
def test_a_pinned_fingerprint_is_the_only_key_that_is_accepted(tmp_path: Path, before: str) -> None:
    """Whatever the file of known hosts says of the host, and nothing is written to it."""
    path = tmp_path / "known_hosts"
    right, other = (asyncssh.generate_private_key("ssh-ed25519").convert_to_public() for _ in range(2))
    written = f"{before} {other.export_public_key().decode().strip()}\n" if before else ""
    path.write_text(written)
    address = SSHAddress(host="gpu-box", known_hosts=str(path), fingerprints=["SHA256:" + "A" * 43, fingerprint(right)])
    keys = HostKeys(address)
    assert not any(keys.known("gpu-box", "10.0.0.5", 22))
    assert keys.client().validate_host_public_key("gpu-box", "10.0.0.5", 22, right)
    assert keys.refusal() is None
    assert not keys.client().validate_host_public_key("gpu-box", "10.0.0.5", 22, other)
    refusal = keys.refusal()
    assert isinstance(refusal, HostKeyError)
    assert fingerprint(right) in str(refusal)
    assert fingerprint(other) in str(refusal)
    assert "give the new one: SSHAddress(fingerprints=...)" in str(refusal)
    assert written == path.read_text()


def fingerprint(key: asyncssh.SSHKey) -> str:
    """Return the fingerprint of a key as ssh-keygen prints it."""
    return key.get_fingerprint()
