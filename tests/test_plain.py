"""What is shown of foreign text neither moves the cursor, nor sets anything, nor hides anything."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, strategies as st

import skyward as sky
from skyward.cli.terminal import table
from skyward.console.line_style import dressed
from skyward.console.state import NodeView, RunningTask, State, step
from skyward.console.wording import Line
from skyward.link.failure import RemoteTraceback
from skyward.model.events.event import InfraCreating, Progress
from skyward.plain import coloured_line, plain_line, plain_text

HOSTILE = "a\x1b]0;title\x07b\x1b]52;c;cm0gLXJm\x1b\\c\x1b[2J\x1b[1;1Hd\u202ee\U000e0041\x9b31mf\rg\x08"
SHOWN = "abcd\\u202ee\\U000e004131mfg"


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("plain", "plain"),
        ("grün, 日本, 👩\u200d🚀, क्\u200dष, ❤\ufe0f", "grün, 日本, 👩\u200d🚀, क्\u200dष, ❤\ufe0f"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]8;;http://e\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPq#0\x1b\\sixel", "sixel"),
        ("\x1b_Gf=100;AAAA\x1b\\image", "image"),
        ("bell\x07 back\x08 zero\x00 next\x85", "bell back zero next"),
        ("lone \x1b", "lone "),
        (
            "gnp.\u202eexe\u202c \u2066x\u2069 \u200fy \u061cz",
            "gnp.\\u202eexe\\u202c \\u2066x\\u2069 \\u200fy \\u061cz",
        ),
        ("ze\u200bro \ufeffbom so\u00adft fil\u3164ler", "ze\\u200bro \\ufeffbom so\\u00adft fil\\u3164ler"),
        ("tag\U000e0041 variant\U000e0101 half\ud800", "tag\\U000e0041 variant\\U000e0101 half\\ud800"),
        ("line\u2028one", "line\\u2028one"),
    ],
)
def test_what_a_terminal_would_act_on(text: str, plain: str) -> None:
    """Sequences are taken out; what is hidden or turns text around is spelled out, and all else stays."""
    assert plain == plain_text(text) == plain_line(text)


def test_lines_stay_in_a_text_and_not_in_a_cell() -> None:
    """A name with an end of line would forge a row."""
    assert "a\n\tb" == plain_text("a\n\tb")
    assert "a\\n b" == plain_line("a\n\tb")


def test_colours_may_stay() -> None:
    """Nothing else of a terminal's; they end with the line."""
    assert "\x1b[1;31mred\x1b[0m" == coloured_line("\x1b[1;31mred\x1b[5A\x1b]0;x\x07")
    assert "none" == coloured_line("no\x1b[Kne")


@given(st.text(st.characters(exclude_categories=())))
def test_nothing_gets_through(text: str) -> None:
    """Whatever it is made of, a terminal and a file can take it."""
    shown = plain_text(text)
    shown.encode()
    kinds = {unicodedata.category(each) for each in shown if each not in "\n\t\u200c\u200d"}
    assert set() == kinds & {"Cc", "Cs", "Zl", "Zp"}
    assert plain_text(shown) == shown


def test_tables() -> None:
    """A cloud's id of a machine is one cell, and as wide as it looks."""
    rows = table([("ID", "POOL"), ("i-1\nFORGED row", HOSTILE)], indent="").splitlines()
    assert ["ID               POOL", f"i-1\\nFORGED row  {SHOWN}"] == rows


def test_errors() -> None:
    """Words of clouds and nodes are in many of them."""
    error = sky.ProvisionError(f"The cloud answered: {HOSTILE}", hint=HOSTILE)
    assert f"The cloud answered: {SHOWN} {SHOWN}" == str(error)
    assert f"\nTraceback\n  {SHOWN}" == str(RemoteTraceback(f"Traceback\n  {HOSTILE}"))


def test_lines_of_nodes() -> None:
    """With and without colours."""
    for colours in (False, True):
        [row] = dressed(Line(f"\x1b[2J{HOSTILE.replace(chr(13), '')}", "log", 3), colours=colours)
        assert row.endswith(SHOWN)
        assert "\x1b]" not in row
        assert "\x1b[2J" not in row


def test_panels() -> None:
    """What the live consoles draw is plain before they draw it."""
    view = NodeView(detail=HOSTILE, instance_type=HOSTILE)
    state = State(provider=HOSTILE, region=HOSTILE)
    assert {SHOWN} == {
        view.detail,
        view.instance_type,
        state.provider,
        state.region,
        RunningTask(HOSTILE, 0, 0.0).function,
    }
    assert SHOWN == step(State(), InfraCreating(provider=HOSTILE)).provider
    assert [SHOWN] == list(step(State(), Progress(label=HOSTILE, done=1)).bars)


def test_errors_have_no_password() -> None:
    """Errors repeat the user's input, and may be read by others."""
    with pytest.raises(
        sky.ConfigError, match=r"must be one line of text, not 'own @ https://\*\*\*@x\.example"
    ) as caught:
        sky.Image(pip=["own @ https://me:p@ss@x.example/a\nb"])
    assert "ss@" not in str(caught.value)
    assert "ubuntu@10.0.0.5:2222" == str(sky.NodeError("ubuntu@10.0.0.5:2222"))
