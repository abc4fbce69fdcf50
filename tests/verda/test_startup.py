"""The startup script, run by a shell, on an SSH server's files of either kind."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from skyward.model.instances.key_pair import KeyPair
from skyward.plan.bootstrap.first_boot import host_key
from skyward_verda.startup import startup_script
from tests.clouds.hosting import executable

KEY = KeyPair()
OWN = host_key(KEY, "a1")


@pytest.mark.parametrize("include", [True, False])
def test_a_server_gets_the_key_however_it_is_set_up(tmp_path: Path, include: bool) -> None:
    """In a file that it reads first, or at the top of the one that it has; other settings stay."""
    ssh, home, programs = tmp_path / "ssh", tmp_path / "home", tmp_path / "bin"
    ssh.mkdir()
    programs.mkdir()
    before = f"Include {ssh}/sshd_config.d/*.conf\nPort 22\n" if include else "Port 22\nMatch user x\n"
    (ssh / "sshd_config").write_text(before)
    executable(programs / "systemctl", f'#!/bin/sh\necho "$*" >>{tmp_path}/asked\n')
    places = {"/etc/ssh": str(ssh), "/root": str(home)}
    script = re.sub(r"/etc/ssh|/root", lambda found: places[found[0]], startup_script(KEY.public, OWN, 0))
    # A second boot does no harm.
    for _ in range(1 if not include else 2):
        env = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
        subprocess.run(["sh", "-eu", "-c", script], check=True, env=env, timeout=10)
    line = f"HostKey {ssh}/skyward_host_key\n"
    if include:
        assert line == (ssh / "sshd_config.d" / "00-skyward.conf").read_text()
        assert before == (ssh / "sshd_config").read_text()
    else:
        assert line + before == (ssh / "sshd_config").read_text()
    assert OWN.private == (ssh / "skyward_host_key").read_text()
    assert 0o600 == (ssh / "skyward_host_key").stat().st_mode & 0o777
    assert KEY.public in (home / ".ssh" / "authorized_keys").read_text().splitlines()
    assert "restart ssh" in (tmp_path / "asked").read_text()
    public = subprocess.run(
        ["ssh-keygen", "-y", "-f", str(ssh / "skyward_host_key")], check=True, capture_output=True, text=True
    )
    assert OWN.public == " ".join(public.stdout.split()[:2])
