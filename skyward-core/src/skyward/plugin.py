"""
Plugins: frozen values that take part in a pool's life, and the folds that ask them one by one.

    sky.Plugin.create("wandb").with_image_transform(add_wandb).with_decorator(during(run))

Workers import this module when they start, so it imports little.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import attrs
from attrs import field, frozen

from skyward.errors import ConfigError
from skyward.plugin_failures import Entered, attributed, expect
from skyward.wrapping import during

if TYPE_CHECKING:
    from skyward.model.events.follower import Follower
    from skyward.model.instances.cluster import Cluster, LaunchCommand, LaunchContext, Topology
    from skyward.model.instances.instance import InstanceInfo
    from skyward.model.spec.image import Image
    from skyward.model.spec.op import Op, OpLike

__all__ = [
    "HOOKS",
    "Plugin",
    "bootstrap_ops",
    "completed",
    "decorated",
    "during",
    "entered",
    "followers",
    "implements",
    "launch_command",
    "name_of",
    "topology",
    "transform_image",
    "validated",
]

T = TypeVar("T")

Context: TypeAlias = "AbstractContextManager[object] | None"
Around = Literal["around_app", "around_process", "around_client"]

HOOKS: Mapping[str, tuple[str, ...]] = {
    "requires": (),
    "validate": ("cluster",),
    "topology": ("cluster",),
    "transform": ("image", "cluster"),
    "bootstrap": ("cluster",),
    "launcher": ("command", "context"),
    "around_app": ("info",),
    "around_process": ("info",),
    "around_client": ("pool", "cluster"),
    "follow": ("pool",),
    "decorate": ("fn",),
}
"""Arguments of each hook of a plugin, as `skyward.hookspecs` has them; here too, because workers do not load pluggy."""


def _name(value: str) -> str:
    """Return a plugin's name, checked."""
    given: object = value
    if not isinstance(given, str) or not given.strip():
        raise ConfigError(f"name must be the name of a plugin, not {value!r}.")
    return given.strip()


def _function(instance: object, attribute: Any, value: Any) -> None:
    """Refuse what cannot be called."""
    if value is not None and not callable(value):
        raise ConfigError(f"{attribute.name} must be a function, not {value!r}.")


@frozen(kw_only=True)
class Plugin:
    """
    Take part in a pool's life with functions; begun with `create`, completed with `with_...`.

    `skyward.hookspecs` says when and where each function is called; giving one a second time replaces the first.
    The value travels to the nodes, lambdas included.

    Args:
        name: What errors call it.
        requires: Names the plugins that it builds on.
        validate: Refuses what cannot work.
        topology: Contributes to the layout of ranks.
        transform: Contributes to the image.
        bootstrap: Contributes steps to making a node ready.
        launcher: Wraps the command that starts a worker process.
        around_app: Wraps the life of a node.
        around_process: Wraps the life of a worker process.
        around_client: Wraps the time in which the pool can be used.
        follow: Follows the calls and events of the pool.
        decorate: Wraps the function of each task.

    Raises:
        ConfigError: If the name is blank, or a hook cannot be called.

    >>> plugin = Plugin.create("greeting").with_bootstrap(lambda cluster: ("echo hello",))
    >>> plugin.name, plugin.decorate is None
    ('greeting', True)
    """

    name: str = field(converter=_name)
    requires: Callable[[], Iterable[Any]] | None = field(default=None, validator=_function)
    validate: Callable[[Cluster], None] | None = field(default=None, validator=_function)
    topology: Callable[[Cluster], Topology | None] | None = field(default=None, validator=_function)
    transform: Callable[[Image, Cluster], Image] | None = field(default=None, validator=_function)
    bootstrap: Callable[[Cluster], Iterable[OpLike]] | None = field(default=None, validator=_function)
    launcher: Callable[[LaunchCommand, LaunchContext], LaunchCommand] | None = field(default=None, validator=_function)
    around_app: Callable[[InstanceInfo], Context] | None = field(default=None, validator=_function)
    around_process: Callable[[InstanceInfo], Context] | None = field(default=None, validator=_function)
    around_client: Callable[[Any, Cluster], Context] | None = field(default=None, validator=_function)
    follow: Callable[[Any], Follower | None] | None = field(default=None, validator=_function)
    decorate: Callable[[Callable[..., Any]], Callable[..., Any]] | None = field(default=None, validator=_function)

    @classmethod
    def create(cls, name: str) -> Plugin:
        """Begin a plugin that does nothing yet."""
        return cls(name=name)

    def with_requires(self, function: Callable[[], Iterable[Any]]) -> Plugin:
        """Name the plugins that it builds on: `function()` returns them."""
        return attrs.evolve(self, requires=function)

    def with_validate(self, function: Callable[[Cluster], None]) -> Plugin:
        """Refuse what cannot work: `function(cluster)` raises a ConfigError."""
        return attrs.evolve(self, validate=function)

    def with_topology(self, function: Callable[[Cluster], Topology | None]) -> Plugin:
        """Contribute to the layout of ranks: `function(cluster)` returns a `Topology`."""
        return attrs.evolve(self, topology=function)

    def with_image_transform(self, function: Callable[[Image, Cluster], Image]) -> Plugin:
        """Contribute to the image: `function(image, cluster)` returns it changed."""
        return attrs.evolve(self, transform=function)

    def with_bootstrap(self, function: Callable[[Cluster], Iterable[OpLike]]) -> Plugin:
        """Contribute steps to making a node ready: `function(cluster)` returns them."""
        return attrs.evolve(self, bootstrap=function)

    def with_launcher(self, function: Callable[[LaunchCommand, LaunchContext], LaunchCommand]) -> Plugin:
        """Wrap the command that starts a worker process: `function(command, context)` returns it changed."""
        return attrs.evolve(self, launcher=function)

    def with_around_app(self, function: Callable[[InstanceInfo], Context]) -> Plugin:
        """Wrap the life of a node: `function(info)` returns a context manager."""
        return attrs.evolve(self, around_app=function)

    def with_around_process(self, function: Callable[[InstanceInfo], Context]) -> Plugin:
        """Wrap the life of a worker process: `function(info)` returns a context manager."""
        return attrs.evolve(self, around_process=function)

    def with_around_client(self, function: Callable[[Any, Cluster], Context]) -> Plugin:
        """Wrap the time in which the pool can be used: `function(pool, cluster)` returns a context manager."""
        return attrs.evolve(self, around_client=function)

    def with_follower(self, function: Callable[[Any], Follower | None]) -> Plugin:
        """Follow the calls and events of the pool: `function(pool)` returns a `Follower`."""
        return attrs.evolve(self, follow=function)

    def with_decorator(self, function: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Plugin:
        """Wrap the function of each task: `function(fn)` returns one to call in its place."""
        return attrs.evolve(self, decorate=function)


def name_of(plugin: object) -> str:
    """
    Return what errors call a plugin: its `name` if it has one, else the name of its class.

    >>> name_of(Plugin.create("torch"))
    'torch'
    """
    name = getattr(plugin, "name", None)
    return name if isinstance(name, str) and name else type(plugin).__name__


def implements(plugins: Iterable[Any], hook: str) -> bool:
    """
    Return whether any of the plugins takes part in a hook.

    Args:
        plugins: The plugins.
        hook: One of `HOOKS`.

    >>> implements([Plugin.create("idle")], "decorate")
    False
    """
    return any(True for _ in _hooks(plugins, hook))


# The folds. Each takes the plugins in the order of `plugins=[...]`.


def completed(plugins: Iterable[Any]) -> tuple[Any, ...]:
    """
    Return the plugins, each after those that it builds on; one that was given holds against one that is required.

    Raises:
        ConfigError: If one was given after a plugin that builds on it.
        PluginError: If a plugin fails.
    """
    given = tuple(plugins)
    names, placed = {name_of(plugin) for plugin in given}, set[str]()

    def place(plugin: Any) -> list[Any]:
        upper, before = name_of(plugin), []
        for _, requires in _hooks([plugin], "requires"):
            with attributed(upper, "requires", ConfigError):
                for needed in requires():
                    lower = name_of(needed)
                    if lower in names and lower not in placed:
                        raise ConfigError(
                            f"plugins has {lower!r} after {upper!r}, which builds on it.", hint="Swap them."
                        )
                    if lower not in placed:
                        names.add(lower)
                        before += place(needed)
        placed.add(upper)
        return [*before, plugin]

    return tuple(each for plugin in given for each in place(plugin))


def validated(plugins: Iterable[Any], cluster: Cluster) -> None:
    """
    Ask each plugin to refuse what cannot work.

    Raises:
        ConfigError: If one refuses.
        PluginError: If one fails otherwise.
    """
    for name, validate in _hooks(plugins, "validate"):
        with attributed(name, "validate", ConfigError):
            validate(cluster)


def topology(plugins: Iterable[Any], cluster: Cluster) -> Topology:
    """
    Return the layout of ranks that the plugins need, and the user allows; no number where none of them needs one.

    Raises:
        ConfigError: If they do not agree.
        PluginError: If a plugin fails.
    """
    from skyward.model.instances.cluster import Topology

    ranks: int | None = None
    collective = partitions = False
    meetings: dict[str, str] = {}
    # One rank is the default, so that a plugin may change it.
    asked: object = cluster.worker.per_node
    chooser = None if asked == 1 else f"per_node={asked!r}"
    for name, ask in _hooks(plugins, "topology"):
        with attributed(name, "topology"):
            wanted = ask(cluster)
            if wanted is None:
                continue
            expect(wanted, Topology)
        collective = collective or wanted.collective
        partitions = partitions or wanted.partitions
        if wanted.meeting is not None:
            meetings.setdefault(wanted.meeting, name)
        if len(meetings) > 1:
            those = " and of ".join(map(repr, meetings.values()))
            raise ConfigError(
                f"The ranks of {those} meet at the same port of the head, each in a way of its own.",
                hint="Leave one of the plugins out.",
            )
        if wanted.ranks_per_node is None:
            continue
        if chooser is not None and wanted.ranks_per_node != asked:
            raise ConfigError(
                f"Plugin {name!r} needs {wanted.ranks_per_node} ranks on each node, which {chooser} forbids.",
                hint="Leave one of them out.",
            )
        asked = ranks = wanted.ranks_per_node
        chooser = f"plugin {name!r} with its {ranks}"
    met = next(iter(meetings), None)
    return Topology(ranks_per_node=ranks, collective=collective, meeting=met, partitions=partitions)


def transform_image(plugins: Iterable[Any], image: Image, cluster: Cluster) -> Image:
    """
    Return the image as the plugins complete it.

    Raises:
        PluginError: If a plugin fails, or returns no image.
    """
    from skyward.model.spec.image import Image

    for name, transform in _hooks(plugins, "transform"):
        with attributed(name, "transform"):
            image = expect(transform(image, cluster), Image)
    return image


def bootstrap_ops(plugins: Iterable[Any], cluster: Cluster) -> tuple[Op, ...]:
    """
    Return the steps of all plugins, one after the other.

    Raises:
        PluginError: If a plugin fails, or returns what is no step.
    """
    from skyward.model.spec.op import op

    ops: list[Op] = []
    for name, bootstrap in _hooks(plugins, "bootstrap"):
        with attributed(name, "bootstrap"):
            steps = bootstrap(cluster)
            if isinstance(steps, str) or not isinstance(steps, Iterable):
                raise TypeError(f"it must return a list of steps, not {steps!r}")
            ops += map(op, steps)
    return tuple(ops)


def launch_command(plugins: Iterable[Any], command: LaunchCommand, context: LaunchContext) -> LaunchCommand:
    """
    Return the command as the plugins wrap it.

    Raises:
        PluginError: If a plugin fails, or returns no command.
    """
    from skyward.model.instances.cluster import LaunchCommand

    for name, launcher in _hooks(plugins, "launcher"):
        with attributed(name, "launcher"):
            command = expect(launcher(command, context), LaunchCommand)
    return command


@contextmanager
def entered(plugins: Iterable[Any], hook: Around, *arguments: object) -> Iterator[None]:
    """
    Enter the context managers of a hook, the first plugin's first, and leave them in reverse.

    What is raised inside passes as it is, whatever a context manager makes of it.

    Args:
        plugins: In the order of `plugins=[...]`.
        hook: `"around_app"`, `"around_process"` or `"around_client"`.
        arguments: Of the hook.

    Raises:
        PluginError: If a context manager fails on its way in or out; those entered before are left all the same.
    """
    with ExitStack() as stack:
        for name, around in _hooks(plugins, hook):
            with attributed(name, hook):
                context = around(*arguments)
                if context is None:
                    continue
                if not hasattr(context, "__enter__"):
                    raise TypeError(f"it must return a context manager, not {context!r}; see contextlib.contextmanager")
            stack.enter_context(Entered(name, hook, context))
        yield


def followers(plugins: Iterable[Any], pool: object) -> list[tuple[str, Follower]]:
    """
    Return what follows the pool, each with its plugin's name.

    Raises:
        PluginError: If a plugin fails, or returns no follower.
    """
    from skyward.model.events.follower import Follower

    found = []
    for name, follow in _hooks(plugins, "follow"):
        with attributed(name, "follow"):
            if (follower := follow(pool)) is not None:
                found.append((name, expect(follower, Follower)))
    return found


def decorated(plugins: Iterable[Any], fn: Callable[..., Any]) -> Callable[..., Any]:
    """
    Return a function as the plugins wrap it, the first plugin outermost.

    Raises:
        PluginError: If a plugin fails at wrapping it. What happens in a call is the call's own affair.
    """
    for name, decorate in reversed(tuple(_hooks(plugins, "decorate"))):
        with attributed(name, "decorate"):
            wrapped = decorate(fn)
            if not callable(wrapped):
                raise TypeError(f"it must return a function, not {wrapped!r}")
        fn = wrapped
    return fn


def _hooks(plugins: Iterable[Any], hook: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield name and function of each plugin that has the hook; the function takes its arguments in order."""
    for plugin in plugins:
        function = getattr(plugin, hook) if isinstance(plugin, Plugin) else _method(plugin, hook)
        if function is not None:
            yield name_of(plugin), function


def _method(plugin: object, hook: str) -> Callable[..., Any] | None:
    """Return the marked method of a class plugin, called with those arguments that it names."""
    method = getattr(type(plugin), f"skyward_{hook}", None)
    if getattr(method, "skyward_impl", None) is None:
        return None
    bound = getattr(plugin, f"skyward_{hook}")
    plain = bound
    while hasattr(plain, "__wrapped__"):
        plain = plain.__wrapped__
    code = plain.__code__
    taken = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    arguments = HOOKS[hook]
    return lambda *values: bound(
        **{name: value for name, value in zip(arguments, values, strict=True) if name in taken}
    )
