"""
What is said when nodes hand stored buffers on to each other: a pure codec.

From the client to an agent, and back:

| frame | body |
|---|---|
| FETCH | 32 bytes name, u64 number, u64 size, 32 bytes SHA-256 of the content, JSON: `host`, `port`, `stall` |
| FETCHED | u64 number, u8 outcome, f64 seconds, text that says why |

Over a connection between two agents, once both have proved that they are of the pool (`node/data/pool_tls.py`):

    fetches  "skyward fetch 1\\n"   32 bytes name
    serves   u8 whether it has it   u64 size   the content

Every number is little-endian.
"""

from __future__ import annotations

from math import inf
from struct import Struct
from typing import NamedTuple

from skyward.errors import ProtocolError
from skyward.link.frames import Kind, decode_json, encode, encode_json
from skyward.link.messages import FETCH, FETCHED
from skyward.model.instances.transfer import TransferOutcome

REQUEST = Struct("<16s32s")
MARK = b"skyward fetch 1\n"
ANSWER = Struct("<BQ")

_LARGEST = 1 << 40
_WHY = 500
_OUTCOMES = {int(outcome): outcome for outcome in TransferOutcome}


class TransferOrder(NamedTuple):
    """
    Say what a node is to fetch, and from where.

    Args:
        name: What the buffer is stored under.
        number: Repeated in the answer.
        size: Bytes of the buffer.
        checksum: SHA-256 of its content.
        host: Where the source is reached.
        port: Its port.
        stall: Seconds without enough progress after which it is given up.
    """

    name: bytes
    number: int
    size: int
    checksum: bytes
    host: str
    port: int
    stall: float


class Report(NamedTuple):
    """
    Say how an order ended.

    Args:
        number: The order's.
        outcome: How it ended.
        seconds: How long it took.
        why: Why it failed, in words of the node's.
    """

    number: int
    outcome: TransferOutcome
    seconds: float
    why: str


def encode_transfer_order(order: TransferOrder) -> bytes:
    """
    Render a FETCH frame.

    >>> order = TransferOrder(bytes(32), 7, 100, bytes(32), "10.0.0.7", 4000, 10.0)
    >>> decode_transfer_order(encode_transfer_order(order)[8:]) == order
    True
    """
    head = FETCH.pack(order.name, order.number, order.size, order.checksum)
    place = encode_json(Kind.FETCH, {"host": order.host, "port": order.port, "stall": order.stall})
    return encode(Kind.FETCH, head + place[8:])


def decode_transfer_order(body: bytes) -> TransferOrder:
    """
    Read a FETCH body.

    Raises:
        ProtocolError: If it lacks something, or holds what cannot be.
    """
    if len(body) < FETCH.size:
        raise ProtocolError("A FETCH frame is cut off.")
    name, number, size, checksum = FETCH.unpack_from(body)
    place = decode_json(body[FETCH.size :])
    host, port, stall = place.get("host"), place.get("port"), place.get("stall")
    if not isinstance(host, str) or not isinstance(port, int) or not isinstance(stall, int | float):
        raise ProtocolError("A FETCH frame does not say where to fetch from.")
    if not (0 < size <= _LARGEST and 0 < port < 65536 and 0 < stall < inf):
        raise ProtocolError(f"A FETCH frame asks for {size} bytes from port {port} within {stall} s.")
    return TransferOrder(name, number, size, checksum, host, port, float(stall))


def encode_report(report: Report) -> bytes:
    """Render a FETCHED frame; a reason that is too long is cut off."""
    text = report.why[:_WHY].encode("utf-8", "replace")
    return encode(Kind.FETCHED, FETCHED.pack(report.number, report.outcome, report.seconds) + text)


def decode_report(body: bytes) -> Report:
    """
    Read a FETCHED body.

    Raises:
        ProtocolError: If it is cut off, or there is no such outcome.

    >>> decode_report(encode_report(Report(7, TransferOutcome.STALLED, 2.5, "no byte for 10 s"))[8:]).why
    'no byte for 10 s'
    """
    if len(body) < FETCHED.size:
        raise ProtocolError("A FETCHED frame is cut off.")
    number, outcome, seconds = FETCHED.unpack_from(body)
    if outcome not in _OUTCOMES or not 0.0 <= seconds < inf:
        raise ProtocolError(f"A FETCHED frame says outcome {outcome} after {seconds} s.")
    return Report(number, _OUTCOMES[outcome], seconds, body[FETCHED.size :].decode("utf-8", "replace")[:_WHY])
