"""The command ``tcpcast``, and ``python -m tcpcast``."""

from __future__ import annotations

import sys

from tcpcast.interrupts import ignore, leave_early


def main() -> int:
    """Run the command line of this process, and return its exit code."""
    leave_early()
    from tcpcast.cli import main as run  # noqa: PLC0415 - takes a moment

    code = run()
    ignore()
    return code


if __name__ == "__main__":
    sys.exit(main())
