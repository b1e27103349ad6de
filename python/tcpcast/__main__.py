"""The command ``tcpcast``, and ``python -m tcpcast``."""

from __future__ import annotations

import gc
import sys

from tcpcast.process.interrupts import exit_on_interrupt, ignore_interrupts

TYPE_CHECKING = False  # as in typing, which takes a while to import
if TYPE_CHECKING:
    from pathlib import Path


def main() -> int:
    """Run the command line of this process, and return its exit code."""
    exit_on_interrupt()
    # Imports create up to 100,000 permanent objects. A garbage collection per 700 objects would
    # take 10 % of the run time. Garbage collection at exit is not needed either.
    gc.set_threshold(100_000, 10, 10)
    if may_need_worker_processes(" ".join(sys.argv[1:]).replace("=", " ")):
        from tcpcast.process import forkserver  # noqa: PLC0415 - see above

        forkserver.start_forkserver()
    try:
        from tcpcast.cli import main as run  # noqa: PLC0415 - slow import

        code = run()
    except (ImportError, AttributeError, TypeError, ValueError):
        from pathlib import Path  # noqa: PLC0415 - only after a failure

        if not is_native_module_stale(Path(__file__).resolve().parent):
            raise
        print("tcpcast: the native module is older than crates/; run: make setup", file=sys.stderr)
        return 3
    ignore_interrupts()
    if "_duckdb" not in sys.modules:  # its binding reports uncollected objects at exit
        gc.freeze()
    return code


def is_native_module_stale(package: Path) -> bool:
    """Return True in a checkout whose native module is missing or older than its sources."""
    crates = package.parents[1] / "crates"
    modules = [module.stat().st_mtime for module in package.glob("_native*.so")]
    sources = (source.stat().st_mtime for source in crates.glob("*/src/**/*.rs"))
    return crates.is_dir() and max(sources, default=0.0) > max(modules, default=0.0)


def may_need_worker_processes(typed: str) -> bool:
    """Return True if the command line looks like a sweep that simulates.

    This check runs before the import of the argument parser, which takes as long as the imports of
    workers. If the check misses a sweep, the command starts the forkserver itself.
    """
    simulates = "packet" in typed or "--engine" not in typed
    is_excluded = any(option in typed for option in ("--processes 1", "--dask", "--help"))
    return typed.startswith("sweep ") and simulates and not is_excluded


if __name__ == "__main__":
    sys.exit(main())
