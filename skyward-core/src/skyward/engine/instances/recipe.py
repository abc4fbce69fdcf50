"""What becomes of a machine on its way to a node."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from skyward.engine.instances.rented import Resumed
from skyward.engine.nodes.upload_rates import Uploads
from skyward.model.events import event as events
from skyward.model.spec.image import Image
from skyward.model.spec.op import Op
from skyward.ssh import probe
from skyward.ssh.visits import KeptVisit


@frozen(kw_only=True)
class Recipe:
    """
    Say what becomes of a machine.

    Args:
        image: What it must hold.
        ops: What plugins add.
        ttl: Seconds without contact from us after which it terminates; 0 never.
        life: Seconds after which it terminates in any case; None never.
        end: The command by which the machine terminates; none where it is not ours to terminate.
        timeout: Seconds for all of it.
        tell: Takes the events of making it ready.
        behind: Returns whether handlers are behind with these events, so that no more should be made.
        unreachable: Called when the machine does not answer, each time.
        waiting: Takes a line where the machine has not answered after a second, once for each time it is dialled.
        faults: Says what is wrong with the machine that was found, before anything is done to it.
        ssh_timeout: Seconds until the machine lets us in over SSH; None counts them as part of the rest.
        ssh_retry_interval: Seconds before it is dialled again; None waits longer each time.
        kept: Machines that were looked at already; None where none were.
        before: The name of the node that the machine was before it lingered; empty if it was none.
        resumed: Which node it is already, so that none is to be made of it; None otherwise.
        uploads: Measures how fast a rented machine takes what it is sent; None where the machine is the user's own.
    """

    image: Image
    ops: tuple[Op, ...]
    ttl: float
    life: float | None
    end: tuple[str, ...]
    timeout: float
    tell: Callable[[events.SkywardEvent], None]
    behind: Callable[[], bool] = lambda: False
    unreachable: Callable[[], None] = lambda: None
    waiting: Callable[[str], None] = lambda line: None
    faults: Callable[[probe.Findings], tuple[str, ...]] = lambda found: ()
    ssh_timeout: float | None = None
    ssh_retry_interval: float | None = None
    kept: KeptVisit | None = None
    uploads: Uploads | None = None
    before: str = ""
    resumed: Resumed | None = None
