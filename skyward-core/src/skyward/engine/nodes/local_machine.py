"""What an image asks of this machine beside an environment: system packages, and variables that a shell works out."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from skyward.errors import ProvisionError
from skyward.model.spec.image import Image
from skyward.plain import redacted
from skyward.plan.bootstrap.environment_commands import SHELL_VARS

__all__ = ["missing_packages", "shell_variables"]

_LINES = 15
_DPKG_TIMEOUT = 10.0
"""Seconds that dpkg has to answer for one package."""


def missing_packages(names: Sequence[str]) -> tuple[str, ...] | None:
    """
    Find out which system packages are not installed here.

    Args:
        names: As apt takes them, with a version behind `=` or without.

    Returns:
        Their names; None where this machine has no dpkg to ask.
    """
    dpkg = shutil.which("dpkg-query")
    if dpkg is None:
        return None
    return tuple(name for name in names if not _installed(dpkg, name))


def shell_variables(image: Image, python: Path | None, *, timeout: float) -> dict[str, str]:
    """
    Run the commands of an image's `shell_vars`, and return what each prints.

    They run in the home directory and in the image's environment, with its variables, as they do on other machines.

    Args:
        image: The image.
        python: The interpreter of the environment that was made for it; None if there is none.
        timeout: Seconds for each.

    Raises:
        ProvisionError: If one fails; the message has its command and what it wrote to its standard error.
    """
    env = {**os.environ, **image.env}
    if python is not None:
        environment = python.parent.parent
        env |= {"VIRTUAL_ENV": str(environment), "PATH": f"{python.parent}{os.pathsep}{env.get('PATH', os.defpath)}"}
    return {name: _printed(text, env, timeout) for name, text in image.shell_vars.items()}


def _installed(dpkg: str, name: str) -> bool:
    """Return whether a package is installed, in the version that is asked for if there is one."""
    bare, _, version = name.partition("=")
    wanted = f"install ok installed {version}"
    try:
        found = subprocess.run(
            [dpkg, "-W", "-f=${Status} ${Version}\n", bare],
            check=False,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=_DPKG_TIMEOUT,
        )
    except subprocess.TimeoutExpired:
        # Nothing is installed here, so a package that is reported needlessly costs a line and no more.
        return False
    return any(line == wanted if version else line.startswith(wanted) for line in found.stdout.splitlines())


def _printed(text: str, env: dict[str, str], timeout: float) -> str:
    """Return what a command prints, without the line ends behind it, as a shell takes it."""
    home = Path(os.path.expanduser("~"))
    try:
        done = subprocess.run(
            ["sh", "-c", text],
            check=False,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            env=env,
            cwd=home if home.is_dir() else os.sep,
            timeout=timeout,
        )
    except subprocess.TimeoutExpired:
        raise ProvisionError(
            f"Phase {SHELL_VARS!r} took longer than {timeout:g} s: {redacted(text)}", hint="Raise bootstrap_timeout."
        ) from None
    if done.returncode:
        last = redacted(done.stderr.decode(errors="replace")).strip().splitlines()[-_LINES:]
        raise ProvisionError(
            f"Phase {SHELL_VARS!r} failed with code {done.returncode}: {redacted(text)}"
            + "".join(f"\n  | {line}" for line in last),
            hint="\nCorrect the command in Image(shell_vars={...}).",
        )
    return os.fsdecode(done.stdout.replace(b"\0", b"").rstrip(b"\n"))
