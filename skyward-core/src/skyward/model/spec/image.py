"""
What a node's environment must hold.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from attrs import field, frozen

from skyward.errors import ConfigError
from skyward.model.events.metric import Collector, Default
from skyward.model.fields.pip_index import PipIndex, index_url
from skyward.model.fields.setting import choice, lasting, suggesting, texts
from skyward.model.fields.variables import Variables, variables
from skyward.plain import redacted

__all__ = ["DEFAULT_IMAGE", "Image", "PipIndex", "SkywardSource", "check_python", "python_version"]

SkywardSource = Literal["auto", "local"]

_PYTHON = re.compile(r"3\.\d{1,2}(\.\d{1,2})?")
# Part of every hash, so that a new way of building environments never meets what an old one built.
_SCHEME = "image-1"


def _python(value: str) -> str:
    """Return the Python version, checked."""
    given: Any = value
    if isinstance(given, str) and (given == "auto" or _PYTHON.fullmatch(given)):
        return given
    raise ConfigError(
        f'python must be "auto" or a version such as "3.13" or "3.13.1", not {given!r}.',
        hint="Write it in quotes: as a number 3.10 is 3.1." if isinstance(given, float) else None,
    )


def _pip(value: Iterable[str]) -> tuple[str, ...]:
    """Return the requirements, checked."""
    requirements = texts(value, "pip")
    for requirement in requirements:
        if requirement.startswith("-"):
            raise ConfigError(
                f"pip must be a list of requirements; {requirement!r} is an option.",
                hint="Indexes are pip_indexes= and pip_extra_index_url=.",
            )
    return requirements


def _pip_indexes(value: Iterable[PipIndex]) -> tuple[PipIndex, ...]:
    """Return the scoped indexes as a tuple, checked."""
    given: Any = value
    if isinstance(given, PipIndex):
        raise ConfigError("pip_indexes must be a list of sky.PipIndex, not one.", hint="Put it into brackets.")
    indexes = tuple(given) if isinstance(given, Iterable) else (given,)
    for index in indexes:
        if not isinstance(index, PipIndex):
            raise ConfigError(
                f"pip_indexes must be a list of sky.PipIndex, not of {type(index).__name__}.",
                hint="Write pip_indexes=[sky.PipIndex(url, packages)].",
            )
    return indexes


def _pip_extra_index_url(value: str | None) -> str | None:
    """Return the URL of the further index, checked."""
    return None if value is None else index_url(value, "pip_extra_index_url")


def _apt(value: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the system packages, checked."""
    names = texts(value, "apt")
    for name in names:
        if name.startswith("-") or len(name.split()) != 1:
            raise ConfigError(f"apt must be a list of package names, one each; {name!r} is none.")
    return names


def _env(value: Mapping[str, str]) -> Variables:
    """Return the environment variables, checked."""
    return variables(value, "env")


def _shell_vars(value: Mapping[str, str]) -> Variables:
    """Return the variables that a shell computes, checked."""
    return variables(value, "shell_vars")


def _includes(value: Iterable[str | os.PathLike[str]]) -> tuple[str, ...]:
    """Return the paths to take along, checked."""
    given: Any = value
    if isinstance(given, os.PathLike):
        raise ConfigError(f"includes must be a list of paths, not {given!r}.", hint="Put it into brackets.")
    if isinstance(given, Iterable) and not isinstance(given, (str, bytes)):
        given = [os.fspath(path) if isinstance(path, os.PathLike) else path for path in given]
    return texts(given, "includes")


def _excludes(value: Iterable[str]) -> tuple[str, ...]:
    """Return the patterns to leave out, checked."""
    return texts(value, "excludes")


def _metrics(value: Iterable[Collector] | None) -> tuple[Collector, ...]:
    """Return the metrics to sample as a tuple, checked."""
    if value is None:
        return ()
    given: Any = value
    metrics = tuple(given) if isinstance(given, Iterable) else (given,)
    for metric in metrics:
        if not isinstance(metric, Collector):
            raise ConfigError(
                f"metrics must be a list of metrics, or None for none at all, not {value!r}.",
                hint="Write metrics=[sky.metrics.CPU(), sky.metrics.GPU()].",
            )
    return metrics


def _skyward_source(value: str) -> SkywardSource:
    """Return where a node gets Skyward from, checked."""
    if value in ("github", "pypi"):
        raise ConfigError(
            f'skyward_source must be "auto" or "local", not {value!r}: client and node must run the same code, '
            "so a node gets the very files this client runs.",
            hint="Leave it out.",
        )
    return "local" if choice(value, "skyward_source", ("auto", "local")) == "local" else "auto"


def _bootstrap_timeout(value: float) -> float:
    """Return the limit for getting a node ready, checked."""
    return lasting(value, "bootstrap_timeout")


def _shown(value: object) -> str:
    """Return a repr without the passwords of URLs."""
    return redacted(repr(value))


def _shown_names(items: Variables) -> str:
    """Return the names of variables without their text, which may be secret."""
    return "{" + ", ".join(f"{name!r}: ..." for name in items) + "}"


@suggesting
@frozen(kw_only=True)
class Image:
    """
    Say what a node's environment must hold.

    Lists become tuples and dicts become frozen mappings, so that an image is hashable; `attrs.evolve` makes a changed
    one. Its repr shows no text of variables and no passwords.

    Args:
        python: Version such as `"3.13"`; `"auto"` is the client's, and no other minor version works with the client.
        pip: Requirements to install, as pip takes them.
        pip_indexes: Indexes that serve only some packages.
        pip_extra_index_url: A further index for all packages.
        apt: System packages.
        env: Environment variables of the workers.
        shell_vars: Environment variables whose text a shell on the node expands, when the node is made ready.
        includes: Files and folders of this machine to take along, besides the modules that travel anyway.
        excludes: Glob patterns of what to leave out of `includes`.
        metrics: What to sample on the nodes; None for nothing.
        skyward_source: Where nodes get Skyward from: `"auto"` and `"local"` both mean from this client.
        bootstrap_timeout: How long making a node ready may take, in seconds.

    Raises:
        ConfigError: If a value is none of what its field takes.

    >>> image = Image(pip=["torch", "numpy"], env={"HF_HOME": "/data/hf"})
    >>> image.pip
    ('torch', 'numpy')
    >>> image.env == {"HF_HOME": "/data/hf"}
    True
    """

    python: str = field(default="auto", converter=_python)
    pip: tuple[str, ...] = field(default=(), converter=_pip, repr=_shown)
    pip_indexes: tuple[PipIndex, ...] = field(default=(), converter=_pip_indexes)
    pip_extra_index_url: str | None = field(default=None, converter=_pip_extra_index_url, repr=_shown)
    apt: tuple[str, ...] = field(default=(), converter=_apt)
    env: Variables = field(factory=Variables, converter=_env, repr=_shown_names)
    shell_vars: Variables = field(factory=Variables, converter=_shell_vars, repr=_shown_names)
    includes: tuple[str, ...] = field(default=(), converter=_includes)
    excludes: tuple[str, ...] = field(default=(), converter=_excludes)
    metrics: tuple[Collector, ...] = field(factory=Default, converter=_metrics)
    skyward_source: SkywardSource = field(default="auto", converter=_skyward_source)
    bootstrap_timeout: float = field(default=300.0, converter=_bootstrap_timeout)

    @property
    def needs_environment(self) -> bool:
        """
        Return whether it asks for Python packages beyond those that are installed here.

        >>> Image(pip=["torch"]).needs_environment, Image(env={"DEBUG": "1"}).needs_environment
        (True, False)
        """
        return bool(self.pip or self.pip_indexes or self.pip_extra_index_url)

    def content_hash(self) -> str:
        """
        Return 12 hexadecimal characters that stand for what has to be on a node's disk.

        Python, packages, their indexes and system packages count; the order in which packages are listed does not.
        What changes without installing anything does not count either: variables, files taken along, metrics, limits.

        >>> one, other = Image(pip=["numpy", "torch"]), Image(pip=["torch", "numpy"], env={"DEBUG": "1"})
        >>> one.content_hash() == other.content_hash()
        True
        """
        # Late, because loading OpenSSL is a good part of importing Skyward.
        import hashlib
        import json

        content = {
            "scheme": _SCHEME,
            "python": python_version(self),
            "pip": sorted(set(self.pip)),
            # Their order says which index is asked first.
            "pip_indexes": [[index.url, sorted(set(index.packages))] for index in self.pip_indexes],
            "pip_extra_index_url": self.pip_extra_index_url,
            "apt": sorted(set(self.apt)),
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]

    def bootstrap(self, ttl: float = 0) -> str:
        """
        Return the script that makes a machine ready for this image, exactly as it will run there.

        Names that are drawn at random, such as that of the pool, are replaced by readable ones.

        Args:
            ttl: Seconds without a word from the client after which the node stops; 0 for never.

        >>> "uv pip install" in Image(pip=["six"]).bootstrap()
        True
        """
        # What renders it stands above the values; it is loaded only where it is asked for.
        from importlib import import_module

        script: str = import_module("skyward.plan.bootstrap.bootstrap_script").preview(self, ttl)
        return script


def python_version(image: Image) -> str:
    """
    Return the Python version an image asks for, with `"auto"` resolved to the client's minor version.

    >>> python_version(Image(python="3.12.4"))
    '3.12.4'
    >>> python_version(Image()) == f"{sys.version_info.major}.{sys.version_info.minor}"
    True
    """
    return f"{sys.version_info.major}.{sys.version_info.minor}" if image.python == "auto" else image.python


def check_python(image: Image) -> None:
    """
    Refuse an image whose Python differs from the client's in the minor version.

    Args:
        image: The image, before anything is rented for it.

    Raises:
        ConfigError: If functions pickled here could not be run there.

    >>> check_python(Image(python="auto"))
    """
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    wanted = python_version(image)
    if ".".join(wanted.split(".")[:2]) != here:
        raise ConfigError(
            f"The image asks for Python {wanted} but this client runs Python {here}, and functions do not cross minor "
            "versions.",
            hint=f"Leave out python={image.python!r}, or run this program with Python {wanted}.",
        )


DEFAULT_IMAGE = Image()
