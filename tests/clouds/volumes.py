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
# By the UUID of a filesystem, which is the name of its folder here.
case "$device" in UUID=*) device=$(grep -l "/${{device#UUID=}}\\( \\|$\\)" {base}/dev/* 2>/dev/null | head -n 1) ;; esac
if [ -f "$device" ]; then read -r kind folder label <"$device"; else kind=nfs folder={base}/shares/${{device##*/}}; fi
[ -n "$kind" ] && [ -d "$folder" ] || exit 1
# Machines here share their directories, so that others may make and mount this one at the same time.
i=0
until [ "$(readlink "$where")" = "$folder" ]; do
  [ "$i" -lt 50 ] || exit 1
  i=$((i + 1))
  rmdir "$where" 2>/dev/null
  ln -s "$folder" "$where.$$" && mv -T "$where.$$" "$where" 2>/dev/null || rm -f "$where.$$"
done
echo "$where" >>{base}/mounted
"""
_BLKID = """#!/bin/sh
for device in "$@"; do :; done
[ -f "$device" ] && read -r kind folder label <"$device"
[ -n "$kind" ] || exit 2
case "$*" in *UUID*) echo "${{folder##*/}}" ;; *) echo "$kind" ;; esac
"""
_LSBLK = """#!/bin/sh
if [ "$*" = "-dnpo NAME,SERIAL" ]; then
  sed "s,^,{base}/dev/," {base}/serials
  exit
fi
named() {{ case "$asked" in *LABEL*) echo " LABEL=\\"$1\\"" ;; esac; }}
asked=$*
echo "NAME=\\"/dev/vda1\\" FSTYPE=\\"ext4\\"$(named root) MOUNTPOINT=\\"/\\""
for device in {base}/dev/vd[b-z]; do
  [ -e "$device" ] || continue
  read -r kind folder label <"$device" || :
  echo "NAME=\\"$device\\" FSTYPE=\\"$kind\\"$(named "$label") MOUNTPOINT=\\"\\""
done
"""
_MOUNTPOINT = """#!/bin/sh
for where in "$@"; do :; done
grep -qxF "$where" {base}/mounted 2>/dev/null
"""
_UMOUNT = """#!/bin/sh
echo "umount $*" >>{base}/asked
[ ! -e {base}/busy ] || {{ echo "umount: $1: target is busy." >&2; exit 32; }}
grep -vxF "$1" {base}/mounted >{base}/mounted.new || :
mv {base}/mounted.new {base}/mounted
[ ! -L "$1" ] || rm "$1"
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


def plug(
    host: Host,
    devices: Mapping[str, tuple[str, Path]],
    shares: Mapping[str, Path] | None = None,
    labels: Mapping[str, str] | None = None,
) -> None:
    """
    Give a host disks, and commands that mount them by a link, and that never format one.

    Args:
        host: The host.
        devices: The filesystem of each, empty for none, and the directory in which it is; by their paths below `/dev`.
        shares: The directories that it may mount over NFS, by their names there.
        labels: The labels of filesystems, by the disks' paths.
    """
    for name, (kind, folder) in devices.items():
        path = host.base / "dev" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{kind} {folder} {(labels or {}).get(name, '')}\n" if kind else "\n")
    (host.base / "serials").touch()
    (host.base / "shares").mkdir()
    for name, folder in (shares or {}).items():
        (host.base / "shares" / name).symlink_to(folder)
    commands = {"mount": _MOUNT, "blkid": _BLKID, "lsblk": _LSBLK, "mountpoint": _MOUNTPOINT, "umount": _UMOUNT}
    for name, text in commands.items():
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
