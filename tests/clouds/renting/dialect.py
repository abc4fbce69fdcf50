"""How a cloud says what all of them say: the words in which the shared suite of renting speaks to each."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from attrs import field, frozen

from skyward.errors import SkywardError
from tests.clouds.cloud import Cloud, Start

Facts = Mapping[str, Any]


@frozen
class Told:
    """
    One refusal of a launch, and what a client makes of it.

    Args:
        name: What it is.
        kind: The class of the error.
        facts: The answer, as `Cloud.fault` takes it.
    """

    name: str
    kind: type[SkywardError]
    facts: Facts = field(factory=dict)


@frozen(kw_only=True)
class Dialect:
    """
    Say how a cloud speaks.

    Args:
        name: Its name.
        cloud: Runs it.
        client: Opens a use of its hooks for the machine that costs least.
        launch: The request that rents, for faults.
        sent: How the name of that request begins among the calls.
        end: The request that ends.
        list: The request that lists.
        broken: A failure of the service (500).
        throttled: A refusal of a call that came too fast.
        unreadable: An answer that is none; empty where the test cloud has no words for it.
        refusals: What a launch is refused with, and the class of error of each.
        kept: A refusal of an end that is for good.
        command: What the error of such an end tells the user to type or to look at.
        shorten: Leaves fewer machines than `nodes` wants.
        nodes: What is asked for then.
        left: How many of them there are.
        together: Whether one use rents several machines; each of Vast.ai's listings is one machine.
        repeats: Whether a launch bears a key that makes it safe to send again when no answer came.
        asks_first: Whether a client asks for a request's machines before it rents the first; others do so for requests
            that they have sent themselves.
        shows_fresh: Whether a machine that lists do not show yet counts as pending; RunPod's pool asks for each by id.
        shows_death: Whether lists tell of a machine that died at boot; a droplet just vanishes, see its own test.
        expiry: Reads the expiry that a machine bears; None where none can be written on it later.
        odd: Has a machine, by its id, be listed in a state of another word, by its text.
        garbled: Fields of a listed machine, each with what it can't be, None to leave it out, and what a warning names.
        garble: Has a machine, by its id, be listed with such fields.
        nameless: Has a machine, by its id, be listed without an id; None where the test cloud can't.
        unknown: The id of a machine that there never was.
        wrong: Credentials that are wrong, as arguments of the provider.
        without: The variables without which there are no credentials.
    """

    name: str
    cloud: Start
    client: Callable[..., Any]
    launch: str
    sent: str
    end: str
    list: str
    broken: Facts
    throttled: Facts
    unreadable: Facts = field(factory=dict)
    refusals: tuple[Told, ...]
    kept: Facts
    command: str
    shorten: Callable[[Any], None] = lambda cloud: None
    nodes: tuple[int, ...] = (0, 1, 2)
    left: int
    together: bool = True
    repeats: bool = False
    asks_first: bool = True
    shows_fresh: bool = True
    shows_death: bool = True
    expiry: Callable[[Facts], str] | None = None
    odd: Callable[[Any, str, str], None]
    garbled: Mapping[str, tuple[Any, str]]
    garble: Callable[[Any, str, Facts], None]
    nameless: Callable[[Any, str], None] | None = None
    unknown: str
    wrong: Facts
    without: tuple[str, ...]

    def launches(self, cloud: Cloud) -> int:
        """Count the launches that were sent since the last calm."""
        return len(cloud.calls(self.sent))


def answer(status: int, **body: Any) -> Facts:
    """Describe an answer of a status with a body of these fields."""
    return {"status": status, "body": body}


def listed_as(on: str, name: str) -> Callable[[Any, str, str], None]:
    """Have lists that are asked for like this say another word in a field of one machine."""
    return lambda cloud, machine, word: cloud.fault(on, "edit", body={name: word}, of={"id": machine})


def garbled(on: str) -> Callable[[Any, str, Facts], None]:
    """Have lists that are asked for like this say other things of one machine."""
    return lambda cloud, machine, fields: cloud.fault(on, "edit", body=dict(fields), of={"id": machine})


def nameless(on: str) -> Callable[[Any, str], None]:
    """Have lists that are asked for like this not say which machine one is."""
    return lambda cloud, machine: cloud.fault(on, "edit", body={"id": None}, of={"id": machine})


def refused(kind: type[SkywardError], **facts: Any) -> Told:
    """Name a refusal by its class."""
    return Told(kind.__name__, kind, facts)


def dialects() -> list[Dialect]:
    """Find all there are: a cloud has one in its module `dialect`."""
    folder = Path(__file__).parents[1]
    names = sorted(path.parent.name for path in folder.glob("*/dialect.py") if path.parent != Path(__file__).parent)
    return [importlib.import_module(f"tests.clouds.{name}.dialect").DIALECT for name in names]
