"""
Sources and pages use the words that an engineer would search for, and functions say what they do by a plain verb.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from checks.tree import ROOT, files, parsed, relative, sources

PERSONS = re.compile(r"\b(?:whoever|nobody|somebody|anybody|(?:is|are) told)\b", re.IGNORECASE)

TERMS = {
    r"strays?": "orphan",
    r"vault": "result store",
    r"(?:seen|sees|sent) (?:off|home)": "disconnected, drained, stopped",
    r"tells? whether": "return whether, report whether",
    r"left as (?:it was|they were)": "cleaned up on exit",
    r"costs what it costs": "billing continues",
    r"(?:giv(?:e|es|en|ing)|gave) (?:\w+ ){0,2}back": "terminate, release, return",
    r"(?:take[sn]?|took) (?:it|them|a machine|machines|back) back|taken back": "reclaim",
    r"take[sn]? note": "record",
    r"told": "sent, called with, reported",
    r"hears?|hearing": "receive, subscribe",
    r"lets? go": "release, close, delete",
    r"ends? (?:itself|themselves)": "terminate",
    r"in vain": "without success",
    r"signs? of life": "heartbeat",
    r"for want of": "for lack of",
    r"knocks?": "connect",
    r"goodbye": "close",
    r"dear(?:er|est)?": "expensive",
    r"anew": "again",
    r"visitors?": "connection",
    r"(?:of|to|a) strangers?|stranger's": "third party, attacker",
    r"the house": "the architecture",
    r"held against": "checked against, compared with",
    r"errands?": "order",
}
"""Private words, as patterns, and what the field says instead."""

VERBS = frozenset(
    """
    Abandon Abort Accept Acknowledge Acquire Add Align Allow Answer Append Apply Ask Assign Attach Attribute
    Await Begin Bill Bind Block Boot Bootstrap Build Cache Call Cancel Change Check Choose Clear Close Collect
    Compare Compress Compute Configure Confirm Connect Continue Contribute Convert Copy Count Create Cut Decide
    Declare Decode Delete Deliver Describe Destroy Direct Discard Disconnect Dispatch Do Download Drain Draw Drop Emit
    Enable Encode Encrypt End Enter Estimate Evict Exchange Exclude Exit Expand Expect Explain Extend Extract
    Fail Fetch Fill Filter Find Finish Flush Follow Forget Format Forward Free Gather Generate Get Group Guard
    Handle Hash Hold Ignore Import Insert Install Interrupt Invoke Isolate Iterate Join Keep Kill Launch Lease
    Leave Limit List Listen Load Lock Log Look Make Map Mark Match Measure Merge Migrate Mount Move Name
    Negotiate Normalise Notify Offer Open Order Pack Parse Pass Patch Pickle Ping Plan Poll Pop Post Prepare
    Print Probe Prune Publish Pull Purge Push Queue Quit Quote Raise Read Reboot Rebuild Recall Receive Reclaim
    Record Redact Reduce Refresh Refuse Register Reject Release Remove Render Renew Rent Repeat Replace Report
    Request Requeue Reserve Reset Resolve Restart Restore Resume Retry Return Revoke Round Run Sample Save Scale
    Schedule Search Select Sell Send Serialise Serve Set Share Show Shuffle Shut Sign Skip Sort Split Start Stop
    Store Submit Subscribe Suspend Switch Tag Take Terminate Test Throttle Transfer Translate Treat Truncate Try
    Turn Unblock Undo Unlock Unpickle Unsubscribe Update Upload Use Validate Verify Wait Wake Walk Warn Watch
    Withdraw Wrap Write Yield
    """.split()
)
"""What the docstring of a function begins with: one verb for one action, as an engineer would search for it."""

PAGES = (
    ROOT / "README.md",
    *(path for path in files(".sh") if path.relative_to(ROOT).parts[0].startswith("skyward-")),
    # What tests wrote.
    *(path for path in files(".md") if ROOT / "docs" in path.parents and path.name != "faults.md"),
)


def test_the_subject_is_a_thing() -> None:
    """Sources and pages say which program, login, key or thread does it."""
    assert [] == _lines_with(PERSONS)


@pytest.mark.parametrize(("private", "usual"), TERMS.items())
def test_words_are_those_of_the_field(private: str, usual: str) -> None:
    """Sources and pages use the words that an engineer would search for."""
    assert [] == [f"{place}: {usual}" for place in _lines_with(_pattern(private))]


def test_a_function_opens_with_a_plain_verb() -> None:
    """The docstring of each function says first what it does, as in Return, Start, Terminate."""
    assert [] == [place for path in sources() for place in _without_a_verb(path)]


def _pattern(private: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{private})\b", re.IGNORECASE)


def _lines_with(pattern: re.Pattern[str]) -> list[str]:
    """List the lines of sources, scripts and pages in which a pattern occurs."""
    return [
        f"{relative(path)}:{number}"
        for path in (*sources(), *PAGES)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if pattern.search(line)
    ]


def _without_a_verb(path: Path) -> list[str]:
    """List the functions of a module whose docstrings begin with anything but a plain verb."""
    if path.suffix != ".py":
        return []
    return [
        f"{relative(path)}:{node.lineno} {node.name}: {first}"
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for first in (ast.get_docstring(node) or "").split()[:1]
        if first.rstrip(",:.") not in VERBS
    ]
