"""What commands about machines have in common: how they are chosen, and what is said when a cloud does not answer."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from skyward.cli.terminal import complain, say
from skyward.errors import UsageError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from skyward.engine.instances.provider_handle import ProviderHandle
    from skyward.errors import SkywardError
    from skyward.market.asking import Answers
    from skyward.model.instances.machine import Instance


def add_choice(parser: ArgumentParser) -> None:
    """Add the arguments that machines are chosen by."""
    parser.add_argument("pools", nargs="*", metavar="POOL", help="name or id of a pool")
    parser.add_argument("--expired", action="store_true", help="only machines whose client is gone")
    add_providers(parser)


def add_providers(parser: ArgumentParser) -> None:
    """Add the option that names the providers which are asked."""
    parser.add_argument(
        "--provider",
        action="append",
        default=[],
        metavar="PROVIDER",
        dest="providers",
        help="ask this one and no other; may be said more than once",
    )


def ask_clouds(options: Namespace) -> tuple[Answers[Instance], list[tuple[ProviderHandle, Instance]]]:
    """
    Ask the clouds which machines there are.

    Returns:
        What they say, and of that the machines that are meant.
    """
    # Late, because the list of commands needs nothing that asks clouds.
    from skyward.engine.pool.event_loop import engine_loop
    from skyward.market.listed_instances import look
    from skyward.plan.instances.owned_instances import chosen

    owned = engine_loop().run(look(only=options.providers))
    wish = {"pools": options.pools, "only_expired": options.expired}
    # Each is judged by its own cloud's clock.
    return owned, [(handle, one) for handle, one in owned.found if chosen([one], **wish, now=handle.now())]


def waiting_until() -> dict[tuple[str, str], tuple[str, float]]:
    """Return how and until when machines of this user are without a client, by provider and id."""
    from skyward.engine.instances.lingering_records import lingering
    from skyward.engine.instances.owner_lock import without_client

    return {
        (about.provider, name): (state, about.ends_at)
        for state, left in (("lingering", lingering()), ("detached", without_client()))
        for about in left
        for name in about.machines
    }


def complain_of(failures: Mapping[str, SkywardError]) -> int:
    """Return which clouds could not be asked, and the exit code."""
    from skyward.errors import NoCredentialsError

    without = [name for name, error in failures.items() if isinstance(error, NoCredentialsError)]
    for name, error in failures.items():
        if name not in without:
            complain(f"{name} cannot be asked, and may have more: {error}")
    if without:
        complain(
            f"{', '.join(without)} cannot be asked for lack of credentials, and may have more. To see what is missing: "
            f"sky providers check {without[0]}. To ask no other than one: --provider NAME"
        )
    return 1 if failures else 0


def nothing_of(answers: Answers[Any], what: str) -> str:
    """Return that there is nothing of some kind, and which providers were asked."""
    if not answers.asked and answers.unknown:
        return f"No provider that could be asked has a {what}."
    if not answers.asked:
        return f"No provider that has a {what} is installed or named in a skyward.toml here. Type: sky providers"
    return f"{', '.join(answers.asked)}: no {what} found."


def complain_of_none(
    answers: Answers[Any], pools: Sequence[str], what: str = "machine", known: Iterable[str] = ()
) -> int:
    """
    Print that there is nothing of some kind, and return the exit code: 1 where pools were asked for by name.

    Args:
        answers: What the clouds say.
        pools: The names that were typed.
        what: What there is none of.
        known: Names of pools that there are.
    """
    from skyward.model.fields.setting import nearest

    if not pools or not answers.asked:
        say(nothing_of(answers, what))
    else:
        close = nearest(pools[0], known)
        hint = f"Did you mean {close!r}?" if close else "Type: sky ls"
        complain(f"{' and '.join(map(repr, pools))}: no {what} at {', '.join(answers.asked)}. {hint}")
    return int(bool(pools))


def pool_names(instances: Iterable[Instance]) -> set[str]:
    """Return the names of the pools that machines are of."""
    return {one.tags.pool_name or one.tags.pool_id for one in instances if one.tags is not None}


def agreed(what: str, question: str) -> bool:
    """
    Ask whether something is to be done that cannot be undone.

    Args:
        what: What it is, in words that follow "whether to".
        question: What is asked.

    Raises:
        UsageError: If standard input is no terminal.
    """
    if not sys.stdin.isatty():
        raise UsageError(f"There is no terminal here to ask whether to {what}.", hint="Write --yes.")
    return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")


def complain_of_left(found: Iterable[tuple[ProviderHandle, Any]], failures: Mapping[str, Exception], done: str) -> None:
    """
    Print what is gone of what clouds had, and complain of what may go on costing money.

    Args:
        found: Machines or images, each with its provider.
        failures: Why providers could not end theirs, by name.
        done: What was done to them, such as `"deleted"`.
    """
    gone = [each.id for handle, each in found if handle.name not in failures]
    if gone:
        say(f"{done.capitalize()} {', '.join(gone)}.")
    for name, error in failures.items():
        complain(f"{name} may not have {done} all, and what is left goes on being billed: {error}")
