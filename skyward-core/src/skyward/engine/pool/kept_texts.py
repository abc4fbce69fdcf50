"""What references of a configuration file refer to: variables, files and keyrings, read when a value is needed."""

from __future__ import annotations

import os
import stat
import threading
from importlib import import_module
from pathlib import Path
from typing import Any

from skyward.errors import ConfigError
from skyward.plain import conceal
from skyward.plan.config.references import Reference

__all__ = ["KEYRING_TIMEOUT", "look_up"]

KEYRING_TIMEOUT = 60.0
"""Seconds for a keyring to answer, in which its user may have to unlock it."""

_NO_SECRETS = frozenset("HOME HOSTNAME LANG LOGNAME PWD SHELL TMPDIR USER".split())
"""Variables that every program has, and whose text is part of most paths."""

_LONGEST = 65_536
"""Bytes of a file that is referred to; a key has fewer."""


def look_up(reference: Reference, file: str) -> str:
    """
    Return what a reference refers to; errors and logs hide it from then on.

    Args:
        reference: The reference.
        file: The configuration file that it is in; paths are relative to its folder.

    Raises:
        ConfigError: If there is nothing there.
    """
    match reference.kind:
        case "variable":
            text = os.environ.get(reference.name, reference.default)
            if text is None:
                raise ConfigError(
                    f"The environment variable {reference.name} is not set.",
                    hint=f'Set it, or write "${{{reference.name}:-default}}".',
                )
            if reference.name not in os.environ or reference.name in _NO_SECRETS:
                return text
        case "file":
            text = _file(reference, Path(file).parent)
        case "keyring":
            text = _keyring(reference)
    conceal(text)
    return text


def _file(reference: Reference, folder: Path) -> str:
    path = folder / os.path.expanduser(reference.name)
    try:
        # A named pipe would block, and a device never end.
        if not stat.S_ISREG(path.stat().st_mode):
            raise ConfigError(f"{reference} refers to {path}, which is no file.")
        with path.open("rb") as stream:
            content = stream.read(_LONGEST + 1)
        if len(content) > _LONGEST:
            raise ConfigError(f"{reference} refers to {path}, which has more than {_LONGEST} bytes.")
        return content.decode().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise ConfigError(f"{reference} refers to {path}, which cannot be read: {why}.") from None


def _keyring(reference: Reference) -> str:
    try:
        # No dependency, and without types of its own where it is not installed.
        keyring: Any = import_module("keyring")
    except ImportError:
        raise ConfigError(
            f"{reference} needs the library keyring, which is not installed.", hint="Type: pip install keyring"
        ) from None
    service, _, user = reference.name.rpartition("/")
    answers: list[str | Exception | None] = []

    def ask() -> None:
        try:
            answers.append(keyring.get_password(service, user))
        except Exception as error:
            answers.append(error)

    # In a thread, because a keyring that asks to be unlocked has no time limit.
    thread = threading.Thread(target=ask, name="skyward-keyring", daemon=True)
    thread.start()
    thread.join(KEYRING_TIMEOUT)
    match answers:
        case [str(text)]:
            return text
        case [None]:
            raise ConfigError(
                f"The keyring has no password of {user!r} for {service!r}.", hint=f"Type: keyring set {service} {user}"
            )
        case [Exception() as error]:
            raise ConfigError(f"The keyring cannot be asked: {type(error).__name__}: {error}")
    raise ConfigError(f"The keyring did not answer within {KEYRING_TIMEOUT:g} s.", hint="Unlock it, and try again.")
