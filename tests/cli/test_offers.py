"""Offers of several providers, side by side."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from skyward.cli.main import main

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no credentials, no project and an empty cache."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SKYWARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("RUNPOD_API_KEY", raising=False)


def test_offers_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """This machine is one that costs nothing."""
    assert 0 == main(["offers", "--provider", "local"])
    header, row = capsys.readouterr().out.splitlines()
    assert ["PROVIDER", "TYPE", "GPU"] == header.split()[:3]
    assert row.startswith("local ")
    assert "$0/h" in row


def test_offers_are_listed_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    """As one JSON value."""
    assert 0 == main(["offers", "--provider", "local", "--json", "--sort=-vcpus"])
    found = json.loads(capsys.readouterr().out)
    assert (["local"], {}) == (found["asked"], found["failures"])
    assert ["local"] == [offer["provider"] for offer in found["offers"]]


@pytest.mark.parametrize("words", [["--gpu", "H100"], ["--spot"], ["--vcpus", "100000"], ["--region", "mars"]])
def test_what_nothing_meets_is_no_failure(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """It was asked, and sells none."""
    assert 0 == main(["offers", "--provider", "local", *words])
    assert "local: no offer found.\n" == capsys.readouterr().out


def test_a_provider_that_cannot_be_asked_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Once, beside what the others sell; what it sells is not known."""
    assert 1 == main(["offers", "--provider", "local", "--provider", "runpod"])
    said = capsys.readouterr()
    assert "local" in said.out
    assert 1 == said.err.count("runpod cannot be asked for lack of credentials")
    assert 1 == main(["offers", "--provider", "runpod", "--json"])
    assert ["runpod"] == list(json.loads(capsys.readouterr().out)["failures"])


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--gpu", "H1000"], "H100"),
        (["--sort", "prise"], 'Did you mean "price"?'),
        (["--provider", "locl"], "Did you mean 'local'?"),
        (["--spot", "--on-demand"], "exclude each other"),
        (["--max-price", "-1"], "max_price"),
    ],
)
def test_what_is_typed_wrongly(words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The nearest is offered."""
    assert 2 == main(["offers", *words])
    said = capsys.readouterr()
    assert ("", True) == (said.out, complaint in said.err)
