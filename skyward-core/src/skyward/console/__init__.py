"""
What people see of a pool while it is up.
"""

from skyward.console.mode import Console, choose, open_console

__all__ = ["Console", "choose", "open_console"]
