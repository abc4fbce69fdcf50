"""
Steps that a plugin adds to making a node ready.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal, TypeAlias

from attrs import field, frozen

from skyward.errors import ConfigError
from skyward.model.fields.pip_index import index_url
from skyward.model.fields.setting import choice, texts
from skyward.plain import redacted

__all__ = ["AptInstall", "Op", "OpLike", "PipInstall", "Scope", "Shell", "op"]

Scope = Literal["machine", "environment"]
"""What a step changes: the machine, or only the directory of the node's environment."""


def _command(value: str) -> str:
    """Return a command of one or more lines, checked."""
    given: object = value
    if not isinstance(given, str) or not given.strip() or "\0" in given:
        raise ConfigError(f"command must be text for a POSIX shell, not {value!r}.")
    return given


def _scope(value: str) -> Scope:
    """Return what a command changes, checked."""
    return "machine" if choice(value, "scope", ("machine", "environment")) == "machine" else "environment"


def _packages(value: Iterable[str]) -> tuple[str, ...]:
    """Return the packages to install, of which there has to be one."""
    packages = texts(value, "packages")
    if not packages:
        raise ConfigError("packages must name at least one package, but is empty.")
    return packages


def _system_packages(value: Iterable[str]) -> tuple[str, ...]:
    """Return the names of system packages, none of which is an option of the tool that installs them."""
    packages = _packages(value)
    for package in packages:
        if package.startswith("-") or len(package.split()) != 1:
            raise ConfigError(f"packages must be a list of package names, one each; {package!r} is none.")
    return packages


def _index(value: str | None) -> str | None:
    """Return the URL of the index to install from, checked."""
    return None if value is None else index_url(value, "index_url")


def _shown(value: object) -> str:
    """Return a repr without the passwords of URLs."""
    return redacted(repr(value))


@frozen
class Shell:
    """
    Run a command in a POSIX shell.

    The environment's `bin` is first on the path, and running the command twice must do no harm.

    Args:
        command: One or more lines; one that fails fails the bootstrap.
        scope: `"machine"`, or `"environment"` for what stays inside the node's environment.
            Only the latter run on `Local`, whose machine is the user's own.

    Raises:
        ConfigError: If the command is blank or the scope unknown.

    >>> Shell("nvidia-smi -pm 1").scope
    'machine'
    """

    command: str = field(converter=_command, repr=_shown)
    scope: Scope = field(default="machine", converter=_scope)


@frozen
class PipInstall:
    """
    Install Python packages into the node's environment, after those of the image.

    Args:
        packages: Requirements, as pip takes them.
        index_url: The index to take them from, instead of the usual one.

    Raises:
        ConfigError: If a package is no text or the URL none of an index.

    >>> PipInstall(["flash-attn"]).packages
    ('flash-attn',)
    """

    scope: ClassVar[Scope] = "environment"
    packages: tuple[str, ...] = field(converter=_packages, repr=_shown)
    index_url: str | None = field(default=None, converter=_index, repr=_shown)


@frozen
class AptInstall:
    """
    Install system packages.

    Args:
        packages: Their names.

    Raises:
        ConfigError: If one is no name of a package.

    >>> AptInstall(["libnuma1"]).scope
    'machine'
    """

    scope: ClassVar[Scope] = "machine"
    packages: tuple[str, ...] = field(converter=_system_packages)


Op: TypeAlias = Shell | PipInstall | AptInstall
OpLike: TypeAlias = Op | str


def op(value: OpLike) -> Op:
    """
    Return a step, made of a command if it is text.

    Args:
        value: A step, or what a shell is to run on the machine.

    Raises:
        ConfigError: If it is neither.

    >>> op("echo hello")
    Shell(command='echo hello', scope='machine')
    """
    if isinstance(value, str):
        return Shell(value)
    if isinstance(value, Shell | PipInstall | AptInstall):
        return value
    raise ConfigError(f"A bootstrap step must be a command or one of Shell, PipInstall and AptInstall, not {value!r}.")
