"""Table of L_k: a mesh of remaining packets and window, and interpolation between its nodes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tcpcast.array_types import Floats

    Integers = NDArray[np.intp]


class InterpolationBlock(NamedTuple):
    """N values, each a weighted sum of C entries of a vector.

    ``which`` are the indices of the values, (N,); ``places`` the indices of the entries and
    ``parts`` their weights, both (C, N).
    """

    which: Integers
    places: Integers
    parts: Floats


@dataclass(frozen=True, slots=True)
class InterpolationMesh:
    """Product mesh of remaining packets and window; its values begin at ``offset`` in a vector.

    Interpolation is linear in the window. In remaining packets it is cubic, but linear up to
    ``kinks_to`` = dup_t + y_to packets: at the kinks of L_k, cubic interpolation would overshoot.
    """

    left: Floats
    window: Floats
    kinks_to: float
    offset: int

    @property
    def size(self) -> int:
        """Number of nodes."""
        return len(self.left) * len(self.window)

    @property
    def end(self) -> int:
        """Index of the vector after the last value."""
        return self.offset + self.size

    def nodes(self) -> tuple[Floats, Floats]:
        """Return remaining packets and window of every node."""
        return (
            np.repeat(self.left, len(self.window)),
            np.tile(self.window, len(self.left)),
        )

    def stencil(self, left: Floats, window: Floats) -> list[InterpolationBlock]:
        """Return nodes and weights that interpolate each of N values: four or eight per value."""
        last, top = len(self.window) - 1, len(self.left) - 1
        column = np.searchsorted(self.window, window, side="right") - 1
        column = np.clip(column, 0, max(last - 1, 0))
        after = np.minimum(column + 1, last)
        width = self.window[after] - self.window[column]
        share = np.clip((window - self.window[column]) / np.where(width > 0, width, 1.0), 0, 1)
        x = np.clip(left, self.left[0], self.left[-1])
        i = np.minimum(np.searchsorted(self.left, x, side="right") - 1, top - 1)
        linear = (x < self.kinks_to) | (i == 0) | (i == top - 1)
        blocks = []
        for mask, first, weigh in ((linear, 0, _linear_weights), (~linear, -1, _cubic_weights)):
            which = np.flatnonzero(mask)
            row, near, far = i[which], column[which], after[which]
            beyond, within = share[which], 1 - share[which]
            weights = weigh(self.left, row, x[which])
            places = np.empty((2 * len(weights), len(which)), dtype=np.intp)
            parts = np.empty(places.shape)
            for node, weight in enumerate(weights):
                base = self.offset + (row + first + node) * (last + 1)
                np.add(base, near, out=places[2 * node])
                np.add(base, far, out=places[2 * node + 1])
                np.multiply(weight, within, out=parts[2 * node])
                np.multiply(weight, beyond, out=parts[2 * node + 1])
            blocks.append(InterpolationBlock(which, places, parts))
        return blocks


def _linear_weights(mesh: Floats, i: Integers, x: Floats) -> list[Floats]:
    """Return the weights of nodes i and i + 1 for each x between them."""
    share = (x - mesh[i]) / (mesh[1:] - mesh[:-1])[i]
    return [1 - share, share]


def _cubic_weights(mesh: Floats, i: Integers, x: Floats) -> list[Floats]:
    """Return the weights of nodes i - 1 to i + 2 for each x between the middle two."""
    nodes = [mesh[a : len(mesh) - 3 + a] for a in range(4)]
    before = i - 1
    gaps = [x - node[before] for node in nodes]
    weights = []
    for a in range(4):
        b, c, d = (other for other in range(4) if other != a)
        scale = (nodes[a] - nodes[b]) * (nodes[a] - nodes[c]) * (nodes[a] - nodes[d])
        weights.append(gaps[b] * gaps[c] * gaps[d] * (1 / scale)[before])
    return weights


def make_graded_mesh(
    low: float, high: float, *, step: float, ratio: float, constant_step_to: float
) -> Floats:
    """Return a mesh from ``low`` past ``high``: first constant, then proportional steps."""
    even = np.arange(low, max(min(constant_step_to, high), low) + step, step)
    count = max(math.ceil(math.log(max(high / even[-1], 1.0)) / math.log1p(ratio)), 0)
    return np.concatenate([even, even[-1] * (1 + ratio) ** np.arange(1, count + 1)])


@dataclass(frozen=True, slots=True)
class BlockMatrix:
    """A sparse matrix with ``count`` rows, in blocks.

    Its products are bit-identical to those of ``scipy.sparse``, whose import takes as long as about
    eighty products of this class.
    """

    blocks: list[InterpolationBlock]
    count: int

    def __matmul__(self, vector: Floats) -> Floats:
        """Return the product with a vector."""
        result = np.empty(self.count)
        for block in self.blocks:
            products = np.take(vector, block.places)
            products *= block.parts
            result[block.which] = np.add.reduce(products, axis=0)
        return result
