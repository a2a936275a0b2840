"""``python -m selinger``."""

from __future__ import annotations

import sys

from selinger.cli import main

if __name__ == "__main__":
    sys.exit(main())
