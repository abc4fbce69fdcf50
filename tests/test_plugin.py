"""
Plugins are asked one by one, in the order they are given, and each answers for its own failures.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

import cloudpickle
import pytest
from attrs import evolve

from skyward.errors import ConfigError, PluginError
from skyward.model.instances.cluster import Cluster, LaunchCommand, LaunchContext, Topology
from skyward.model.instances.instance import InstanceInfo
from skyward.model.instances.offer import Offer
from skyward.model.spec.image import Image
from skyward.model.spec.op import Shell
from skyward.model.spec.spec import Spec
from skyward.model.spec.worker_layout import Worker
from skyward.plugin import (
    Plugin,
    bootstrap_ops,
    completed,
    decorated,
    entered,
    implements,
    launch_command,
    topology,
    transform_image,
    validated,
)
from skyward.registry import plugins_checked

CLUSTER = Cluster(
    pool_id="a1",
    pool_name="train",
    spec=Spec(),
    offer=Offer(provider="local", instance_type="here"),
    provider="local",
    nodes=2,
)
COMMAND = LaunchCommand(argv=["python"])
CONTEXT = LaunchContext(cluster=CLUSTER, node=0, rank=0, lane=0)
INFO = InstanceInfo()


def failing(*_: object) -> Any:
    """Fail as a plugin may."""
    raise KeyError("missing")


def adds(package: str) -> Plugin:
    """Return a plugin that wants a package."""
    return Plugin.create(package).with_image_transform(lambda image, cluster: evolve(image, pip=(*image.pip, package)))


def wraps(name: str) -> Plugin:
    """Return a plugin that writes its name around results."""
    return Plugin.create(name).with_decorator(lambda fn: lambda *args: f"{name}({fn(*args)})")


class Recorder:
    """Make plugins that record when their context managers are entered and left."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def plugin(self, name: str, *, fails: str = "", swallows: bool = False) -> Plugin:
        """Return a plugin whose context manager fails `"in"` or `"out"`, or swallows what is raised inside."""

        @contextmanager
        def around(info: InstanceInfo) -> Iterator[None]:
            if fails == "in":
                raise KeyError(name)
            self.seen.append(f"+{name}")
            try:
                with suppress(*([Exception] if swallows else [])):
                    yield
            finally:
                self.seen.append(f"-{name}")
                if fails == "out":
                    raise KeyError(name)

        return Plugin.create(name).with_around_process(around)


FOLDS: dict[str, tuple[Callable[[Plugin], Plugin], Callable[[list[Plugin]], Any]]] = {
    "requires": (lambda plugin: plugin.with_requires(failing), completed),
    "validate": (lambda plugin: plugin.with_validate(failing), lambda plugins: validated(plugins, CLUSTER)),
    "topology": (lambda plugin: plugin.with_topology(failing), lambda plugins: topology(plugins, CLUSTER)),
    "transform": (
        lambda plugin: plugin.with_image_transform(failing),
        lambda plugins: transform_image(plugins, Image(), CLUSTER),
    ),
    "bootstrap": (lambda plugin: plugin.with_bootstrap(failing), lambda plugins: bootstrap_ops(plugins, CLUSTER)),
    "launcher": (
        lambda plugin: plugin.with_launcher(failing),
        lambda plugins: launch_command(plugins, COMMAND, CONTEXT),
    ),
    "decorate": (lambda plugin: plugin.with_decorator(failing), lambda plugins: decorated(plugins, len)),
    "around_app": (
        lambda plugin: plugin.with_around_app(failing),
        lambda plugins: entered(plugins, "around_app", INFO).__enter__(),
    ),
    "around_process": (
        lambda plugin: plugin.with_around_process(failing),
        lambda plugins: entered(plugins, "around_process", INFO).__enter__(),
    ),
    "around_client": (
        lambda plugin: plugin.with_around_client(failing),
        lambda plugins: entered(plugins, "around_client", None, CLUSTER).__enter__(),
    ),
}


@pytest.mark.parametrize("hook", FOLDS)
def test_a_failure_names_plugin_and_hook(hook: str) -> None:
    """Whatever a hook raises becomes a PluginError with the plugin, the hook and the cause."""
    build, fold = FOLDS[hook]
    with pytest.raises(PluginError, match=f"Plugin 'broken' failed in {hook}: KeyError: 'missing'") as caught:
        fold([Plugin.create("fine"), build(Plugin.create("broken"))])
    assert ("broken", hook) == (caught.value.plugin, caught.value.hook)
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize("hook", FOLDS)
def test_a_plugin_is_asked_only_for_hooks_it_has(hook: str) -> None:
    """A plugin that does nothing is passed over in every fold."""
    build, fold = FOLDS[hook]
    assert implements([build(Plugin.create("one"))], hook)
    assert not implements([Plugin.create("one")], hook)
    fold([Plugin.create("one"), Plugin.create("two")])


def test_plugins_are_frozen_values() -> None:
    """Completing a plugin leaves the one it was made from as it was."""
    begun = Plugin.create("one")
    assert begun.with_bootstrap(lambda cluster: []) != begun == Plugin.create("one")


def test_a_hook_given_twice_is_replaced() -> None:
    """The later function takes the place of the earlier one."""
    plugin = Plugin.create("one").with_bootstrap(lambda cluster: ["a"]).with_bootstrap(lambda cluster: ["b"])
    assert (Shell("b"),) == bootstrap_ops([plugin], CLUSTER)


def test_a_name_is_needed() -> None:
    """Errors have to name the plugin, so that a blank name is refused."""
    with pytest.raises(ConfigError, match="name must be the name of a plugin, not ' '"):
        Plugin.create(" ")


def test_a_hook_has_to_be_a_function() -> None:
    """What cannot be called is refused where it is given."""
    with pytest.raises(ConfigError, match="decorate must be a function, not 3"):
        Plugin.create("one").with_decorator(3)  # type: ignore[arg-type]


def test_plugins_travel_with_their_lambdas() -> None:
    """What cloudpickle writes is read on a node by pickle alone."""
    there = pickle.loads(cloudpickle.dumps((wraps("one"), wraps("two"))))
    assert "one(two(3))" == decorated(there, len)("abc")


def builds(name: str, *beneath: Plugin) -> Plugin:
    """Return a plugin that builds on others."""
    return Plugin.create(name).with_requires(lambda: beneath)


def names(plugins: Iterable[Plugin]) -> str:
    return " ".join(plugin.name for plugin in plugins)


def test_a_plugin_stands_after_those_that_it_builds_on() -> None:
    """And they after theirs; each comes once."""
    low = Plugin.create("low")
    middle = builds("middle", low)
    assert "low middle high" == names(completed([builds("high", middle)]))
    assert "low middle high" == names(completed([builds("high", low, middle)]))
    assert "low middle one two" == names(completed([builds("one", middle), builds("two", low)]))


def test_what_the_user_gives_holds() -> None:
    """In place of what another plugin would bring by that name."""
    mine = adds("wandb")
    assert mine in completed([mine, builds("high", Plugin.create(mine.name))])
    with pytest.raises(ConfigError, match=rf"{mine.name!r} after 'high', which builds on it\. Swap them") as caught:
        completed([builds("high", Plugin.create(mine.name)), mine])
    assert ["Raised by plugin 'high' in requires."] == caught.value.__notes__


def test_plugins_that_build_on_each_other_are_refused() -> None:
    """Rather than looked for without end."""
    one: Plugin = Plugin.create("one").with_requires(lambda: [other])
    other = builds("other", one)
    with pytest.raises(ConfigError, match="'one' after 'other', which builds on it"):
        completed([builds("high", one)])


def test_images_are_completed_in_order() -> None:
    """Each plugin gets the image that the one before it returned."""
    assert ("torch", "wandb") == transform_image([adds("torch"), adds("wandb")], Image(), CLUSTER).pip


@pytest.mark.parametrize(
    ("fold", "expected"),
    [
        (
            lambda nothing: transform_image(
                [nothing.with_image_transform(lambda image, cluster: None)], Image(), CLUSTER
            ),
            "Image",
        ),
        (
            lambda nothing: launch_command([nothing.with_launcher(lambda command, context: None)], COMMAND, CONTEXT),
            "LaunchCommand",
        ),
        (lambda nothing: bootstrap_ops([nothing.with_bootstrap(lambda cluster: "echo")], CLUSTER), "a list of steps"),
        (lambda nothing: bootstrap_ops([nothing.with_bootstrap(lambda cluster: [3])], CLUSTER), "not 3"),
        (lambda nothing: decorated([nothing.with_decorator(lambda fn: None)], len), "a function"),
        (lambda nothing: topology([nothing.with_topology(lambda cluster: 7)], CLUSTER), "Topology"),
    ],
)
def test_what_a_hook_returns_is_checked(fold: Callable[[Plugin], object], expected: str) -> None:
    """A hook that returns something else is named, with what it should have returned."""
    with pytest.raises(PluginError, match=f"Plugin 'nothing' failed in .*{expected}"):
        fold(Plugin.create("nothing"))


def test_steps_follow_each_other() -> None:
    """The steps of all plugins are kept, in the order of plugins."""
    plugins = [Plugin.create(name).with_bootstrap(lambda cluster, name=name: [name, name * 2]) for name in "ab"]
    assert ["a", "aa", "b", "bb"] == [step.command for step in bootstrap_ops(plugins, CLUSTER)]


def test_the_last_launcher_is_outermost() -> None:
    """Each launcher wraps what those before it made."""
    plugins = [
        Plugin.create(name).with_launcher(
            lambda command, context, name=name: evolve(command, argv=(name, *command.argv))
        )
        for name in ("numactl", "nsys")
    ]
    assert ("nsys", "numactl", "python") == launch_command(plugins, COMMAND, CONTEXT).argv


def test_a_pool_is_collective_if_any_plugin_says_so() -> None:
    """Plugins that have no opinion on ranks leave them to the user."""
    plugins = [
        Plugin.create("one").with_topology(lambda cluster: Topology(collective=True)),
        Plugin.create("two").with_topology(lambda cluster: None),
    ]
    assert Topology(ranks_per_node=None, collective=True) == topology(plugins, CLUSTER)


def test_plugins_that_need_different_ranks_are_refused() -> None:
    """Two numbers of ranks cannot both be had; the error has both plugins."""
    plugins = [
        Plugin.create(name).with_topology(lambda cluster, ranks=ranks: Topology(ranks_per_node=ranks))
        for name, ranks in (("mig", 7), ("mps", 2))
    ]
    with pytest.raises(ConfigError, match=r"Plugin 'mps' needs 2 ranks on each node, which plugin 'mig' with its 7"):
        topology(plugins, CLUSTER)


def test_plugins_whose_ranks_meet_in_different_ways_are_refused() -> None:
    """Only one can listen at the head's port; those that meet in the same way share it."""
    gossip, other, rumour = (
        Plugin.create(name).with_topology(lambda cluster, meeting=meeting: Topology(meeting=meeting))
        for name, meeting in (("gossip", "tcp"), ("other", "tcp"), ("rumour", "mpi"))
    )
    assert Topology(meeting="tcp") == topology([gossip, other], CLUSTER)
    with pytest.raises(ConfigError, match=r"ranks of 'gossip' and of 'rumour' meet at the same port of the head"):
        topology([gossip, other, rumour], CLUSTER)


@pytest.mark.parametrize("asked", [4, "accelerator"])
def test_a_user_who_asks_for_ranks_is_not_overruled(asked: Any) -> None:
    """A plugin changes what a user left open, and nothing else."""
    mig = Plugin.create("mig").with_topology(lambda cluster: Topology(ranks_per_node=7))
    with pytest.raises(ConfigError, match=f"Plugin 'mig' needs 7 ranks on each node, which per_node={asked!r} forbids"):
        topology([mig], evolve(CLUSTER, worker=Worker(per_node=asked)))
    assert 7 == topology([mig], evolve(CLUSTER, worker=Worker(per_node=7))).ranks_per_node


def test_a_refusal_names_the_plugin_in_a_note() -> None:
    """A ConfigError of a plugin stays what it is, and tells whose it is."""

    def refuse(cluster: Cluster) -> None:
        raise ConfigError("No GPU, no MIG.")

    with pytest.raises(ConfigError, match="No GPU, no MIG") as caught:
        validated([Plugin.create("mig").with_validate(refuse)], CLUSTER)
    assert ["Raised by plugin 'mig' in validate."] == caught.value.__notes__


def test_one_plugin_is_not_given_twice() -> None:
    """Two plugins of one name are refused, because no error could tell them apart."""
    with pytest.raises(ConfigError, match="plugins holds 'torch' twice"):
        plugins_checked([adds("torch"), adds("torch")])


def test_what_has_no_hook_is_no_plugin() -> None:
    """A value without any marked method is refused before anything is rented."""
    with pytest.raises(PluginError, match=r"'object' is no plugin.*@hookimpl"):
        plugins_checked([object()])


def test_the_first_context_is_outermost() -> None:
    """Contexts are entered in order and left in reverse."""
    recorder = Recorder()
    with entered([recorder.plugin("a"), recorder.plugin("b")], "around_process", INFO):
        recorder.seen.append("inside")
    assert ["+a", "+b", "inside", "-b", "-a"] == recorder.seen


def test_contexts_entered_are_left_when_a_later_one_fails() -> None:
    """A failure on the way in leaves nothing entered."""
    recorder = Recorder()
    with (
        pytest.raises(PluginError, match="Plugin 'b' failed in around_process: KeyError"),
        entered([recorder.plugin("a"), recorder.plugin("b", fails="in")], "around_process", INFO),
    ):
        recorder.seen.append("inside")
    assert ["+a", "-a"] == recorder.seen


def test_all_contexts_are_left_when_one_fails_on_its_way_out() -> None:
    """A failure on the way out names the plugin, and the others are left all the same."""
    recorder = Recorder()
    plugins = [recorder.plugin("a"), recorder.plugin("b", fails="out"), recorder.plugin("c")]
    with (
        pytest.raises(PluginError, match="Plugin 'b' failed in around_process on its way out: KeyError: 'b'"),
        entered(plugins, "around_process", INFO),
    ):
        pass
    assert ["+a", "+b", "+c", "-c", "-b", "-a"] == recorder.seen


def test_what_is_raised_inside_stays_itself() -> None:
    """A plugin that fails on the way out after a failure inside adds a note to that, and does not hide it."""
    recorder = Recorder()
    with (
        pytest.raises(ZeroDivisionError) as caught,
        entered([recorder.plugin("a", fails="out")], "around_process", INFO),
    ):
        raise ZeroDivisionError("inside")
    assert ["Plugin 'a' failed in around_process on its way out: KeyError: 'a'."] == caught.value.__notes__


def test_no_context_swallows_what_is_raised_inside() -> None:
    """What happens inside goes on, whatever a plugin makes of it."""
    with pytest.raises(ZeroDivisionError), entered([Recorder().plugin("a", swallows=True)], "around_process", INFO):
        raise ZeroDivisionError


def test_a_hook_may_return_no_context() -> None:
    """None means that there is nothing to enter."""
    with entered([Plugin.create("a").with_around_process(lambda info: None)], "around_process", INFO):
        pass


def test_a_generator_is_no_context() -> None:
    """A forgotten decorator is named."""

    def around(info: InstanceInfo) -> Any:
        yield

    def entering() -> AbstractContextManager[None]:
        return entered([Plugin.create("a").with_around_process(around)], "around_process", INFO)

    with pytest.raises(PluginError, match=r"must return a context manager.*see contextlib\.contextmanager"), entering():
        pass


def test_the_first_decorator_is_outermost() -> None:
    """The first plugin sees a call first and its result last."""
    assert "a(b(3))" == decorated([wraps("a"), wraps("b")], len)("abc")


def test_an_error_of_the_function_stays_its_own() -> None:
    """What a decorated function raises is no failure of the plugin."""
    with pytest.raises(ZeroDivisionError):
        decorated([wraps("a")], lambda: 1 // 0)()


@pytest.mark.parametrize("module", ["pluggy", "asyncio", "skyward.model.spec.image", "skyward.registry"])
def test_a_worker_loads_little_for_its_plugins(module: str) -> None:
    """Importing the folds loads nothing that only the client needs."""
    script = f"import skyward.plugin, sys; sys.exit({module!r} in sys.modules)"
    assert 0 == subprocess.run([sys.executable, "-c", script], check=False).returncode
