"""Which names are known: exact ones, of libraries that are there, loaded when they are named."""

from __future__ import annotations

import subprocess
import sys

import pytest

from skyward.link.data.allowed_names import DataNames, names_of
from skyward.link.data.maker import Callee, Refused
from skyward.model.spec.trust_setting import Data


class Mine:
    """A class of the user's."""


def test_a_name_stands_for_a_class_or_for_nothing_that_can_be_called() -> None:
    """A function never comes out of a pickle, not even one of those that make values."""
    names = DataNames([Mine])
    assert Mine is names.find(__name__, "Mine")
    assert ValueError is names.find("builtins", "ValueError")
    found = names.find("numpy._core.numeric", "_frombuffer")
    assert isinstance(found, Callee)
    assert not callable(found)
    assert "not called" in repr(found)


@pytest.mark.parametrize(
    "module", ["numpy.core.multiarray", "torch", "pandas", "pyarrow", "pytz", "skyward.link.data.tables", ""]
)
def test_a_name_that_is_not_known_is_refused(module: str) -> None:
    """Whether its library is there or not."""
    with pytest.raises(Refused, match=r"load$"):
        DataNames().find(module, "load")


def test_names_of_the_same_classes_are_made_once() -> None:
    """Every result is opened by them."""
    assert names_of(Data(Mine)) is names_of(Data(Mine))
    assert names_of(Data()) is not names_of(Data(Mine))


def test_a_library_is_loaded_when_a_pickle_names_it() -> None:
    """Not by a result that holds nothing of it."""
    script = (
        "import sys; from skyward.link.payload import load; from skyward.link.payload_making import dump\n"
        "from skyward.model.spec.trust_setting import DATA\n"
        "sent = dump({'loss': 0.5}, data=True); sent.trust = DATA; load(sent); print('numpy' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "False\n" == run.stdout
