"""A provider is made once more from what it was made with."""

from __future__ import annotations

import threading

import cloudpickle
from attrs import Factory, field, frozen

from skyward.engine.instances.provider_recipe import ProviderRecipe


@frozen
class Cloud:
    """A provider that opens something, and may be given a key."""

    region: str
    key: str | None = field(default=None, repr=False)
    lock: object = field(default=Factory(threading.Lock), init=False, eq=False, repr=False)


def test_what_it_has_opened_stays_behind() -> None:
    """A lock cannot be written down."""
    recipe = cloudpickle.loads(cloudpickle.dumps(ProviderRecipe.of(Cloud("eu"))))
    assert recipe.make() == Cloud("eu")
    assert recipe.secrets == ()


def test_a_secret_is_named_where_it_was_given() -> None:
    """Not where it is left to the environment."""
    assert ProviderRecipe.of(Cloud("eu", key="hush")).secrets == ("key",)


def test_what_is_no_class_of_attrs_is_kept_as_it_is() -> None:
    """It has to be picklable then."""
    assert ProviderRecipe.of("a provider").make() == "a provider"
