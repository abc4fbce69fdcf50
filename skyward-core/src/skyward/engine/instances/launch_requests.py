"""Ask for machines, and find what came of it where the answer is lost."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Sequence
from typing import Any

from skyward.engine.instances.provider_handle import ProviderHandle
from skyward.engine.instances.regions import Regions
from skyward.errors import CapacityError, ConfigError, CredentialsError, PluginError, QuotaError, SkywardError
from skyward.model.instances.machine import Instance, InstanceState, LaunchRequest

_log = logging.getLogger(__name__)

LOOKS = (0.5, 2.0, 5.0)
"""Seconds between the looks for what a launch rented whose answer was lost; lists lag behind."""


async def rent(
    provider: ProviderHandle, regions: Regions, request: LaunchRequest, infra: Any, *, timeout: float
) -> Sequence[Instance]:
    """
    Have machines rented; where the answer is lost, look for what came of it, and ask once more.

    Args:
        provider: Who is asked.
        regions: Lists the pool's machines.
        request: What is asked for.
        infra: What the machines share.
        timeout: Seconds for one answer.

    Raises:
        SkywardError: If none was rented.
    """

    async def launched() -> Sequence[Instance]:
        answer: Sequence[Instance] = await provider.call(
            "skyward_launch", request=request, infra=infra, timeout=timeout
        )
        return answer

    try:
        return await launched()
    except (CapacityError, QuotaError, CredentialsError, ConfigError):
        raise
    except SkywardError as error:
        _log.warning("launch.unanswered provider=%s token=%s: %s", provider.name, request.token, error)
        found = await _found(provider, regions, request)
        if found:
            return found
        if isinstance(error, PluginError) and not isinstance(error.__cause__, OSError | TimeoutError):
            raise
        # The same token rents nothing twice, so that the second answer tells for certain.
        return await launched()


async def _found(provider: ProviderHandle, regions: Regions, request: LaunchRequest) -> list[Instance]:
    for pause in LOOKS:
        await asyncio.sleep(pause * random.uniform(0.8, 1.2))
        try:
            listed = await regions.listed()
        except SkywardError as error:
            _log.warning("instances.failed provider=%s: %s", provider.name, error)
            continue
        found = {
            one.node: one
            for one in listed
            if one.tags is not None
            and one.tags.token == request.token
            and one.state in (InstanceState.PENDING, InstanceState.RUNNING)
        }
        if found:
            return list(found.values())
    return []
