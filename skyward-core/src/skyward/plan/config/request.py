"""
What a user gave to `sky.Compute`, made into specs and options.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
from attrs import frozen

from skyward.errors import ConfigError, UsageError
from skyward.model.fields.setting import known_only
from skyward.model.fields.variables import variables
from skyward.model.spec.image import DEFAULT_IMAGE, Image, check_python
from skyward.model.spec.options import Options, Worker
from skyward.model.spec.spec import Spec
from skyward.plan.config.keyword_checks import ALIASES, OTHER_CHECKS, known_keywords
from skyward.plan.config.references import hidden

__all__ = ["NamedPool", "Request", "request"]

UNNAMED = "pool"


@frozen(kw_only=True)
class NamedPool:
    """
    Hold what a configuration file says about one pool.

    Args:
        keywords: What would be written as keywords of `sky.Compute`.
        where: File and table, for errors; may be looked for when it is printed.
        secrets: What references led to, by which errors show the references instead.
    """

    keywords: Mapping[str, Any]
    where: object
    secrets: Mapping[str, str] = {}  # nothing writes to it


@frozen(kw_only=True)
class Request:
    """
    Hold what a pool is to be made of.

    Args:
        specs: What to rent; any one of them will do.
        options: How the pool behaves.
        name: What the pool is called.
        adopted: Machines of an earlier pool that it begins with; None where there are none.
        detached: The pool that it goes on with, which was detached; None where it is a new one.
    """

    specs: tuple[Spec, ...]
    options: Options
    name: str
    adopted: Any = None
    detached: Any = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what the user should know before anything is rented, each sentence once."""
        return tuple(dict.fromkeys(warning for spec in self.specs for warning in spec.warnings))


def request(
    specs: tuple[Any, ...] = (),
    keywords: Mapping[str, Any] | None = None,
    *,
    name: str | None = None,
    options: Options | None = None,
    named: Callable[[str], NamedPool] | None = None,
    unnamed: str = UNNAMED,
) -> Request:
    """
    Return what a user gave to `sky.Compute`, in one of three ways, as specs and options.

    Args:
        specs: The positional arguments.
        keywords: The flat keywords.
        name: Name of a pool in `skyward.toml`.
        options: How the pool behaves; goes with each of the three ways.
        named: Called with the name; returns what the file says.
        unnamed: What to call a pool that has no name.

    Raises:
        UsageError: If the ways are mixed, a keyword is unknown, or a setting is given twice.
        ConfigError: If a value is none of what its setting takes.

    >>> made = request((), {"nodes": 4, "cpu": 8, "concurrency": 2})
    >>> made.specs[0].vcpus, made.options.workers.concurrency
    (8.0, 2)
    >>> request((), {"label": "sweep-7"}).name
    'sweep-7'
    """
    flat = dict(keywords or {})
    _one_way(specs, flat, name)
    if options is not None and not isinstance(options, Options):
        raise UsageError(f"options must be sky.Options, not {options!r}.", hint="Write options=sky.Options(...).")
    if specs:
        made = Request(specs=_specs(specs), options=options or Options(), name=unnamed)
    elif name is not None:
        made = _named(name, options, named)
    else:
        made = _flat(flat, options, unnamed, "sky.Compute()")
    if made.options.label is not None:
        made = attrs.evolve(made, name=made.options.label)
    for spec in made.specs:
        check_python(spec.image)
        if made.options.ports and not spec.nodes.floor:
            raise ConfigError(
                "ports= forwards ports of the head node, and a pool with nodes=sky.Nodes(min=0) opens without one.",
                hint="Write min=1, or pool.forward(...) once a function has been called.",
            )
    return made


def _one_way(specs: tuple[Any, ...], keywords: Mapping[str, Any], name: object) -> None:
    """Refuse a mixture of positional specs, flat keywords and a name."""
    ways = {
        "positional specs": bool(specs),
        f"flat keywords ({', '.join(f'{keyword}=' for keyword in keywords)})": bool(keywords),
        "name=": name is not None,
    }
    given = [way for way, used in ways.items() if used]
    if len(given) > 1:
        hint = "Put what belongs to a spec into sky.Spec(...), the rest into options=sky.Options(...)."
        raise UsageError(
            f"sky.Compute() takes either positional specs, flat keywords or name=, not {' and '.join(given)}.",
            hint="A named pool is changed in skyward.toml." if name is not None else hint,
        )
    if name is not None and (not isinstance(name, str) or not name.strip()):
        raise UsageError(f"name must be the name of a pool in skyward.toml, not {name!r}.")


def _specs(given: tuple[Any, ...]) -> tuple[Spec, ...]:
    """Return the positional arguments, all of which have to be specs."""
    for spec in given:
        if not isinstance(spec, Spec):
            hint = (
                "Put a * before the list."
                if isinstance(spec, (list, tuple))
                else "Write provider=... or sky.Spec(...)."
            )
            raise UsageError(f"sky.Compute() takes sky.Spec values by position, not {type(spec).__name__}.", hint=hint)
    return given


def _named(name: str, options: Options | None, named: Callable[[str], NamedPool] | None) -> Request:
    """Return what a configuration file says about a pool."""
    if named is None:
        raise UsageError(f"name={name!r} needs a skyward.toml, and none is read here.")
    pool = named(name)
    try:
        return _flat(pool.keywords, options, name, "a pool")
    except ConfigError as error:
        message, hint = hidden(error.message, pool.secrets), hidden(error.hint, pool.secrets)
        refused = type(error)(f"{pool.where}: {message}", hint=hint)
    raise refused


def _flat(keywords: Mapping[str, Any], options: Options | None, name: str, taker: str) -> Request:
    """Return flat keywords as specs and options."""
    settings = _settings(keywords, taker)
    env = settings.pop("env", None)
    if env is not None:
        settings["image"] = _with_env(settings.get("image", DEFAULT_IMAGE), env)
    behaviour = _options(_taken(settings, Options), _taken(settings, Worker), options)
    hardware = _taken(settings, Spec)
    providers = hardware.pop("provider", None)
    if not isinstance(providers, (list, tuple)):
        providers = (providers,)
    if not providers:
        raise UsageError("provider is an empty list.", hint="Leave it out for this machine, or name at least one.")
    first = Spec(**hardware, provider=providers[0])
    specs = (first, *(attrs.evolve(first, provider=provider) for provider in providers[1:]))
    return Request(specs=specs, options=behaviour, name=name)


def _settings(keywords: Mapping[str, Any], taker: str) -> dict[str, Any]:
    """Return keywords under the names of their fields, each known and there once."""
    known = known_keywords()
    written: dict[str, str] = {}
    for keyword in keywords:
        if keyword not in known:
            _refuse(keyword, known, taker)
        field = ALIASES.get(keyword, keyword)
        if field in written:
            raise UsageError(
                f"{written[field]}= and {keyword}= are the same setting, given twice.", hint="Leave one of them out."
            )
        written[field] = keyword
        if keyword in OTHER_CHECKS and keywords[keyword] is not None:
            OTHER_CHECKS[keyword](keywords[keyword], keyword)
    return {field: keywords[keyword] for field, keyword in written.items()}


def _refuse(keyword: str, known: tuple[str, ...], taker: str) -> None:
    """Refuse an unknown keyword, and say what it was most likely meant to be."""
    if keyword in {field.name for field in attrs.fields(Image)}:
        raise UsageError(
            f"{taker} has no setting {keyword!r}.", hint=f"It belongs to the image: image=sky.Image({keyword}=...)."
        )
    known_only((keyword,), known, taker)


def _with_env(image: Any, env: Any) -> Any:
    """Return an image with further variables; what is no image is left for its own error."""
    if not isinstance(image, Image):
        return image
    return attrs.evolve(image, env=image.env | variables(env, "env"))


def _options(behaviour: dict[str, Any], worker: dict[str, Any], options: Options | None) -> Options:
    """Return the options, with what was given as flat keywords in them."""
    if options is not None:
        for field in attrs.fields(Options):
            if field.name in behaviour and getattr(options, field.name) != field.default:
                raise UsageError(
                    f"{field.name} is given twice, as {field.name}= and in options=.", hint="Leave one of them out."
                )
    given = options or Options()
    inside = behaviour.get("worker", given.worker)
    if worker and inside is not None:
        both = "worker=" if "worker" in behaviour else "options.worker"
        raise UsageError(
            f"{next(iter(worker))}= and {both} both say how workers are laid out.",
            hint="Put it into sky.Worker(...), or leave the worker out.",
        )
    if worker:
        behaviour["worker"] = Worker(**worker)
    return attrs.evolve(given, **behaviour)


def _taken(settings: Mapping[str, Any], kind: type[Any]) -> dict[str, Any]:
    """Return those settings that are fields of a class."""
    names = {field.name for field in attrs.fields(kind)}
    return {name: value for name, value in settings.items() if name in names}
