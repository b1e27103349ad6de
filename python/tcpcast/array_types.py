"""Types of numpy arrays in annotations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

Counts = NDArray[np.uint64]

Table = dict[str, NDArray[Any]]
"""Columns of equal length by name."""
