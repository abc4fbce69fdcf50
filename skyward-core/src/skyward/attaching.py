"""
`sky.attach`: a pool that was detached, gone on with.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from attrs import evolve

from skyward.errors import ConfigError
from skyward.model.fields.log_config import LogConfig
from skyward.model.spec.options import ConsoleLike
from skyward.plan.config.request import Request
from skyward.plan.instances.detached_pool import choose_detached
from skyward.plan.instances.lingering import linger_cost
from skyward.pool import Pool

__all__ = ["attach"]

_LEAST = 1e-6


def attach(
    name: str,
    *,
    console: ConsoleLike = True,
    logging: bool | LogConfig = True,
    on_event: Callable[[Any], object] | None = None,
) -> Pool:
    """
    Return a pool that was detached by this user on this computer; entering it takes its nodes over.

    It has the nodes that answer, what their calls print from now on and have printed meanwhile, and takes new calls.
    Leaving its block waits for what is under way, and terminates its machines, unless it is detached again.

    Args:
        name: The pool's id, or its name.
        console: What is shown, as for `sky.Compute`.
        logging: Where Skyward's own log goes.
        on_event: Called with each event, in a thread of its own.

    Raises:
        ConfigError: If there is no such pool, or its lease has ended; on entering it, if another client has it.

    >>> import skyward as sky
    >>> sky.attach("train")
    Traceback (most recent call last):
    ...
    skyward.errors.ConfigError: No pool 'train' is detached. It may be attached elsewhere, ended, or of another user ...
    """
    # Late, because few programs attach.
    from skyward.engine.instances.detached_records import DETACHED
    from skyward.engine.instances.owner_lock import owner_lives

    about = choose_detached(DETACHED.heads(), name, now=time.time())
    if about.owned and owner_lives(about.pool_id):
        raise ConfigError(
            f"The pool {name!r} has a client, which lives.",
            pool=name,
            hint="It may be attached once that has died, or has left it by pool.detach().",
        )
    left = DETACHED.read(about)
    if left is None:
        raise ConfigError(
            f"What is known of the detached pool {name!r} cannot be read.",
            pool=name,
            hint=f"The log says why. Its machines end by themselves; to end them now: sky down {about.pool_id}",
        )
    # What has been paid since then is no part of the attached pool's own cost.
    spent = linger_cost(about.hourly_rate, time.time() - about.since)
    budget = None if left.options.budget is None else max(_LEAST, left.options.budget - spent)
    options = evolve(left.options, console=console, logging=logging, on_event=on_event, budget=budget)
    return Pool.of(Request(specs=(left.whole_spec(),), options=options, name=about.pool_name, detached=about))
