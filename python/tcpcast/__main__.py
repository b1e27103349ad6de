"""The command ``tcpcast``, and ``python -m tcpcast``."""

from __future__ import annotations

import gc
import sys

from tcpcast.interrupts import ignore, leave_early


def main() -> int:
    """Run the command line of this process, and return its exit code."""
    leave_early()
    # To import what a command needs makes up to 100,000 objects, all of which stay: to look for
    # garbage among them every 700 takes a tenth of the time. At the end nothing looks once more.
    gc.set_threshold(100_000, 10, 10)
    from tcpcast.cli import main as run  # noqa: PLC0415 - takes a moment

    code = run()
    ignore()
    if "duckdb" not in sys.modules:  # its binding complains of what is not collected at the end
        gc.freeze()
    return code


if __name__ == "__main__":
    sys.exit(main())
