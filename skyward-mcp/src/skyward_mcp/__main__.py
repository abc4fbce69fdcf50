"""`python -m skyward_mcp`, which is the command `skyward-mcp`."""

from __future__ import annotations

import sys

from skyward_mcp.command import main

if __name__ == "__main__":
    sys.exit(main())
