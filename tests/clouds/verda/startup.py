"""What a machine of the Verda test cloud does at its first boot: it runs the script that its owner gave."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tests.clouds.hosting import Boot, executable
from tests.clouds.volumes import moved
from tests.hosts import SSHD, Host

_SSHD = """#!/bin/sh
case "$*" in *restart*ssh*|*ssh*restart*) exec {python} -m tests.clouds.verda.startup {base} ;; esac
exit 1
"""


def boot(keys: Sequence[str], script: str, delay: float, gpus: Sequence[str], conditions: dict[str, Any]) -> Boot:
    """
    Say how a machine comes up.

    Args:
        keys: The keys that the cloud puts there.
        script: What the owner has it run.
        delay: Seconds that it has been up when the script runs.
        gpus: Its GPUs.
        conditions: What goes wrong.
    """
    run = "exec sh startup >>startup.log 2>&1"
    # reference/verda.md §3: once, at the first boot, as root; when in the boot is not told.
    command = f"(sleep {delay}; {run}) >/dev/null 2>&1 &" if delay else run
    return Boot(
        keys=keys,
        commands=[f"cd .. && {command}"] if script else [],
        gpus=gpus,
        conditions=conditions,
        arrange=partial(_arrange, script=script, elsewhere=bool(conditions.get("key"))),
    )


def _arrange(host: Host, *, script: str, elsewhere: bool) -> None:
    """Have the host keep its keys where a machine has them, and the script reach those and no others."""
    ssh, home = host.base / "etc" / "ssh", host.base / "home"
    ssh.mkdir(parents=True)
    (home / ".ssh").mkdir()
    (host.base / "host_key").rename(ssh / "ssh_host_ed25519_key")
    (host.base / "host_key.pub").rename(ssh / "ssh_host_ed25519_key.pub")
    (host.base / "authorized_keys").rename(home / ".ssh" / "authorized_keys")
    config = (host.base / "sshd_config").read_text()
    config = config.replace(f"{host.base}/host_key", str(ssh / "ssh_host_ed25519_key"))
    config = config.replace(f"{host.base}/authorized_keys", str(home / ".ssh" / "authorized_keys"))
    # As on Ubuntu: what others write is read first.
    (host.base / "sshd_config").write_text(f"Include {ssh}/sshd_config\n{config}")
    (ssh / "sshd_config").write_text(f"Include {ssh}/sshd_config.d/*.conf\n")
    # A machine whose host key is another has put ours where no client looks.
    places = {"/etc/ssh": str(ssh) + ("-unused" if elsewhere else ""), "/root": str(home)}
    if elsewhere:
        shutil.copytree(ssh, places["/etc/ssh"])
    (host.base / "startup").write_text(moved(re.sub(r"/etc/ssh|/root", lambda found: places[found[0]], script), host))
    for name in ("systemctl", "service"):
        root = Path(__file__).resolve().parents[3]
        python = f"env PYTHONPATH={shlex.quote(str(root))} {sys.executable}"
        executable(host.base / "bin" / name, _SSHD.format(python=python, base=shlex.quote(str(host.base))))


def restart(base: Path) -> None:
    """Have a host's SSH server read its keys anew."""
    subprocess.run([SSHD, "-t", "-f", str(base / "sshd_config")], check=True)
    os.kill(int((base / "sshd.pid").read_text()), signal.SIGHUP)


if __name__ == "__main__":
    restart(Path(sys.argv[1]))
