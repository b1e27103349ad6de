"""Evaluation of formulas over large arrays in blocks, so that intermediate results stay in cache.

A numpy formula makes about thirty passes over its arrays. With a million values each pass accesses
main memory; with a few thousand it does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcpcast.array_types import Table

VALUES_PER_BLOCK = 1 << 14
"""Values per block: about ten such arrays fit into the cache of one core."""


def evaluate_in_blocks(formula: Callable[..., Table], *arguments: NDArray[Any]) -> Table:
    """Evaluate a formula in blocks; return its results by name, in the broadcast shape.

    Parameters
    ----------
    formula
        Takes arrays and returns arrays that can be broadcast with them. It must work element by
        element. It is called once if there are few values.
    arguments
        Its arguments.
    """
    if not any(each.ndim for each in arguments):  # cells of a sweep: scalars
        return {name: np.asarray(each) for name, each in formula(*arguments).items()}
    shape = np.broadcast_shapes(*(each.shape for each in arguments))
    size = math.prod(shape)
    if size <= VALUES_PER_BLOCK:
        results = formula(*arguments)
        return {name: np.broadcast_to(each, shape) for name, each in results.items()}
    joined: Table = {}
    flat = [_flat_view(each, shape) for each in arguments]
    for start in range(0, size, VALUES_PER_BLOCK):
        part = slice(start, start + VALUES_PER_BLOCK)
        block = formula(*(values[part] if varies else values for values, varies in flat))
        for name, values in block.items():
            if not start:
                joined[name] = np.empty(size, values.dtype)
            joined[name][part] = values
    return {name: values.reshape(shape) for name, values in joined.items()}


def _flat_view(values: NDArray[Any], shape: tuple[int, ...]) -> tuple[Any, bool]:
    """Return a sequence whose slices are the broadcast values in order, and whether to slice it.

    A single value is not expanded and must not be sliced.
    """
    if values.size == 1:
        return values.reshape(()), False
    spread = np.broadcast_to(values, shape)
    return (spread.reshape(-1) if spread.flags.c_contiguous else spread.flat), True
