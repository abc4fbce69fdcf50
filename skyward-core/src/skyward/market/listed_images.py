"""
The machine images of ours that there are, read from the clouds alone, and how they are deleted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from skyward.engine.instances.provider_handle import ProviderHandle
from skyward.errors import SkywardError
from skyward.market.asking import Answers, ask_all, tell_each
from skyward.market.query_answer import answer
from skyward.model.instances.machine_image import MachineImage

__all__ = ["delete", "look", "machine_images"]


def machine_images(providers: Any = None) -> Any:
    """
    List every machine image that was made of machines of ours, whichever pool, client or person had it made.

    Where an event loop runs, what is returned may be awaited.

    Args:
        providers: A provider or several; without any, those of the nearest `skyward.toml` and all that are installed
            and can be made without arguments.

    Returns:
        The images. A provider that cannot be asked is left out with a warning in the log, and one that was not named
        and for which there are no credentials without any.

    Raises:
        ConfigError: If one of them is no provider.
        AllProvidersFailedError: If none of them can be asked.

    >>> import skyward as sky
    >>> sky.machine_images(sky.Local())
    []
    """

    async def listed() -> list[MachineImage]:
        return (await look(providers)).with_warnings("machine images")

    return answer(listed)


async def look(providers: Any = None, *, only: Collection[str] = ()) -> Answers[MachineImage]:
    """
    Ask providers, side by side, for the machine images of ours that they keep.

    Args:
        providers: As for `machine_images`.
        only: The names of those that are asked; none for all of them.

    Raises:
        ConfigError: If one of them is no provider.
    """
    return await ask_all("skyward_machine_images", providers, only=only, cluster=None)


async def delete(found: Iterable[tuple[ProviderHandle, MachineImage]]) -> dict[str, SkywardError]:
    """
    Delete machine images, and return when the clouds have confirmed it.

    Args:
        found: The images, each with the provider that lists it.

    Returns:
        Why providers could not delete theirs, by name; what they have may go on costing money.
    """
    return await tell_each("skyward_delete_machine_images", "images", found)
