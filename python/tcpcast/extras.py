"""Packages that few need, and that are imported when they are."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from contextlib import chdir
from pathlib import Path
from typing import TYPE_CHECKING

from tcpcast.errors import MachineError

if TYPE_CHECKING:
    from types import ModuleType

is_own_process = False
"""True in a process of the command or the page; False if a script imports the package."""


def import_matplotlib() -> None:
    """Import matplotlib; with its default settings in a process of tcpcast.

    matplotlib reads ``matplotlibrc`` of the current folder, then the user's. Figures of a command
    must not depend on either, so the folder of the packaged defaults is current meanwhile. Scripts
    keep their settings.

    Raises
    ------
    MachineError
        It is not installed, or a file of settings cannot be read.
    """
    try:
        found = None if "matplotlib" in sys.modules else importlib.util.find_spec("matplotlib")
        if is_own_process and found is not None and found.origin is not None:
            with chdir(Path(found.origin).parent / "mpl-data"):
                importlib.import_module("matplotlib")
        importlib.import_module("matplotlib.figure")
    except ImportError as missing:
        raise MachineError(
            "figures need matplotlib, which is not installed: pip install matplotlib"
        ) from missing
    except (OSError, ValueError) as fault:
        raise MachineError(f"matplotlib cannot be imported: {fault}") from fault


def frame_package(name: str) -> ModuleType:
    """Import ``pandas`` or ``polars`` for a method ``to_NAME``.

    Raises
    ------
    MachineError
        It is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as missing:
        raise MachineError(
            f"to_{name} needs {name}, which is not installed: pip install {name}"
        ) from missing
