"""What volumes of test clouds are: directories that outlive machines, and stand-ins for what would mount a disk."""

from __future__ import annotations

import os
import re
import subprocess
import uuid
from collections.abc import Mapping
from pathlib import Path

from tests.clouds.hosting import executable
from tests.hosts import Host

# A device is a file that names its filesystem and the directory in which that is.
_MOUNT = """#!/bin/sh
for word in "$@"; do device=$where; where=$word; done
echo "mount $*" >>{base}/asked
if [ -f "$device" ]; then read -r kind folder <"$device"; else kind=nfs folder={base}/shares/${{device##*/}}; fi
[ -n "$kind" ] && [ -d "$folder" ] || exit 1
# Machines here share their directories, so that others may make and mount this one at the same time.
i=0
until [ "$(readlink "$where")" = "$folder" ]; do
  [ "$i" -lt 50 ] || exit 1
  i=$((i + 1))
  rmdir "$where" 2>/dev/null
  ln -s "$folder" "$where.$$" && mv -T "$where.$$" "$where" 2>/dev/null || rm -f "$where.$$"
done
"""
_BLKID = """#!/bin/sh
for device in "$@"; do :; done
read -r kind folder <"$device" && [ -n "$kind" ] && echo "$kind"
"""
_LSBLK = """#!/bin/sh
echo 'NAME="/dev/vda1" FSTYPE="ext4" MOUNTPOINT="/"'
for device in {base}/dev/vd[b-z]; do
  [ -e "$device" ] || continue
  read -r kind folder <"$device" || :
  echo "NAME=\\"$device\\" FSTYPE=\\"$kind\\" MOUNTPOINT=\\"\\""
done
"""
_REFUSED = """#!/bin/sh
echo "${{0##*/}} $*" >>{base}/asked
exit 1
"""


def bind(path: str, folder: Path) -> None:
    """Let a directory be found at another path, as a container runtime does; a test has to choose one of its own."""
    where = Path(path)
    assert where.is_relative_to("/tmp"), f"{path} is this machine's"
    where.parent.mkdir(parents=True, exist_ok=True)
    # Others may do the same at the same time.
    made = where.with_name(f"{where.name}.{uuid.uuid4().hex}")
    made.symlink_to(folder)
    made.replace(where)


def plug(host: Host, devices: Mapping[str, tuple[str, Path]], shares: Mapping[str, Path] | None = None) -> None:
    """
    Give a host disks, and commands that mount them by a link, and that never format one.

    Args:
        host: The host.
        devices: The filesystem of each, empty for none, and the directory in which it is; by their paths below `/dev`.
        shares: The directories that it may mount over NFS, by their names there.
    """
    for name, (kind, folder) in devices.items():
        path = host.base / "dev" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{kind} {folder if kind else ''}\n")
    (host.base / "shares").mkdir()
    for name, folder in (shares or {}).items():
        (host.base / "shares" / name).symlink_to(folder)
    for name, text in {"mount": _MOUNT, "blkid": _BLKID, "lsblk": _LSBLK}.items():
        executable(host.base / "bin" / name, text.format(base=host.base))
    for name in ("mkfs", "mkfs.ext4", "mkfs.xfs", "mke2fs", "wipefs", "parted", "apt-get"):
        executable(host.base / "bin" / name, _REFUSED.format(base=host.base))
    executable(host.base / "bin" / "mount.nfs", "#!/bin/sh\n")


def moved(script: str, host: Host) -> str:
    """Have a script find a host's devices and not this machine's."""
    return re.sub(r"/dev/(?!null)", f"{host.base}/dev/", script)


def run_at_boot(host: Host, script: str) -> None:
    """Run a script as root would at a boot, before any login is let in."""
    env = {**os.environ, "PATH": f"{host.base}/bin:{os.environ['PATH']}", "HOME": f"{host.base}/home"}
    with (host.base / "boot.log").open("ab") as log:
        words = ["sh", "-c", moved(script, host)]
        subprocess.run(words, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, timeout=30, check=False)
