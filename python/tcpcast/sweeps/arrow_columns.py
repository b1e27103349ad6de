"""Columns of Parquet files from lists.

``pyarrow.array`` imports pandas, if installed, to check the type of a list. This import takes as
long as the simulation of a few cells.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType


def make_arrow_column(arrow: ModuleType, values: Sequence[Any], kind: Any) -> Any:
    """Return the same array as ``pyarrow.array(values, kind)``.

    Parameters
    ----------
    arrow
        The module ``pyarrow``.
    values
        Values; None for null.
    kind
        ``float64``, ``int64``, ``bool_`` or ``string``.
    """
    known = None
    if None in values:
        known = _pack_bits(arrow, np.array([value is not None for value in values], dtype=bool))
    if kind == arrow.string():
        return arrow.Array.from_buffers(kind, len(values), [known, *_encode_texts(arrow, values)])
    if kind == arrow.bool_():
        data = _pack_bits(arrow, np.array([bool(value) for value in values], dtype=bool))
    else:
        filled = values if known is None else [0 if value is None else value for value in values]
        numbers = np.float64 if kind == arrow.float64() else np.int64
        data = arrow.py_buffer(np.array(filled, dtype=numbers))
    return arrow.Array.from_buffers(kind, len(values), [known, data])


def make_text_list_column(arrow: ModuleType, values: Sequence[Sequence[str]]) -> Any:
    """Return an array of lists of texts, with Parquet's name for the elements."""
    ends = np.array([*accumulate(map(len, values), initial=0)], dtype=np.int32)
    within = make_arrow_column(arrow, [text for each in values for text in each], arrow.string())
    buffers = [None, arrow.py_buffer(ends)]
    kind = arrow.list_(arrow.field("element", arrow.string()))
    return arrow.Array.from_buffers(kind, len(values), buffers, children=[within])


def _pack_bits(arrow: ModuleType, truths: Any) -> Any:
    return arrow.py_buffer(np.packbits(truths, bitorder="little"))


def _encode_texts(arrow: ModuleType, values: Sequence[str | None]) -> tuple[Any, Any]:
    """Return the offsets of the texts, and their concatenated bytes."""
    parts = [b"" if value is None else value.encode() for value in values]
    ends = np.array([*accumulate(map(len, parts), initial=0)], dtype=np.int32)
    return arrow.py_buffer(ends), arrow.py_buffer(b"".join(parts))
