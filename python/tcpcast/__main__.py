"""The command ``tcpcast``, and ``python -m tcpcast``."""

from __future__ import annotations

import sys

from tcpcast.interrupts import ignore, leave_early


def main() -> int:
    """Run the command line of this process, and return its exit code."""
    leave_early()  # imports take a moment, and Ctrl-C within them is no fault
    from tcpcast.cli import main as run  # noqa: PLC0415 - see above

    code = run()
    ignore()
    return code


if __name__ == "__main__":
    sys.exit(main())
