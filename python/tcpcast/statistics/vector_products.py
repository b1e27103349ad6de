"""Sums of products with bit-identical results on every processor.

The operator ``@`` calls BLAS, whose order of additions (and rounding) depends on the processor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def dot_product(x: NDArray[Any], y: NDArray[Any]) -> float:
    """Return the sum of the products of two vectors."""
    return float(np.add.reduce(x * y))


def matrix_product(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """Return the product of two matrices."""
    result: NDArray[Any] = np.einsum("ij,jk->ik", a, b)
    return result
