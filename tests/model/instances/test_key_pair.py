"""A key pair is made once, and stays where it was made."""

from __future__ import annotations

import pickle

import asyncssh

from skyward.model.instances.key_pair import KeyPair


def test_halves_belong_together() -> None:
    """And are the same at every look."""
    pair = KeyPair()
    assert asyncssh.import_private_key(pair.private).export_public_key().decode().strip() == pair.public
    assert pair.public == pair.public
    assert KeyPair().public != pair.public


def test_private_half_is_neither_shown_nor_sent() -> None:
    """A copy elsewhere is another key."""
    pair = KeyPair()
    assert "KEY" not in repr(pair).upper().replace("KEYPAIR", "")
    assert pickle.loads(pickle.dumps(pair)).public != pair.public
