"""Columns equal those of pyarrow and do not import pandas."""

from __future__ import annotations

import io
import subprocess
import sys
from typing import Any

import pytest
from tcpcast.sweeps.arrow_columns import make_arrow_column, make_text_list_column

arrow = pytest.importorskip("pyarrow", reason="needs pyarrow: the extra sweep")
parquet = pytest.importorskip("pyarrow.parquet")

COLUMNS: list[tuple[list[Any], Any]] = [
    ([1.5, None, -2.0, 1e300], arrow.float64()),
    ([0.1], arrow.float64()),
    ([None, None], arrow.float64()),
    ([], arrow.float64()),
    ([7, -(2**62), None, 3], arrow.int64()),
    ([True, None, False, *[True] * 9], arrow.bool_()),
    (["", "größer", None, "\U0001f600", "a\n"], arrow.string()),
    ([None], arrow.string()),
]


def _file(values: Any) -> bytes:
    sink = io.BytesIO()
    parquet.write_table(arrow.table({"x": values}), sink, store_schema=False)
    return sink.getvalue()


@pytest.mark.parametrize(("values", "kind"), COLUMNS)
def test_column_equals_pyarrow_array(values: list[Any], kind: Any) -> None:
    result, expected = make_arrow_column(arrow, values, kind), arrow.array(values, kind)
    result.validate(full=True)
    assert result.equals(expected)
    assert result.null_count == expected.null_count
    assert _file(result) == _file(expected)


@pytest.mark.parametrize("values", [[], [[]], [["a", "bc"], [], ["ü"]]])
def test_lists_of_texts_equal_pyarrow_array(values: list[list[str]]) -> None:
    kind = arrow.list_(arrow.field("element", arrow.string()))
    result, expected = make_text_list_column(arrow, values), arrow.array(values, kind)
    result.validate(full=True)
    assert result.equals(expected)
    assert _file(result) == _file(expected)


def test_sweep_imports_no_slow_modules() -> None:
    """Importing each of these modules can take longer than simulating a cell."""
    command = [sys.executable, "-c", ASKED]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "4 []"


ASKED = """
import sys, tcpcast
scenario = tcpcast.load("one-path", changes={"run.duration": "40s"})
result = tcpcast.sweep(scenario, {"network.rtt": ["20ms", "40ms"]}, engines=["packet", "pftk"],
                      processes=1)
slow = {"pandas", "scipy", "pyarrow.compute", "pyarrow.dataset"}
print(len(result.to_arrow()), sorted(slow & set(sys.modules)))
"""
