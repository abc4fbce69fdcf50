"""The plugin refuses what cannot be, keeps its keys at home, and follows OpenTelemetry's variables."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import skyward as sky
from skyward_otel.exporting import Destination
from skyward_otel.plugin import Otel


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (
            {"endpoint": "localhost:4318"},
            r"endpoint must be the address of a collector, such as 'http://localhost:4318'",
        ),
        ({"endpoint": 4318}, "endpoint must be the address of a collector"),
        ({"endpoint": "http://localhost:4318/v1/traces"}, "is that of traces alone. Leave out /v1/"),
        ({"headers": ["key"]}, "headers must be a dict of texts"),
        ({"headers": {"key": 5}}, "headers must be a dict of texts"),
        ({"timeout": 0}, "timeout must be seconds, above 0"),
        ({"timeout": True}, "timeout must be seconds, above 0"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, Any], match: str) -> None:
    """When it is said, and with what would be right."""
    with pytest.raises(sky.ConfigError, match=match):
        sky.plugins.otel(**given)


def test_a_key_is_neither_shown_nor_sent_to_nodes() -> None:
    """Nodes export nothing themselves, so they need neither key nor address."""
    plugin = Otel(endpoint="https://collector.example", headers={"authorization": "Bearer secret"}, traces=False)
    assert "secret" not in repr(plugin)
    pickled = pickle.dumps(plugin)
    assert b"secret" not in pickled
    assert b"collector.example" not in pickled
    assert Otel(traces=False) == pickle.loads(pickled)
    with pytest.raises(sky.ConfigError) as refused:
        Otel(headers={"authorization": b"secret"})  # type: ignore[dict-item]
    assert "secret" not in str(refused.value)


def test_a_signal_is_off_where_the_plugin_or_the_variables_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """`none` is OpenTelemetry's word for it."""
    to = Destination(metrics=False)
    assert [True, False, True] == [to.wants(signal) for signal in ("traces", "metrics", "logs")]
    monkeypatch.setenv("OTEL_LOGS_EXPORTER", "none")
    assert [True, False, False] == [to.wants(signal) for signal in ("traces", "metrics", "logs")]
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    assert [False] * 3 == [to.wants(signal) for signal in ("traces", "metrics", "logs")]
