"""What has to be run so that an environment holds what an image asks for."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from attrs import field, frozen

from skyward.model.spec.image import Image
from skyward.model.spec.op import AptInstall, Op, PipInstall, Shell
from skyward.plain import redacted

_ADVICE = (
    (("no Python",), "Install it there, or run this program with a Python that the machine has."),
    (
        ("not found in the package registry", "no versions of", "No matching distribution"),
        "Check the package names in Image(pip=[...]); one of them is not in the index.",
    ),
    (
        ("no version of",),
        "Check the versions in Image(pip=[...]), or what a plugin was given for version=; one is not in the index.",
    ),
    (("Unable to locate package",), "Check the package names in Image(apt=[...]); one of them is not known there."),
    (
        ("UnknownIssuer", "CERTIFICATE_VERIFY_FAILED"),
        "The machine does not trust the index's certificate; Image(env={'UV_SYSTEM_CERTS': '1'}) takes its own store.",
    ),
    (("No space left on device",), "Free some space there, or set SKYWARD_CACHE to a directory that has room."),
    (
        ("Failed to fetch", "error sending request", "Connection refused", "Temporary failure in name resolution"),
        "The package index cannot be reached from there; Image(env={'UV_INDEX_URL': ...}) names another.",
    ),
    (
        ("apt needs root",),
        "Log in as root or as a user with passwordless sudo, or install the packages there yourself.",
    ),
    (("uv cannot be had",), "Install it there: pip install uv."),
)


SHELL_VARS = "shell_vars"
"""The phase in which an image's `shell_vars` are worked out."""

_INSTALL = ("{uv}", "pip", "install", "--python", "{environment}/bin/python")


@frozen
class Step:
    """
    One command of a bootstrap.

    Args:
        phase: What it belongs to, in a word.
        argv: The command line, which every user of the machine can read; `{uv}` and `{environment}` are filled in
            where it runs.
        env: Names and texts of variables that it runs with besides, such as addresses of indexes, which may hold
            passwords.
        stdin: What it reads from its standard input.
    """

    phase: str
    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    stdin: str = field(default="", repr=False)

    @property
    def shown(self) -> tuple[str, ...]:
        """Return its words for people: variables before the command line, and no password."""
        return tuple(redacted(word) for word in (*(f"{name}={text}" for name, text in self.env), *self.argv))

    @property
    def content(self) -> tuple[str, ...]:
        """Return all that decides what comes of it."""
        return (*self.argv, *(text for _, text in self.env), *self.stdin.splitlines())


def environment_steps(image: Image, python: str) -> tuple[Step, ...]:
    """
    List the commands that make an environment for an image.

    Packages that an index is scoped to are installed from that index, each index in a step of its own.

    Args:
        image: The image.
        python: The interpreter to base it on.

    >>> [step.phase for step in environment_steps(Image(pip=["six"]), "python3")]
    ['venv', 'deps']
    """
    steps = [Step("venv", ("{uv}", "venv", "--quiet", "--no-project", "--python", python, "{environment}"))]
    rest = list(image.pip)
    for index in image.pip_indexes:
        scoped = [package for package in rest if _name(package) in map(_name, index.packages)]
        rest = [package for package in rest if package not in scoped]
        if scoped:
            steps.append(_install("deps", scoped, index.url, image.pip_extra_index_url))
    if rest:
        steps.append(_install("deps", rest, None, image.pip_extra_index_url))
    return tuple(steps)


def apt_packages(image: Image, ops: Iterable[Op]) -> tuple[str, ...]:
    """
    List the system packages that a machine must have, each once.

    Args:
        image: The image.
        ops: What plugins add.

    >>> apt_packages(Image(apt=["git"]), [AptInstall(["jq", "git"])])
    ('git', 'jq')
    """
    added = (package for op in ops if isinstance(op, AptInstall) for package in op.packages)
    return tuple(dict.fromkeys((*image.apt, *added)))


def not_installed(wanted: Sequence[str], missing: Sequence[str] | None) -> str:
    """
    Return in a line which system packages this machine lacks, why they are not installed, and what to type.

    Args:
        wanted: Those that are asked for.
        missing: Those that it lacks; None where that cannot be found out.

    Returns:
        The line; empty where there is nothing to say.

    >>> not_installed(["git", "jq"], ["jq"])
    'apt: jq is not on this machine, where Skyward installs no system packages. Type: sudo apt-get install --yes jq'
    """
    if missing is None and wanted:
        return (
            f"apt: whether {', '.join(wanted)} is on this machine is not known, because it has no dpkg, and Skyward "
            "installs no system packages here. Install what is missing with the machine's own package manager."
        )
    if not missing:
        return ""
    what = f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'}"
    command = f"sudo apt-get install --yes {shlex.join(missing)}"
    return f"apt: {what} not on this machine, where Skyward installs no system packages. Type: {command}"


def op_step(op: Op) -> Step:
    """
    Make a step of what a plugin adds to an environment.

    Args:
        op: A command, or packages to install.

    >>> op_step(Shell("echo {}", scope="environment")).argv
    ('sh', '-ec', 'echo {{}}')
    """
    if isinstance(op, PipInstall):
        return _install("plugins", op.packages, op.index_url)
    if isinstance(op, Shell):
        return Step("plugins", ("sh", "-ec", op.command.replace("{", "{{").replace("}", "}}")))
    return Step("plugins", ("apt-get", "install", "--yes", *op.packages))


def _install(phase: str, packages: Sequence[str], index: str | None, extra: str | None = None) -> Step:
    """Install packages; an index is passed as a variable, and packages by address with a password in it as input."""
    env = (("UV_INDEX", index), ("UV_EXTRA_INDEX_URL", extra))
    hidden = [package for package in packages if redacted(package) != package]
    shown = [package for package in packages if package not in hidden]
    return Step(
        phase,
        (*_INSTALL, *shown, *(("-r", "-") if hidden else ())),
        tuple((name, url) for name, url in env if url),
        "".join(f"{package}\n" for package in hidden),
    )


def _name(requirement: str) -> str:
    """Cut a requirement down to the package's name, spelled one way."""
    for mark in "[<>=!~;@ ":
        requirement = requirement.partition(mark)[0]
    return requirement.strip().lower().replace("_", "-").replace(".", "-")


def hint(lines: Sequence[str]) -> str | None:
    """
    Return what to do about a phase that failed, where its last lines show it.

    >>> hint(["Because nosuchpkg was not found in the package registry ..."])
    '\\nCheck the package names in Image(pip=[...]); one of them is not in the index.'
    """
    # uv wraps its lines to the width of a terminal.
    text = " ".join(" ".join(lines).split())
    for marks, advice in _ADVICE:
        if any(mark in text for mark in marks):
            return f"\n{advice}"
    return None
