"""Optional packages, imported at their first use."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from contextlib import chdir
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpcast.process.errors import MachineError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

is_own_process = False
"""True in a process of the command or the web page; False if a script imports the package."""


def import_matplotlib() -> None:
    """Import matplotlib, with its default settings in a process of tcpcast.

    matplotlib reads ``matplotlibrc`` in the current directory, or else that of the user. Plots of a
    command must not depend on these files, so the import runs in the directory of matplotlib's
    default file. In scripts, user settings apply.

    Raises
    ------
    MachineError
        matplotlib is not installed, or a settings file cannot be read.
    """
    try:
        spec = None if "matplotlib" in sys.modules else importlib.util.find_spec("matplotlib")
        if is_own_process and spec is not None and spec.origin is not None:
            with chdir(Path(spec.origin).parent / "mpl-data"):
                importlib.import_module("matplotlib")
        importlib.import_module("matplotlib.figure")
    except ImportError as missing:
        raise MachineError(
            "plots need matplotlib, which is not installed: pip install matplotlib"
        ) from missing
    except (OSError, ValueError) as error:
        raise MachineError(f"matplotlib cannot be imported: {error}") from error


def import_arrow(what: str) -> ModuleType:
    """Import ``pyarrow`` for ``what``, a noun in the plural.

    Raises
    ------
    MachineError
        The package is not installed.
    """
    try:
        return importlib.import_module("pyarrow")
    except ImportError as missing:
        raise MachineError(
            f"{what} need pyarrow, which is not installed: pip install 'tcpcast[parquet]'"
        ) from missing


class TabularResult:
    """A result with a main table: HTML in notebooks, and an Arrow stream for other packages."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """Return the result as HTML for notebooks, formatted as in reports."""
        # Results do not depend on the package that formats them, which a notebook loads.
        notebook = importlib.import_module("tcpcast.report.notebook")
        return str(notebook.result_html(self))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the main table as an Arrow stream, for example for ``polars.DataFrame(result)``.

        Raises
        ------
        MachineError
            pyarrow is not installed.
        """
        table = self._make_arrow_table(import_arrow("Arrow tables"))
        return table.__arrow_c_stream__(requested_schema)

    def _make_arrow_table(self, arrow: ModuleType) -> Any:
        """Return the main table as a ``pyarrow.Table``."""
        raise NotImplementedError


def verdict_text(findings: Sequence[object]) -> str:
    """Return findings as the sentence of reports, which results do not depend on."""
    return str(importlib.import_module("tcpcast.report.verdict").verdict_text(findings))


def import_dataframe_package(name: str) -> ModuleType:
    """Import ``pandas`` or ``polars`` for a method ``to_NAME``.

    Raises
    ------
    MachineError
        The package is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as missing:
        raise MachineError(
            f"to_{name} requires {name}, which is not installed: pip install {name}"
        ) from missing
