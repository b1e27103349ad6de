"""Where L_k is tabulated: a mesh of packets left and window, and how to read between its nodes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy import sparse

    Floats = NDArray[np.float64]
    Integers = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Mesh:
    """Packets left and window, the nodes' product; its values lie from ``offset`` in a vector.

    Cubic between packets left (linear up to ``bent_to``), linear between windows. Up to dup_t +
    y_to packets L_k has kinks, where cubic pieces would overshoot.
    """

    left: Floats
    window: Floats
    bent_to: float
    offset: int

    @property
    def size(self) -> int:
        """Number of nodes."""
        return len(self.left) * len(self.window)

    @property
    def end(self) -> int:
        """First place of the vector after the values."""
        return self.offset + self.size

    def nodes(self) -> tuple[Floats, Floats]:
        """Return packets left and window of every node."""
        return (
            np.repeat(self.left, len(self.window)),
            np.tile(self.window, len(self.left)),
        )

    def stencil(self, left: Floats, window: Floats) -> tuple[Integers, Floats]:
        """Return the places in the vector that a value is made of, and their weights: (N, 8)."""
        row, weights = _around(self.left, left, self.bent_to)
        last, top = len(self.window) - 1, len(self.left) - 1
        column = np.searchsorted(self.window, window, side="right") - 1
        column = np.clip(column, 0, max(last - 1, 0))
        after = np.minimum(column + 1, last)
        width = self.window[after] - self.window[column]
        share = np.clip((window - self.window[column]) / np.where(width > 0, width, 1.0), 0, 1)
        places = np.empty((len(left), 8), dtype=np.intp)
        parts = np.empty((len(left), 8))
        for node, weight in enumerate(weights):
            base = self.offset + np.clip(row + node - 1, 0, top) * (last + 1)
            places[:, 2 * node] = base + column
            places[:, 2 * node + 1] = base + after
            parts[:, 2 * node] = weight * (1 - share)
            parts[:, 2 * node + 1] = weight * share
        return places, parts


def _around(mesh: Floats, x: Floats, bent_to: float) -> tuple[Integers, list[Floats]]:
    """Return for each x the node before it and the weights of the four nodes around it."""
    x = np.clip(x, mesh[0], mesh[-1])
    i = np.minimum(np.searchsorted(mesh, x, side="right") - 1, len(mesh) - 2)
    # Nodes beyond the ends; the pieces that would use them are linear.
    wide = np.concatenate([[mesh[0] - 1], mesh, [mesh[-1] + 1]])
    nodes = [wide[a : len(wide) - 3 + a] for a in range(4)]
    gaps = [x - node[i] for node in nodes]
    share = gaps[1] / (nodes[2] - nodes[1])[i]
    linear = (x < bent_to) | (i == 0) | (i == len(mesh) - 2)
    weights = []
    for a, plain in enumerate((0.0, 1 - share, share, 0.0)):
        b, c, d = (other for other in range(4) if other != a)
        scale = (nodes[a] - nodes[b]) * (nodes[a] - nodes[c]) * (nodes[a] - nodes[d])
        cubic = gaps[b] * gaps[c] * gaps[d] * (1 / scale)[i]
        weights.append(np.where(linear, plain, cubic))
    return i, weights


def graded(low: float, high: float, *, step: float, ratio: float, even_to: float) -> Floats:
    """Return a mesh from ``low`` past ``high``: even steps first, then steps in proportion."""
    even = np.arange(low, max(min(even_to, high), low) + step, step)
    count = max(math.ceil(math.log(max(high / even[-1], 1.0)) / math.log1p(ratio)), 0)
    return np.concatenate([even, even[-1] * (1 + ratio) ** np.arange(1, count + 1)])


@dataclass(frozen=True, slots=True)
class FewProducts:
    """A sparse matrix of ``count`` rows for a few products, entry by entry in the order of rows.

    It adds in the order in which scipy's does, so both give the same bits. A product takes four
    times as long, and to import scipy's as long as some eighty products.
    """

    row: Integers
    place: Integers
    part: Floats
    count: int

    def __matmul__(self, vector: Floats) -> Floats:
        """Return the product with a vector."""
        products = self.part * vector[self.place]
        return np.bincount(self.row, products, self.count).astype(np.float64, copy=False)


def matrix(
    places: Integers, parts: Floats, size: int, *, few: bool
) -> sparse.csr_array | FewProducts:
    """Return the matrix that makes values of a vector of ``size`` by their stencils.

    ``few`` says that it is for a few products.
    """
    used = parts != 0
    lengths = used.sum(axis=1)
    if few:
        row = np.repeat(np.arange(len(places)), lengths)
        return FewProducts(row, places[used], parts[used], len(places))
    from scipy import sparse  # noqa: PLC0415 - where few losses come, it takes longer than they do

    starts = np.concatenate([[0], np.cumsum(lengths)])
    return sparse.csr_array((parts[used], places[used], starts), shape=(len(places), size))
