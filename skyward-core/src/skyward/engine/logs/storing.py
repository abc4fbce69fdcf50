"""A pool stores what happens to it, from before it is opened until after it was left."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from skyward.engine.logs.pool_log import NOT_STORED, PoolLog
from skyward.engine.logs.stored_log import StoredLog
from skyward.plan.logs.hidden_values import Hidden, named_secrets, secrets_in, secrets_of

if TYPE_CHECKING:
    from skyward.engine.instances.meter import Meter
    from skyward.model.spec.spec import Spec
    from skyward.plan.config.request import Request

__all__ = ["command", "storing"]


@contextlib.contextmanager
def storing(request: Request, pool_id: str, meter: Meter, left: Callable[[], bool]) -> Iterator[PoolLog]:
    """
    Store what happens to a pool inside a `with` block, unless the user turned that off.

    Args:
        request: What the user asked for.
        pool_id: The id of this use of the pool.
        meter: Has the receipt in the end.
        left: Returns whether the pool was left to another client.
    """
    if not _wanted(request):
        yield NOT_STORED
        return
    log = StoredLog(log_id(request, pool_id), _facts(request, log_id(request, pool_id)), _hidden(request))
    log.start()
    try:
        yield log
    except BaseException as error:
        log.close("failed", f"{type(error).__name__}: {error}", meter.receipt)
        raise
    log.close("detached" if left() else "ended", "", meter.receipt)


def command(request: Request, pool_id: str) -> str:
    """
    Return what to type for the stored log of a pool; empty where it has none.

    Args:
        request: What the user asked for.
        pool_id: The id of this use of the pool.
    """
    return f"sky logs {log_id(request, pool_id)}" if _wanted(request) else ""


def log_id(request: Request, pool_id: str) -> str:
    """Return the id that a pool has its log by: one that was attached goes on with its own."""
    return pool_id if request.detached is None else str(request.detached.pool_id)


def _wanted(request: Request) -> bool:
    config = request.options.log_config
    return config is not None and config.stored


def _facts(request: Request, pool_id: str) -> dict[str, Any]:
    return {
        "id": pool_id,
        "name": request.name,
        "began": time.time(),
        "provider": " or ".join(dict.fromkeys(map(_provider, request.specs))),
        "what": " or ".join(dict.fromkeys(map(_described, request.specs))),
        "host": socket.gethostname(),
        "process": os.getpid(),
    }


def _hidden(request: Request) -> Hidden:
    secrets = set(named_secrets(os.environ))
    for spec in request.specs:
        secrets |= secrets_of(spec) | secrets_in(spec.image.env)
    return Hidden(secrets)


def _provider(spec: Spec) -> str:
    return "local" if spec.provider is None else type(spec.provider).__name__.lower()


def _described(spec: Spec) -> str:
    nodes = spec.nodes
    count = str(nodes.initial) if nodes.max in (None, nodes.initial) else f"{nodes.initial} to {nodes.max}"
    kind = spec.machine or (str(spec.accelerator) if spec.accelerator is not None else "")
    noun = "node" if count == "1" else "nodes"
    return f"{count} {noun}{f' with {kind}' if kind else ''}"
