"""
Tools that mount a bucket of S3 as a folder.

Each is started as a node would start it: in the foreground, and with no secret in its arguments.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sysconfig
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from attrs import frozen

__all__ = ["MountTool", "Place", "found_tools", "mounted", "program_of"]

READY_WITHIN = 30.0
"""Seconds that a tool has to mount."""
ENDS_WITHIN = 60.0
"""Seconds that a tool has to end once its folder is unmounted."""


@frozen(kw_only=True)
class Place:
    """
    Say what is mounted, and where.

    Args:
        endpoint: The store's address.
        bucket: The bucket.
        access_key: The store's, as is `secret_key`.
        secret_key: Goes by the environment, or by a file of mode 600.
        folder: Where the bucket is mounted.
        state: A folder for what the tool keeps, such as a cache.
    """

    endpoint: str
    bucket: str
    access_key: str
    secret_key: str
    folder: Path
    state: Path


Start = Callable[[str, Place], tuple[list[str], dict[str, str]]]
"""Returns the command line of a program and what is added to its environment."""


@frozen(kw_only=True)
class MountTool:
    """
    Hold a tool that is installed here.

    Args:
        name: Its own and, where there are several, where it is from.
        program: Its path.
        start: How it is started.
    """

    name: str
    program: str
    start: Start


def _s3fs(program: str, place: Place) -> tuple[list[str], dict[str, str]]:
    secret = place.state / "password"
    secret.touch(0o600)
    secret.write_text(f"{place.access_key}:{place.secret_key}")
    options = f"passwd_file={secret},url={place.endpoint},use_path_request_style,parallel_count=10"
    if _numbers(_version(program)) >= (1, 91):
        # Folders that other programs made have no object of their own.
        options += ",compat_dir"
    return [program, place.bucket, str(place.folder), "-f", "-o", options], {}


def _rclone(program: str, place: Place, write_back: str = "0s") -> tuple[list[str], dict[str, str]]:
    arguments = [
        "mount",
        f"store:{place.bucket}",
        str(place.folder),
        "--vfs-cache-mode=full",
        f"--vfs-write-back={write_back}",
        f"--cache-dir={place.state / 'cache'}",
        "--dir-cache-time=10s",
        # The time of an object is that of its upload: the other one costs a request for each file of a folder.
        "--use-server-modtime",
        "--vfs-fast-fingerprint",
        "--buffer-size=16M",
        "--vfs-read-ahead=64M",
        "--vfs-read-chunk-size=32M",
        "--transfers=32",
        *(("--vfs-read-chunk-streams=8",) if _numbers(_version(program)) >= (1, 68) else ()),
    ]
    return [program, *arguments], rclone_environment(place)


def _rclone_later(program: str, place: Place) -> tuple[list[str], dict[str, str]]:
    return _rclone(program, place, write_back="1s")


def with_settings(settings: dict[str, str]) -> dict[str, str]:
    """Return this process's environment with settings, and without those for another store."""
    own = {name: text for name, text in os.environ.items() if not name.startswith(("AWS_", "RCLONE_"))}
    return own | settings


def rclone_environment(place: Place) -> dict[str, str]:
    """Return what makes `store:` the store, without a file."""
    return {
        "RCLONE_CONFIG": "",
        "RCLONE_CONFIG_STORE_TYPE": "s3",
        "RCLONE_CONFIG_STORE_PROVIDER": "Other",
        "RCLONE_CONFIG_STORE_ENDPOINT": place.endpoint,
        "RCLONE_CONFIG_STORE_REGION": "us-east-1",
        "RCLONE_CONFIG_STORE_FORCE_PATH_STYLE": "true",
        "RCLONE_CONFIG_STORE_ACCESS_KEY_ID": place.access_key,
        "RCLONE_CONFIG_STORE_SECRET_ACCESS_KEY": place.secret_key,
        "RCLONE_CONFIG_STORE_NO_CHECK_BUCKET": "true",
    }


def aws_environment(place: Place) -> dict[str, str]:
    """Return the variables that most tools take keys from."""
    return {
        "AWS_ACCESS_KEY_ID": place.access_key,
        "AWS_SECRET_ACCESS_KEY": place.secret_key,
        "AWS_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def _mountpoint(program: str, place: Place) -> tuple[list[str], dict[str, str]]:
    arguments = ["--foreground", "--allow-delete", "--allow-overwrite", "--force-path-style"]
    arguments += ["--endpoint-url", place.endpoint]
    return [program, *arguments, place.bucket, str(place.folder)], aws_environment(place)


def _geesefs(program: str, place: Place) -> tuple[list[str], dict[str, str]]:
    arguments = ["-f", "--endpoint", place.endpoint, "--list-type", "2", place.bucket, str(place.folder)]
    return [program, *arguments], aws_environment(place)


_STARTS: dict[tuple[str, str], Start] = {
    ("s3fs", ""): _s3fs,
    ("rclone", ""): _rclone,
    ("rclone", "written 1 s after close"): _rclone_later,
    ("mount-s3", ""): _mountpoint,
    ("geesefs", ""): _geesefs,
}
"""How each program is started; rclone in two ways: it uploads a file as soon as that is closed, or later."""


def found_tools() -> list[MountTool]:
    """List the tools that are installed here, those of this interpreter's environment beside those of the system."""
    places = {"": os.defpath + os.pathsep + os.environ.get("PATH", ""), "wheel": sysconfig.get_path("scripts")}
    found: list[MountTool] = []
    for (name, way), start in _STARTS.items():
        programs: dict[str, str] = {}
        for label, path in places.items():
            if program := shutil.which(name, path=path):
                programs.setdefault(os.path.realpath(program), label)
        for program, label in programs.items():
            notes = ", ".join(note for note in (label, way) if note)
            shown = f"{name} {_version(program)}" + (f" ({notes})" if notes else "")
            found.append(MountTool(name=shown, program=program, start=start))
    return found


def program_of(name: str) -> str | None:
    """Return where a program is, that of this interpreter's environment first."""
    return shutil.which(name, path=sysconfig.get_path("scripts")) or shutil.which(name)


def _version(program: str) -> str:
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False, timeout=30)
    match = re.search(r"\d+(\.\d+)+", said.stdout + said.stderr)
    return match[0] if match else "?"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))


@contextlib.contextmanager
def mounted(tool: MountTool, place: Place) -> Iterator[subprocess.Popen[bytes]]:
    """
    Mount a bucket, and unmount it in the end whatever became of the tool.

    Args:
        tool: What mounts it.
        place: The bucket and the folder.

    Raises:
        RuntimeError: If it does not mount in time.
    """
    place.folder.mkdir(parents=True, exist_ok=True)
    place.state.mkdir(parents=True, exist_ok=True)
    command, environment = tool.start(tool.program, place)
    with (place.state / "log").open("ab") as log:
        process = subprocess.Popen(command, env=with_settings(environment), stdout=log, stderr=log)
    try:
        _await_mount(tool, place, process)
        yield process
    finally:
        subprocess.run(["umount", str(place.folder)], check=False, stderr=subprocess.DEVNULL)
        try:
            process.wait(ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if is_mount(place.folder):
            subprocess.run(["umount", "--lazy", str(place.folder)], check=False)


def _await_mount(tool: MountTool, place: Place, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + READY_WITHIN
    while not is_mount(place.folder):
        if process.poll() is not None or time.monotonic() > deadline:
            said = (place.state / "log").read_text(errors="replace")[-2000:]
            raise RuntimeError(f"{tool.name} does not mount: {said}")
        time.sleep(0.005)


def is_mount(folder: Path) -> bool:
    """Return whether something is mounted at a folder, also where its tool is dead."""
    lines = Path("/proc/self/mounts").read_text().splitlines()
    return any(line.split()[1] == str(folder) for line in lines)
