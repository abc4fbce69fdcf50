"""A project of files for tests of what travels to nodes."""

import importlib
import sys

import pytest


@pytest.fixture
def project(tmp_path, monkeypatch):
    """
    Make an empty folder on the path, and forget the modules imported from it.
    """
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def write(root, files):
    """
    Write files with the given text, a dictionary of path and text.
    """
    for path, text in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def load(*names):
    importlib.invalidate_caches()
    for name in names:
        importlib.import_module(name)


def paths(files):
    return [file.path for file in files]
