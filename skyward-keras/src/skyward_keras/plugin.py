"""
The plugin: what it refuses, what nodes get, and what is around processes and tasks.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from attrs import evolve, field, frozen

from skyward import ConfigError, Image, InstanceInfo, PluginError
from skyward.hookspecs import Cluster, LaunchCommand, hookimpl
from skyward.model.fields.requirement import check_named_once, version_of
from skyward.packages import importing, with_packages
from skyward.plugin import during, name_of
from skyward.registry import plugin

__all__ = ["BACKENDS", "VARIABLE", "Keras"]

BACKENDS = ("jax", "tensorflow", "torch")
"""Backends that Keras trains with; each has a plugin of the same name."""

VARIABLE = "KERAS_BACKEND"
"""By which Keras learns of its backend, when it is loaded and never again."""


def _backend(instance: object, attribute: Any, value: str) -> None:
    """Refuse a backend that Keras does not train with."""
    if value not in BACKENDS:
        known = ", ".join(map(repr, BACKENDS))
        raise ConfigError(f"backend={value!r} is none that Keras trains with; those are {known}.")


def _version(value: Any) -> str | None:
    """Return the version to install, checked."""
    return version_of(value, example="3.15.1")


@frozen
class Keras:
    """
    Have Keras on the nodes, on a backend that is set before it is loaded.

    It brings the backend's own plugin, which brings the wheels and forms the world of a broadcast; where the pool has
    that plugin too, it stands before this one, and what it says holds.
    On JAX, a broadcast trains on the devices of all ranks; on the others, the user's code wraps its model, as Keras's
    guides show.
    As a decorator of one function it does the latter part, on nodes that have Keras and have not loaded it yet.

    Args:
        backend: `"jax"`, `"tensorflow"` or `"torch"`.
        version: Version of keras, such as `"3.15.1"`; None or `"latest"` for the newest.

    Raises:
        ConfigError: If a value is none of what its field takes.

    >>> Keras().backend
    'jax'
    """

    backend: str = field(default="jax", validator=_backend)
    version: str | None = field(default=None, converter=_version)
    name = "keras"

    @hookimpl
    def skyward_requires(self) -> tuple[Any, ...]:
        """Add the backend's plugin."""
        return (plugin(self.backend)(),)

    @hookimpl
    def skyward_validate(self, cluster: Cluster) -> None:
        """Refuse what cannot work, before anything is rented for it."""
        names = {name_of(plugin) for plugin in cluster.spec.plugins}
        if others := sorted({*BACKENDS} & names - {self.backend}):
            raise ConfigError(
                f"Keras with backend={self.backend!r} and the plugin {others[0]!r} are in one pool, where Keras would "
                "take no part in what the latter forms.",
                hint=f"Write plugins=[sky.plugins.keras(backend={self.backend!r})].",
            )
        image = cluster.spec.image
        chosen = image.env.get(VARIABLE, self.backend)
        if chosen != self.backend:
            raise ConfigError(
                f"Image(env={{...}}) says {VARIABLE}={chosen}, and the plugin backend={self.backend!r}.",
                hint="Leave the former out.",
            )
        check_named_once(["keras"], self.version, image.pip)

    @hookimpl
    def skyward_transform(self, image: Image, cluster: Cluster) -> Image:
        """Add the package, unless nodes on this machine have it as it is."""
        return with_packages(image, ["keras" if self.version is None else f"keras=={self.version}"], cluster)

    @hookimpl
    def skyward_launcher(self, command: LaunchCommand) -> LaunchCommand:
        """Choose the backend, for whatever loads Keras first."""
        return evolve(command, env={**command.env, VARIABLE: self.backend})

    @hookimpl
    @contextmanager
    def skyward_around_process(self, info: InstanceInfo) -> Iterator[None]:
        """Load Keras before the first task."""
        with importing(self.name, info):
            self._load()
        yield

    @hookimpl
    def skyward_decorate(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap the call in what the backend needs."""
        self._load()
        from skyward_keras.naming import reset_names

        fn = during(reset_names)(fn)
        if self.backend != "jax":
            return fn
        from skyward_keras import own
        from skyward_keras.parallel import PARALLEL

        own.prepare()
        return during(PARALLEL.around)(fn)

    def _load(self) -> None:
        """Load Keras on the backend, which it has for the rest of the process."""
        if "keras" not in sys.modules:
            os.environ[VARIABLE] = self.backend
        import keras

        if keras.backend.backend() != self.backend:
            raise PluginError(
                f"Keras is loaded on {keras.backend.backend()!r} in this process, and {self.backend!r} is asked for.",
                plugin=self.name,
                hook="decorate",
                hint=f"Open the pool with plugins=[..., sky.plugins.keras(backend={self.backend!r})].",
            )
