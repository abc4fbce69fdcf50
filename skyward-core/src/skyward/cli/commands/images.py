"""`sky images`: the machine images that were made of nodes, as the clouds list them, and how they are deleted."""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace

from skyward.cli.machines import add_providers, agreed, complain_of, complain_of_left, nothing_of
from skyward.cli.terminal import add_json, say, say_json, table
from skyward.errors import UsageError
from skyward.model.cli_command import Command


def arguments(parser: ArgumentParser) -> None:
    """Add what is done with them, and what they are chosen by."""
    add_providers(parser)
    add_json(parser)
    actions = parser.add_subparsers(dest="action", metavar="delete")
    delete = actions.add_parser("delete", description="Delete machine images.", allow_abbrev=False)
    delete.add_argument("hashes", nargs="*", metavar="HASH", help="what they hold, as the list says")
    delete.add_argument("--older-than", metavar="AGE", help="only those that were made longer ago, such as 30d")
    delete.add_argument("--yes", action="store_true", help="delete them without asking")


def run(options: Namespace) -> int:
    """
    List machine images, and delete them after asking if that is typed.

    Raises:
        UsageError: If nothing says which.
    """
    from skyward.cli.image_table import HEADER, age, monthly_sum, row
    from skyward.cli.json_facts import answered, image_facts
    from skyward.engine.pool.event_loop import engine_loop
    from skyward.market.listed_images import delete, look
    from skyward.plan.instances.machine_image_rules import chosen

    hashes = options.hashes if options.action else ()
    older = age(options.older_than) if options.action and options.older_than is not None else None
    if options.action and not hashes and older is None:
        raise UsageError("Nothing says which images to delete.", hint="Name a hash, or write --older-than 30d.")
    if options.action and options.json:
        raise UsageError("--json is for the list of images.", hint="Leave it out.")
    now = time.time()
    kept = engine_loop().run(look(only=options.providers))
    meant = set(map(id, chosen(kept.values, hashes=hashes, older_than=older, now=now)))
    found = [(handle, image) for handle, image in kept.found if id(image) in meant]
    if options.json:
        say_json(answered("images", (image_facts(image) for _, image in found), kept.asked, kept.unknown))
        return complain_of(kept.unknown)
    if not found:
        if not kept.failures:
            say(nothing_of(kept, "machine image"))
        return complain_of(kept.unknown) or int(bool(hashes))
    say(table([HEADER, *(row(image, now=now) for _, image in found)], indent=""))
    if not options.action:
        if cost := monthly_sum(image for _, image in found):
            say(cost)
        return complain_of(kept.unknown)
    if not options.yes and not agreed("delete them", f"Delete {'this' if len(found) == 1 else f'these {len(found)}'}?"):
        say("Nothing was deleted.")
        return 1
    failures = engine_loop().run(delete(found))
    complain_of_left(found, failures, "deleted")
    return complain_of(kept.failures) or int(bool(failures))


COMMAND = Command(run, summary="List the machine images made of nodes, or delete them.", arguments=arguments)
