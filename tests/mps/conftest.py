"""GPUs for the tests of this folder."""

from tests.nvidia.fixture import here

__all__ = ["here"]
