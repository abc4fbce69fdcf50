"""Environments of this machine, made by uv, kept under their content hash and shared by nodes and pools."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from skyward import private
from skyward.errors import ConfigError, ProvisionError
from skyward.model.spec.image import Image
from skyward.plain import redacted
from skyward.plan.bootstrap.environment_commands import Step, hint
from skyward.plan.bootstrap.uv_release import REQUIREMENT

RUNTIME = ("skyward", "cloudpickle", "attr", "attrs", "pluggy", "valkey")
"""The packages that our side of a worker needs, in a directory of their own."""

CACHE_HINT = "SKYWARD_CACHE may name another directory."

_LINES = 15


def cache_directory() -> Path:
    """
    Find the directory that everything Skyward keeps on this machine is in.

    It is `SKYWARD_CACHE`, else `skyward` in `XDG_CACHE_HOME`, else `~/.cache/skyward`.
    """
    if own := os.environ.get("SKYWARD_CACHE"):
        return Path(own).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "skyward"


def cache_entry(name: str) -> Path:
    """
    Make a directory in the cache, or check the one that is there.

    Args:
        name: Its name.

    Raises:
        ConfigError: If it cannot be made, or another user could change what is in it.
    """
    try:
        return private.entry(cache_directory(), name, hint=CACHE_HINT)
    except OSError as error:
        raise ConfigError(f"{cache_directory() / name} cannot be made: {error}.", hint=CACHE_HINT) from error


def prepare(key: str, steps: Sequence[Step], *, timeout: float, tell: Callable[[str, str], None]) -> Path:
    """
    Make an environment if it is not there, and return its interpreter.

    Args:
        key: Its content hash.
        steps: What to run in it; a step's command finds `{environment}` and `{uv}` filled in.
        timeout: Seconds for all steps.
        tell: Called with a phase and what happens to it.

    Raises:
        ProvisionError: If a step fails; the message has its last lines and the command.
        ConfigError: If another user could change the environment.
    """
    environment = cache_entry("environments") / key
    complete = environment / ".complete"
    with locked(environment.with_suffix(".lock")):
        if environment.exists():
            private.directory(environment, hint=CACHE_HINT)
        if not complete.exists():
            private.remove(environment)
            uv = find_uv()
            for step in steps:
                tell(step.phase, "started")
                _run(step, [part.format(environment=environment, uv=uv) for part in step.argv], timeout, environment)
                tell(step.phase, "completed")
            os.close(private.opened(complete, os.O_WRONLY | os.O_CREAT))
    return environment / "bin" / "python"


def runtime_directory() -> Path:
    """Return a directory with our side of a worker and what it needs, copied from what the client runs."""
    from skyward.registry import installed

    digest = hashlib.sha256(sys.version.encode())
    sources = []
    # Plugins are pickled by reference to the packages that they come in.
    own = ("skyward", *installed().packages)
    for name in dict.fromkeys((*RUNTIME, *own)):
        spec = importlib.util.find_spec(name)
        if spec is None or not spec.submodule_search_locations:
            raise ProvisionError(f"The client's package {name!r} has no directory that could be given to nodes.")
        source = Path(next(iter(spec.submodule_search_locations)))
        sources.append((name, source))
        if name in own:
            for path in sorted(path for path in source.rglob("*") if path.suffix in {".py", ".sh", ".lua"}):
                digest.update(f"{name}/{path.relative_to(source).as_posix()}".encode() + path.read_bytes())
        else:
            digest.update(f"{name} {version('attrs' if name == 'attr' else name)}".encode())
    directory = cache_entry("runtime") / digest.hexdigest()[:16]
    with locked(directory.with_suffix(".lock")):
        if directory.exists():
            private.directory(directory, hint=CACHE_HINT)
        else:
            with tempfile.TemporaryDirectory(dir=directory.parent) as made:
                for name, source in sources:
                    shutil.copytree(source, Path(made) / name, ignore=shutil.ignore_patterns("__pycache__"))
                Path(made).rename(directory)
                Path(made).mkdir()
    return directory


def find_uv() -> str:
    """
    Find uv on the PATH or in the client's environment, else install one release of it into the cache by pip.

    Raises:
        ProvisionError: If it cannot be had.
    """
    beside = Path(sysconfig.get_path("scripts")) / "uv"
    found = shutil.which("uv") or (str(beside) if beside.exists() else None)
    if found:
        return found
    tools = cache_entry("tools")
    uv = tools / "bin" / "uv"
    if not uv.exists():
        listed = tools / "uv.txt"
        with os.fdopen(private.opened(listed, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w") as file:
            file.write(f"{REQUIREMENT}\n")
        words = ["--quiet", "--no-deps", "--only-binary", ":all:", "--require-hashes", "--target", str(tools)]
        command = [sys.executable, "-m", "pip", "install", *words, "-r", str(listed)]
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL, umask=0o077
        )
        if done.returncode or not uv.exists():
            raise ProvisionError(
                f"Environments are made with uv, which is not on the PATH and could not be installed: "
                f"{redacted(done.stderr.strip())[-500:]}",
                hint="Install it: pip install uv.",
            )
    return str(private.program(uv, hint=CACHE_HINT))


def _run(step: Step, argv: list[str], timeout: float, environment: Path) -> None:
    env = {
        **os.environ,
        **dict(step.env),
        "VIRTUAL_ENV": str(environment),
        "PATH": f"{environment}/bin{os.pathsep}{os.environ['PATH']}",
    }
    if "PIP_FIND_LINKS" in env:
        env.setdefault("UV_FIND_LINKS", env["PIP_FIND_LINKS"])
    try:
        done = subprocess.run(
            argv,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            input=step.stdin.encode(),
            env=env,
            timeout=timeout,
            umask=0o077,
        )
    except subprocess.TimeoutExpired:
        raise ProvisionError(
            f"Making the environment took longer than {timeout:g} s in phase {step.phase!r}.",
            hint="Raise bootstrap_timeout.",
        ) from None
    except OSError as error:
        raise ProvisionError(f"Phase {step.phase!r} could not run {argv[0]}: {error}.") from error
    if done.returncode:
        shown = (*step.shown[: len(step.env)], redacted(" ".join(argv)))
        last = redacted(done.stdout.decode(errors="replace")).strip().splitlines()[-_LINES:]
        raise ProvisionError(
            f"Phase {step.phase!r} failed with code {done.returncode}: {' '.join(shown)}"
            + "".join(f"\n  | {line}" for line in last),
            hint=hint(last),
        )


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a file's lock exclusively, among all processes of this machine."""
    with open(private.opened(path, os.O_RDWR | os.O_CREAT), "r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def image_steps(image: Image) -> tuple[Step, ...]:
    """List what makes an image's environment on this machine."""
    from skyward.plan.bootstrap.environment_commands import environment_steps

    return environment_steps(image, sys.executable)
