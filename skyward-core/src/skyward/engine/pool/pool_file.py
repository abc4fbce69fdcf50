"""
The files that named pools are read from.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from skyward.engine.pool.kept_texts import look_up
from skyward.engine.pool.pool_file_trust import check_trust, own_files
from skyward.errors import ConfigError
from skyward.plan.config.config_document import Config, Layer, config_of
from skyward.plan.config.config_tree import Problem, parsed, refusal
from skyward.plan.config.named_pools import load_named, providers_named
from skyward.plan.config.request import NamedPool

__all__ = ["find_pool_file", "providers_of_file", "read_config", "read_named", "read_pool_file"]

FILE_NAME = "skyward.toml"


def find_pool_file(start: Path | None = None) -> Path | None:
    """
    Return the nearest `skyward.toml`, or None where there is none.

    Args:
        start: Folder to look in, and then in those above it; the current one by default. Where none has one, the file
            among the user's own settings counts.
    """
    folder = (start or Path.cwd()).absolute()
    above = (each / FILE_NAME for each in (folder, *folder.parents))
    return next((path for path in (*above, *own_files()) if path.is_file()), None)


def read_pool_file(path: str | None = None) -> tuple[Path, str]:
    """
    Return a file that describes pools and what is in it, whether it is trusted or not.

    Args:
        path: The file; None is the nearest one.

    Raises:
        ConfigError: If there is none, or it cannot be read.
    """
    found = find_pool_file() if path is None else Path(path).absolute()
    if found is None:
        raise ConfigError(f"There is no {FILE_NAME} in {Path.cwd()} or above it.")
    return found, _text(found)


def read_config(start: Path | None = None, *, file: str | None = None, trusted: bool = True) -> Config | None:
    """
    Return what all configuration files say together: the nearest one, and below it those of the user's own settings.

    Args:
        start: Folder to look in, and then in those above it; the current one by default.
        file: The file that counts instead of the nearest one.
        trusted: Whether to refuse a file that says what only one may say that the user trusts.

    Returns:
        None where there is no file.

    Raises:
        ConfigError: If a file cannot be read, is no TOML, or is not trusted, or files extend each other in a circle.
    """
    nearest = find_pool_file(start) if file is None else Path(file).absolute()
    if nearest is None:
        return None
    layers: dict[Path, Layer] = {}
    for path in (nearest, *(own for own in own_files() if own.is_file())):
        for found, layer in _chain(path, (), trusted=trusted):
            layers.setdefault(found, layer)
    return config_of(list(layers.values()))


def read_named(
    name: str,
    *,
    provider_of: Callable[[str], Callable[..., Any]],
    plugin_of: Callable[[str], Callable[..., Any]] | None = None,
    start: Path | None = None,
) -> NamedPool:
    """
    Return what configuration files say about the pool of a name.

    Args:
        name: Name of the pool.
        provider_of: Called with the name of a provider; returns what makes one.
        plugin_of: The same for plugins.
        start: Folder to look in, and then in those above it; the current one by default.

    Raises:
        ConfigError: If there is no such file, it cannot be read, it says what only a file may say that the user
            trusts, or it does not describe the pool.
    """
    config = read_config(start)
    if config is None:
        raise ConfigError(
            f"There is no {FILE_NAME} in {(start or Path.cwd()).absolute()} or above it.",
            hint=f"name={name!r} is for a pool described there, under [pools.{name}].",
        )
    return load_named(name, config, provider_of=provider_of, plugin_of=plugin_of, look_up=look_up)


def providers_of_file(
    *,
    provider_of: Callable[[str], Callable[..., Any]],
    plugin_of: Callable[[str], Callable[..., Any]] | None = None,
    start: Path | None = None,
) -> list[Any]:
    """
    Return the providers that configuration files name; none where there is no such file.

    Args:
        provider_of: Called with the name of a provider; returns what makes one.
        plugin_of: The same for plugins.
        start: Folder to look in, and then in those above it; the current one by default.

    Raises:
        ConfigError: If a file cannot be read, says what only a file may say that the user trusts, or a provider in it
            cannot be made.
    """
    config = read_config(start)
    if config is None:
        return []
    return providers_named(config, provider_of=provider_of, plugin_of=plugin_of, look_up=look_up)


def _chain(path: Path, above: tuple[Path, ...], *, trusted: bool) -> Iterator[tuple[Path, Layer]]:
    """Read a file, and after it those that it extends."""
    text = _text(path)
    if trusted:
        check_trust(path, text)
    document = parsed(text, str(path))
    yield path.resolve(), Layer(str(path), text, document)
    base = document.get("extends")
    if base is None:
        return

    def refused(message: str, hint: str | None = None) -> ConfigError:
        return refusal([Problem(str(path), ("extends",), message, hint)], {str(path): text})

    if not isinstance(base, str):
        raise refused(f"extends must be the path of a file, not {base!r}.")
    lower = Path(os.path.normpath(path.parent / os.path.expanduser(base)))
    chain = (*above, path)
    if any(lower.resolve() == each.resolve() for each in chain):
        raise refused(f"The files extend each other in a circle: {' extends '.join(map(str, (*chain, lower)))}.")
    if not lower.is_file():
        raise refused(f"There is no file {lower} to extend.", "A path is relative to the folder of its file.")
    yield from _chain(lower, chain, trusted=trusted)


def _text(path: Path) -> str:
    try:
        # Some editors begin a file with a byte order mark, which is no TOML.
        return path.read_text(encoding="utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        place = error.object[: error.start]
        line, column = place.count(b"\n") + 1, error.start - (place.rfind(b"\n") + 1) + 1
        raise ConfigError(f"{path} cannot be read: line {line}, column {column} is no text in UTF-8.") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from error
