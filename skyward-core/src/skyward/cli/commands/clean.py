"""`sky clean`: hosts as they were before Skyward came."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from skyward.cli.terminal import say
from skyward.model.cli_command import Command


def arguments(parser: ArgumentParser) -> None:
    """Add what says how hosts are reached, as `sky.SSH` takes it."""
    parser.add_argument("hosts", nargs="+", metavar="HOST", help="a host, as in user@host:port")
    parser.add_argument("--user", help="name to log in with, where a host names none")
    parser.add_argument("--key", metavar="PATH", help="private key to log in with")
    parser.add_argument("--port", type=int, help="TCP port, where a host names none")
    parser.add_argument("--jump", metavar="HOST", help="host to go through, as user@host:port")
    parser.add_argument("--known-hosts", metavar="PATH", help="file of known host keys, if not ~/.ssh/known_hosts")


def run(options: Namespace) -> None:
    """
    Clear the cache on every host.

    Raises:
        SkywardError: If that failed on one; the others are done.
    """
    from skyward.providers.ssh import SSH

    port = {} if options.port is None else {"port": options.port}
    hosts = SSH(
        options.hosts,
        user=options.user,
        key=options.key,
        jump=options.jump,
        known_hosts=options.known_hosts,
        **port,
    )
    kept = hosts.clean()
    say(f"Nothing of Skyward is left in the cache of {', '.join(map(str, hosts.addresses))}.")
    for host, names in kept.items():
        say(f"{host}: what Skyward did not make stays there: {', '.join(names)}")


COMMAND = Command(run, summary="Empty Skyward's cache on hosts.", arguments=arguments)
