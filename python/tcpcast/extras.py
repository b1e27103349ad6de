"""Packages that few need, and that are imported when they are."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from tcpcast.errors import EnvironmentFault

if TYPE_CHECKING:
    from types import ModuleType


def frame_package(name: str) -> ModuleType:
    """Import ``pandas`` or ``polars`` for a method ``to_NAME``.

    Raises
    ------
    EnvironmentFault
        It is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as missing:
        raise EnvironmentFault(
            f"to_{name} needs {name}, which is not installed: pip install {name}"
        ) from missing
