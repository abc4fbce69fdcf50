"""
The file that named pools are read from.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from skyward.errors import ConfigError
from skyward.plan.named import NamedPool, load_named, pool_names

__all__ = ["find_pool_file", "providers_of_file", "read_named"]

FILE_NAME = "skyward.toml"


def find_pool_file(start: Path | None = None) -> Path | None:
    """
    Return the nearest `skyward.toml`, or None where there is none.

    Args:
        start: Folder to look in, and then in those above it; the current one by default.
    """
    folder = (start or Path.cwd()).absolute()
    return next((path for path in (above / FILE_NAME for above in (folder, *folder.parents)) if path.is_file()), None)


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
        ConfigError: If there is no such file, it cannot be read, or it does not describe the pool.
    """
    path = find_pool_file(start)
    if path is None:
        raise ConfigError(
            f"There is no {FILE_NAME} in {(start or Path.cwd()).absolute()} or above it.",
            hint=f"name={name!r} is for a pool described there, under [pools.{name}].",
        )
    return load_named(name, _text(path), provider_of=provider_of, plugin_of=plugin_of, file=str(path))


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
        ConfigError: If the file cannot be read, or does not describe its pools.
    """
    path = find_pool_file(start)
    if path is None:
        return []
    text = _text(path)
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
