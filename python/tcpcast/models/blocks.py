"""Formulas over large arrays a block at a time, so that what they leave on their way is in cache.

A formula in numpy is some thirty passes over its arrays. Of a million values each pass goes to
memory and back; of a few thousand none does.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

BLOCK = 1 << 14
"""Values in a block: some ten arrays of so many are in the cache of one core."""


def over_blocks(
    formula: Callable[..., dict[str, NDArray[Any]]], *arguments: NDArray[Any]
) -> dict[str, NDArray[Any]]:
    """Return what a formula gives, by name, in the broadcast shape of its arguments.

    Parameters
    ----------
    formula
        Takes arrays that broadcast and gives arrays that broadcast with them, each value by those
        in its place alone. It is called once where there are few values.
    arguments
        Its arguments.
    """
    if not any(each.ndim for each in arguments):  # the cells of a sweep: no shapes to broadcast
        return {name: np.asarray(each) for name, each in formula(*arguments).items()}
    shape = np.broadcast_shapes(*(each.shape for each in arguments))
    size = math.prod(shape)
    if size <= BLOCK:
        found = formula(*arguments)
        return {name: np.broadcast_to(each, shape) for name, each in found.items()}
    whole: dict[str, NDArray[Any]] = {}
    flat = [_flat(each, shape) for each in arguments]
    for start in range(0, size, BLOCK):
        part = slice(start, start + BLOCK)
        block = formula(*(values[part] if varies else values for values, varies in flat))
        for name, values in block.items():
            if not start:
                whole[name] = np.empty(size, values.dtype)
            whole[name][part] = values
    return {name: values.reshape(shape) for name, values in whole.items()}


def _flat(values: NDArray[Any], shape: tuple[int, ...]) -> tuple[Any, bool]:
    """Return what slices of all values in their order are taken of, without a copy of them.

    And whether they vary: a single value stays one.
    """
    if values.size == 1:
        return values.reshape(()), False
    spread = np.broadcast_to(values, shape)
    return (spread.reshape(-1) if spread.flags.c_contiguous else spread.flat), True
