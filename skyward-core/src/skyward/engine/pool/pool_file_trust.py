"""Pool files trusted by the user: one record each, by path and content."""

from __future__ import annotations

import os
import stat
import tomllib
from pathlib import Path

from skyward import private
from skyward.engine.guardian.state_folder import STATE_HINT, journal_path
from skyward.errors import ConfigError
from skyward.plan.config.pool_file_rules import fingerprint, wishes

__all__ = ["check_trust", "is_trusted", "reasons", "trust"]


def check_trust(path: Path, text: str) -> None:
    """
    Refuse a file that says what only the user may say, unless it is the user's own or was trusted as it is.

    Args:
        path: The file.
        text: What is in it.

    Raises:
        ConfigError: If it is not trusted; says what it wants, and what to type.
    """
    why = reasons(path, text)
    if why and not is_trusted(path, text):
        raise ConfigError(
            f"{path} is not trusted, and wants what only you may say: {'; '.join(why)}.",
            hint=f"Look at it, and if it may: sky trust {path}",
        )


def reasons(path: Path, text: str) -> tuple[str, ...]:
    """
    Return what of a file needs trust; nothing where none is needed.

    Args:
        path: The file.
        text: What is in it.
    """
    facts = path.stat()
    if facts.st_uid not in (os.geteuid(), 0):
        return (f"all that is in it, because it belongs to user {facts.st_uid}",)
    if facts.st_mode & stat.S_IWOTH:
        return ("all that is in it, because every user can write to it",)
    if path.resolve() in own_files() or own_settings() in path.resolve().parents:
        return ()
    try:
        return wishes(tomllib.loads(text))
    except tomllib.TOMLDecodeError:
        # A file that is not TOML is refused by its reader.
        return ()


def own_files() -> tuple[Path, ...]:
    """Return the files that are the user's own word wherever a program runs: in the home, or among its settings."""
    return (_home() / "skyward.toml").resolve(), (own_settings() / "skyward.toml").resolve()


def own_settings() -> Path:
    """Return the folder of the user's own settings, whose files may extend each other."""
    return (Path(os.environ.get("XDG_CONFIG_HOME") or _home() / ".config") / "skyward").resolve()


def _home() -> Path:
    # Unlike `Path.home`, it does not fail for a user without a home.
    return Path(os.path.expanduser("~"))


def is_trusted(path: Path, text: str) -> bool:
    """
    Return whether the user trusts a file with this content at this place.

    Args:
        path: The file.
        text: What is in it.

    Raises:
        ConfigError: If another user could have written that down.
    """
    record = _record(path, text)
    if not record.is_file():
        return False
    private.directory(record.parent, hint=STATE_HINT)
    return True


def trust(path: Path, text: str) -> None:
    """
    Write down that the user trusts a file as it is now.

    Args:
        path: The file.
        text: What is in it.

    Raises:
        ConfigError: If that cannot be written down.
    """
    record = _record(path, text)
    try:
        private.directory(record.parent, hint=STATE_HINT)
        descriptor = private.opened(record, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(f"{path.resolve()}\n")
    except OSError as error:
        raise ConfigError(f"{record} cannot be written: {error}.", hint=STATE_HINT) from error


def _record(path: Path, text: str) -> Path:
    return journal_path().with_name("trusted") / fingerprint(str(path.resolve()), text.encode())
