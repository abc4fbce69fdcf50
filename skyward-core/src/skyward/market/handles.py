"""
Which providers are asked: those that the user names, or all that can be made without saying anything.
"""

from __future__ import annotations

import logging
from typing import Any

from skyward.engine.instances.provider_handle import ProviderHandle
from skyward.errors import ConfigError, SkywardError
from skyward.market.source import without_arguments
from skyward.model.fields.setting import nearest
from skyward.registry import providers as installed_providers

__all__ = ["given_handles", "installed_handles"]

_log = logging.getLogger(__name__)


def given_handles(providers: Any) -> list[ProviderHandle]:
    """
    Return the providers that the user names.

    Args:
        providers: One, or several.

    Raises:
        ConfigError: If there is none, or one of them is no provider.
    """
    given = list(providers) if isinstance(providers, (list, tuple, set, frozenset)) else [providers]
    if not given:
        raise ConfigError("providers is empty.", hint="Leave it out for all that are installed.")
    return [ProviderHandle(_checked(provider)) for provider in given]


def installed_handles() -> tuple[list[ProviderHandle], dict[str, SkywardError]]:
    """Return the installed providers that need no arguments, and why some of them can't be made."""
    handles, failures = [], {}
    for name, factory in installed_providers().items():
        if not without_arguments(factory):
            continue
        try:
            handles.append(ProviderHandle(factory()))
        except SkywardError as error:
            failures[name] = error
            _log.warning("provider.failed provider=%s reason=%s", name, error)
    return handles, failures


def _checked(provider: object) -> object:
    """Return what may be a provider, refusing what is usually written by mistake."""
    if isinstance(provider, type):
        raise ConfigError(f"{provider.__name__} makes a provider when it is called.", hint="Write it with brackets.")
    if isinstance(provider, (str, bytes, int, float, dict, type(None))):
        meant = nearest(provider, installed_providers())
        hint = f"Write sky.{meant}()." if meant else f"Installed are {', '.join(installed_providers())}."
        raise ConfigError(f"providers must be a list of providers, not {provider!r}.", hint=hint)
    return provider
