"""The provider of docs/write-a-provider.md passes the checks that every provider has to, against a cloud over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from skyward.testing.conformance import ProviderConformance, Switches
from tests.clouds.heron import provider as written
from tests.clouds.heron.cloud import KEY, Cloud, page
from tests.clouds.heron.heron_switches import switches

pytestmark = pytest.mark.clouds


@pytest.mark.timeout(120)
class TestHeron(ProviderConformance):
    """The test cloud."""

    @pytest.fixture
    def provider(self, heron: Cloud, monkeypatch: pytest.MonkeyPatch) -> Any:
        """Give it."""
        monkeypatch.setattr(written, "LEAST_DEADLINE", 1.0)
        return heron.provider()

    @pytest.fixture
    def switches(self, heron: Cloud) -> Switches:
        """Return the faults that the test cloud can inject."""
        return switches(heron)

    @pytest.fixture
    def hidden(self) -> Sequence[str]:
        """Give the key."""
        return [KEY]


def test_the_page_has_the_provider_that_is_tested() -> None:
    """Line for line, and it is short enough to be read."""
    text = Path(written.__file__).read_text(encoding="utf-8")
    assert text == page()
    assert len(text.splitlines()) <= 120
