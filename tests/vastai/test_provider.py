"""Facts of the provider that need no call."""

from __future__ import annotations

import skyward as sky


def test_its_machines_belong_to_strangers() -> None:
    """Verified or not: what they send is opened as data unless the user says otherwise."""
    assert sky.VastAI(api_key="hidden").skyward_facts().strangers
