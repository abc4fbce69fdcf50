"""
The file that named pools are read from.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from skyward.engine.pool.pool_file_trust import check_trust, own_files
from skyward.errors import ConfigError
from skyward.plan.config.named_pools import NamedPool, load_named, pool_names

__all__ = ["find_pool_file", "providers_of_file", "read_named", "read_pool_file"]

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


def read_named(
    name: str,
    *,
    provider_of: Callable[[str], Callable[..., Any]],
    plugin_of: Callable[[str], Callable[..., Any]] | None = None,
    start: Path | None = None,
) -> NamedPool:
    """
    Return what the nearest `skyward.toml` says about the pool of a name.

    Args:
        name: Name of the pool.
        provider_of: Called with the name of a provider; returns what makes one.
        plugin_of: The same for plugins.
        start: Folder to look in, and then in those above it; the current one by default.

    Raises:
        ConfigError: If there is no such file, it cannot be read, it says what only a file may say that the user
            trusts, or it does not describe the pool.
    """
    path = find_pool_file(start)
    if path is None:
        raise ConfigError(
            f"There is no {FILE_NAME} in {(start or Path.cwd()).absolute()} or above it.",
            hint=f"name={name!r} is for a pool described there, under [pools.{name}].",
        )
    text = _text(path)
    check_trust(path, text)
    return load_named(name, text, provider_of=provider_of, plugin_of=plugin_of, file=str(path))


def providers_of_file(
    *,
    provider_of: Callable[[str], Callable[..., Any]],
    plugin_of: Callable[[str], Callable[..., Any]] | None = None,
    start: Path | None = None,
) -> list[Any]:
    """
    Return the providers of all pools in the nearest `skyward.toml`; none where there is no such file.

    Args:
        provider_of: Called with the name of a provider; returns what makes one.
        plugin_of: The same for plugins.
        start: Folder to look in, and then in those above it; the current one by default.

    Raises:
        ConfigError: If the file cannot be read, says what only a file may say that the user trusts, or does not
            describe its pools.
    """
    path = find_pool_file(start)
    if path is None:
        return []
    text = _text(path)
    check_trust(path, text)
    found: list[Any] = []
    for name in pool_names(text, str(path)):
        pool = load_named(name, text, provider_of=provider_of, plugin_of=plugin_of, file=str(path))
        given = pool.keywords.get("provider")
        found += given if isinstance(given, list) else [given]
    return [provider for provider in found if provider is not None]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}.") from error
