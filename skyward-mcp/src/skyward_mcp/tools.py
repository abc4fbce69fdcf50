"""The tools that an agent sees, with what they say of themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any, Literal, TypeVar

import anyio
from attrs import frozen
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.types import ToolAnnotations
from pydantic import ConfigDict, Field

from skyward import __version__
from skyward.errors import SkywardError
from skyward.market.repository import offers
from skyward_mcp.order import Order
from skyward_mcp.session import Session
from skyward_mcp.started import On, Script

__all__ = ["server_of"]

T = TypeVar("T")

INSTRUCTIONS = """
Rent machines from clouds and run Python scripts on them, within a budget that the user has set.
Ask offers for what there is and at which price; start opens a pool of machines and runs a script there, and returns at
once; logs shows what is printed and what happens, status what it costs and the scripts' exit codes; end terminates it.
A pool ends by itself when its scripts have ended, unless keep is said, and with this server.
What a script makes is gone with its machine: have it print the results, or write them to an object store.
""".strip()

Pool = Annotated[str, Field(description="Name of the pool, as start gave it.")]
Budget = Annotated[
    float | None,
    Field(description="USD that the pool may cost at most; all that is left of the server's budget if left out."),
]
Words = Annotated[Sequence[str], Field(description="Arguments of the script.")]
Variables = Annotated[dict[str, str] | None, Field(description="Environment variables of the script.")]
Place = Annotated[On, Field(description="Run the script on the first node, or on each.")]
Market = Literal["spot", "on_demand"]


@frozen
class Tools:
    """
    Answer what an agent asks for; each method is a tool.

    Args:
        session: What was started.
    """

    session: Session

    async def offers(
        self,
        *,
        accelerator: Annotated[str | None, Field(description='Such as "H100" or "A100:8".')] = None,
        provider: Annotated[str | None, Field(description="Only this provider.")] = None,
        region: Annotated[str | None, Field(description="Only this region.")] = None,
        vcpus: Annotated[float | None, Field(description="Virtual CPUs at least.")] = None,
        memory_gb: Annotated[float | None, Field(description="Main memory at least, in GB.")] = None,
        max_price: Annotated[float | None, Field(description="USD an hour at most.")] = None,
        market: Annotated[Market | None, Field(description="Only what is sold in this way.")] = None,
        limit: Annotated[int, Field(ge=1, le=200, description="How many, the cheapest first.")] = 20,
    ) -> dict[str, Any]:
        """List what machines providers sell now, and at which price in USD an hour; rents nothing."""

        def found() -> dict[str, Any]:
            sellers = offers()
            query = sellers.select()
            asked: dict[str, Any] = {
                "accelerator": accelerator,
                "provider": provider,
                "region": region,
                "vcpus": vcpus,
                "memory": memory_gb,
                "max_price": max_price,
            }
            if market is not None:
                query = query.spot() if market == "spot" else query.on_demand()
            for step, value in asked.items():
                if value is not None:
                    query = getattr(query, step)(value)
            # Without accelerators if none is asked for: that is what start would rent, too.
            rows = (query if accelerator is not None else query.cpu_only()).limit(limit).all()
            return {
                "offers": [_row(offer) for offer in rows],
                "failures": {name: str(error) for name, error in sellers.failures.items()},
            }

        return await _in_thread(found)

    async def start(
        self,
        *,
        script: Annotated[
            str | None, Field(description="A Python program that is run there. Left out, the pool waits for run.")
        ] = None,
        args: Words = (),
        env: Variables = None,
        on: Place = "head",
        name: Annotated[str, Field(description="What the pool's name begins with.")] = "agent",
        budget: Budget = None,
        pool: Annotated[
            str | None, Field(description="A pool of the user's skyward.toml, instead of provider and all below it.")
        ] = None,
        provider: Annotated[str | None, Field(description="Whose machines, as offers names it.")] = None,
        accelerator: Annotated[str | None, Field(description='Such as "A100:8", for each machine.')] = None,
        nodes: Annotated[int | None, Field(ge=1, description="How many machines; 1 if left out.")] = None,
        vcpus: Annotated[float | None, Field(description="Virtual CPUs of each at least.")] = None,
        memory_gb: Annotated[float | None, Field(description="Main memory of each at least, in GB.")] = None,
        machine: Annotated[str | None, Field(description="The instance_type of an offer.")] = None,
        region: Annotated[str | None, Field(description="Only this region.")] = None,
        allocation: Annotated[
            str | None, Field(description='"on-demand", "always-spot", "spot-if-available" or "cheapest".')
        ] = None,
        max_hourly_cost: Annotated[float | None, Field(description="USD an hour for each machine at most.")] = None,
        timeout: Annotated[float | None, Field(description="Seconds after which machines end in any case.")] = None,
        pip: Annotated[Sequence[str], Field(description="Packages that the script needs.")] = (),
        keep: Annotated[bool, Field(description="Keep the machines when the scripts have ended.")] = False,
        lease: Annotated[
            float | None,
            Field(description="Seconds that the pool goes on if this server ends; the user must have allowed it."),
        ] = None,
    ) -> dict[str, Any]:
        """Rent machines within the budget and run a script on them; returns at once with the pool's name."""
        order = Order(
            pool=pool,
            provider=provider,
            accelerator=accelerator,
            nodes=nodes,
            vcpus=vcpus,
            memory_gb=memory_gb,
            machine=machine,
            region=region,
            allocation=allocation,
            max_hourly_cost=max_hourly_cost,
            timeout=timeout,
            pip=tuple(pip),
        )
        first = None if script is None else Script(source=script, words=args, variables=env or {}, on=on)
        asked = partial(self.session.start, order, first, name=name, budget=budget, lease=lease, keep=keep)
        return await _in_thread(asked)

    async def run(
        self,
        *,
        pool: Pool,
        script: Annotated[str, Field(description="A Python program.")],
        args: Words = (),
        env: Variables = None,
        on: Place = "head",
    ) -> dict[str, Any]:
        """Run one more script on a pool that is open; returns at once."""

        def ran() -> dict[str, Any]:
            started = self.session.get(pool)
            started.run(Script(source=script, words=args, variables=env or {}, on=on))
            return started.said()

        return await _in_thread(ran)

    async def logs(
        self,
        *,
        pool: Pool,
        after: Annotated[
            int, Field(description="How many lines are known already, as next says; -50 means the last 50.")
        ] = 0,
        limit: Annotated[int, Field(ge=1, le=2000, description="How many lines at most.")] = 200,
        wait: Annotated[float, Field(ge=0, le=60, description="Seconds to wait where there is no new line.")] = 0.0,
    ) -> dict[str, Any]:
        """Show what the nodes of a pool print, and what happens to it."""

        def shown() -> dict[str, Any]:
            started = self.session.get(pool)
            page = started.lines.page(after=after, most=limit, wait=wait)
            return {
                "pool": pool,
                "state": started.state,
                "lines": list(page.lines),
                "next": page.next,
                "dropped": page.dropped,
            }

        return await _in_thread(shown)

    async def status(self, pool: Annotated[str | None, Field(description="Only this pool.")] = None) -> dict[str, Any]:
        """Show what is left of the budget, and what each pool of this server does, costs and gave."""
        if pool is None:
            return await _in_thread(self.session.status)
        return await _in_thread(lambda: self.session.get(pool).said())

    async def end(self, pool: Pool) -> dict[str, Any]:
        """Terminate a pool of this server with all that it runs, and show what it has cost."""
        return await _in_thread(lambda: self.session.end(pool))


def server_of(session: Session) -> MCPServer[Any]:
    """
    Return a server with the tools of a session.

    Args:
        session: What it starts.
    """
    tools, reads = Tools(session), ToolAnnotations(read_only_hint=True, open_world_hint=True)
    acts = ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=True)
    return MCPServer(
        "skyward",
        instructions=INSTRUCTIONS,
        version=__version__,
        log_level="WARNING",
        tools=[
            _tool(tools.offers, reads),
            _tool(tools.start, acts),
            _tool(tools.run, acts),
            _tool(tools.logs, reads),
            _tool(tools.status, reads),
            _tool(tools.end, acts),
        ],
    )


def _tool(method: Callable[..., Any], annotations: ToolAnnotations) -> Tool:
    """Return a method as a tool that refuses arguments which it does not have."""
    tool = Tool.from_function(method, annotations=annotations, structured_output=True)
    model = tool.fn_metadata.arg_model
    model.model_config = ConfigDict(**{**model.model_config, "extra": "forbid"})
    model.model_rebuild(force=True)
    tool.parameters = model.model_json_schema(by_alias=True)
    return tool


async def _in_thread(work: Callable[[], T]) -> T:
    """
    Do what waits in a thread, which is not waited for where the server ends meanwhile.

    Raises:
        ToolError: If it fails; the SDK tells an agent no more of other errors than that there was one.
    """
    try:
        return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
    except (SkywardError, OSError) as error:
        raise ToolError(str(error)) from error


def _row(offer: Any) -> dict[str, Any]:
    """Return an offer as plain values, without what is not known."""
    facts = {
        "provider": offer.provider,
        "instance_type": offer.instance_type,
        "region": offer.region,
        "zone": offer.zone,
        "accelerators": offer.accelerators,
        "vcpus": offer.vcpus,
        "memory_gb": offer.memory_gb,
        "spot_price": offer.spot_price,
        "on_demand_price": offer.on_demand_price,
    }
    return {**{name: value for name, value in facts.items() if value is not None}, "available": offer.available}
