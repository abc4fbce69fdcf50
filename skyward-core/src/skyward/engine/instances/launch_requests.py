"""Send launch requests, and find their instances where the answer is lost."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from skyward.errors import (
    BudgetExceededError,
    CapacityError,
    ConfigError,
    CredentialsError,
    PluginError,
    QuotaError,
    SkywardError,
)
from skyward.model.instances.machine import Instance, InstanceState, LaunchRequest
from skyward.plan.instances.instance_events import (
    Assign,
    LaunchAnswered,
    LaunchRefused,
    LaunchRequested,
    LaunchUnanswered,
    Surplus,
)

if TYPE_CHECKING:
    from skyward.engine.guardian.durable_records import Records
    from skyward.engine.instances.meter import Meter
    from skyward.engine.instances.pool_instances import PoolInstances
    from skyward.engine.instances.provider_handle import ProviderHandle
    from skyward.engine.instances.regions import Regions

_log = logging.getLogger(__name__)

LOOKS = (0.5, 2.0, 5.0)
"""Seconds between the looks for what a launch rented whose answer was lost; lists lag behind."""

_REFUSED = (BudgetExceededError, CapacityError, QuotaError, CredentialsError, ConfigError)
"""Errors that say for certain that nothing was rented."""


class LaunchRequests:
    """
    Send the launch requests of one pool to one cloud: the source of what the table learns of launches.

    Args:
        provider: The provider.
        instances: Takes what is asked for, and what comes of it.
        regions: Lists the pool's instances.
        records: Let journal and guardian know.
        meter: Keeps the budget.
        timeout: Seconds for one answer.
    """

    def __init__(
        self,
        provider: ProviderHandle,
        instances: PoolInstances,
        regions: Regions,
        records: Records,
        meter: Meter,
        *,
        timeout: float,
    ) -> None:
        self._provider = provider
        self._instances = instances
        self._regions = regions
        self._records = records
        self._meter = meter
        self._timeout = timeout

    async def send(self, request: LaunchRequest, infra: Any, rate: float) -> list[Instance]:
        """
        Launch instances, and return those that nodes get; a lost answer is looked for, and asked for once more.

        Args:
            request: What is asked for.
            infra: What the instances share.
            rate: What one costs, in USD an hour.

        Raises:
            SkywardError: If none was launched.
        """
        token, now = request.token, self._instances.now
        cloud, nodes = request.cluster.pool_id, tuple(request.nodes)
        self._instances.send(LaunchRequested(token=token, cloud=cloud, nodes=nodes, rate=rate, at=now()))
        call = partial(self._provider.call, "skyward_launch", request=request, infra=infra, timeout=self._timeout)
        try:
            with self._meter.renting(self._provider.name, len(nodes), rate):
                try:
                    answer: Sequence[Instance] = await call()
                except _REFUSED:
                    raise
                except SkywardError as error:
                    _log.warning("launch.unanswered provider=%s token=%s: %s", self._provider.name, token, error)
                    answer = await self._found(request)
                    if not answer:
                        if isinstance(error, PluginError) and not isinstance(error.__cause__, OSError | TimeoutError):
                            raise
                        # The same token rents nothing twice, so that the second answer tells for certain.
                        answer = await call()
        except _REFUSED:
            self._records.answered(token)
            self._instances.send(LaunchRefused(token=token, at=now()))
            raise
        except BaseException:
            self._records.unanswered()
            self._instances.send(LaunchUnanswered(token=token, at=now()))
            raise
        self._records.answered(token, (one.id for one in answer))
        rented = tuple(self._regions.own(answer))
        commands = self._instances.send(LaunchAnswered(token=token, instances=rented, at=now()))
        return [command.instance for command in commands if isinstance(command, Assign | Surplus)]

    async def _found(self, request: LaunchRequest) -> list[Instance]:
        """Return the instances of a request that lists show."""
        for pause in LOOKS:
            await asyncio.sleep(pause * random.uniform(0.8, 1.2))
            try:
                listed = await self._regions.listed()
            except SkywardError as error:
                _log.warning("instances.failed provider=%s: %s", self._provider.name, error)
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
