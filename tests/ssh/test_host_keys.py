"""The key of a host that was never seen is remembered where it is found again."""

from __future__ import annotations

from pathlib import Path

import asyncssh
import pytest

from skyward.model.machine import SSHAddress
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
