"""Where the workers of a pool are: each node is asked, and answers in time or not."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from skyward.errors import ProtocolError, SkywardError
from skyward.link.process_dump import decode_process
from skyward.model.instances.worker_stacks import ProcessStacks, Stacks

if TYPE_CHECKING:
    from skyward.engine.calls.dispatch import Dispatch
    from skyward.engine.nodes.node_shell import NodeShell

__all__ = ["STACKS_TIMEOUT", "pool_stacks"]

STACKS_TIMEOUT = 5.0
"""Seconds that a node has to answer."""

_MOST_PROCESSES = 1024


async def pool_stacks(
    shells: Iterable[NodeShell], dispatch: Dispatch, node: int | None = None, within: float = STACKS_TIMEOUT
) -> Stacks:
    """
    Ask the nodes of a pool where their workers are, all at once.

    Args:
        shells: The nodes, ready or not.
        dispatch: Knows the calls.
        node: The only node that is asked; None for all.
        within: Seconds that each has.
    """
    asked = [shell for shell in shells if shell.was_ready and not shell.leaving and node in (None, shell.index)]
    answers = await asyncio.gather(*(_ask(shell, dispatch, within) for shell in asked))
    processes = [process for answer in answers if not isinstance(answer, str) for process in answer]
    unanswered = {shell.index: answer for shell, answer in zip(asked, answers, strict=True) if isinstance(answer, str)}
    return Stacks(
        processes=tuple(sorted(processes, key=lambda process: (process.node, process.rank))), unanswered=unanswered
    )


async def _ask(shell: NodeShell, dispatch: Dispatch, within: float) -> tuple[ProcessStacks, ...] | str:
    """Return the processes of one node, or why there are none."""
    try:
        async with asyncio.timeout(within):
            answer = await shell.ask({"stacks": True})
        return _read(answer, shell, dispatch)
    except TimeoutError:
        return f"nothing came from {shell.where} within {within:g} s"
    except SkywardError as error:
        return str(error)


def _read(answer: dict[str, Any], shell: NodeShell, dispatch: Dispatch) -> tuple[ProcessStacks, ...]:
    member = dispatch.members.get(shell.seat)
    ranks = [rank for _, rank, _ in member.lanes] if member is not None else []
    dumps = answer.get("processes")
    if not isinstance(dumps, list) or len(dumps) > _MOST_PROCESSES:
        raise ProtocolError(f"Node {shell.index} answered a question for stacks with something else.")

    def function(number: int) -> str | None:
        call = dispatch.on_node(shell.seat, number)
        return None if call is None else call.function.name

    return tuple(decode_process(dump, node=shell.index, rank=ranks, function=function) for dump in dumps)
