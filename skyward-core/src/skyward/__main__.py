"""`python -m skyward` is `sky`."""

from __future__ import annotations

import sys

from skyward.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
