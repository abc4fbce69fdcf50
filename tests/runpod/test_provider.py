"""Facts of the provider that need no call."""

from __future__ import annotations

import pytest

import skyward as sky


@pytest.mark.parametrize(("cloud", "strangers"), [("secure", False), ("community", True), ("all", True)])
def test_machines_of_the_community_belong_to_strangers(cloud: str, strangers: bool) -> None:
    """What they send is opened as data unless the user says otherwise; that of RunPod's own data centres is not."""
    assert strangers is sky.RunPod(api_key="rpa_x", cloud=cloud).skyward_facts().strangers
