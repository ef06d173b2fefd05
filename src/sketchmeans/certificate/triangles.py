"""The triangle theorem: what three samples can have to do with each other in a partition.

Let Q = D^{−½}PD^{−½}: Q_ij is one over the weight of the cluster that i and j share, and 0 where
they share none. So Q_ij ≤ Q_ii, and Q_ij + Q_ik ≤ Q_ii + Q_jk: where i is with j and with k, these
two are together as well. Each is a linear inequality ⟨G, P⟩ ≤ 0, so ⟨K, P⟩ ≤ ⟨K + N − Σ μ_l G_l, P⟩
for all μ ≥ 0 and N ≥ 0. There are b³/2 of them; few are violated at a time, and those are added.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.blocks import row_blocks
from sketchmeans.certificate.spectral import EPS

NEW_CUTS = 70
"""Cuts that are added at a time, per sample."""
MOST_CUTS = 400
"""Cuts that there are at a time, per sample: for the memory that they take."""
ROW_CUTS = 4 * NEW_CUTS
"""Of these, cuts of one sample at the most."""
NEAR = 200
"""Samples of a row of Z, the largest, among which j and k are looked for."""
ASCENTS = 8
"""Accelerated steps on the multipliers μ in each step of the lift."""
VIOLATED = 1e-3
"""A cut is added where it is violated by this share of the mean of Q_ii."""


@dataclass(frozen=True)
class Cuts:
    """Some of the inequalities, with their multipliers.

    Coordinates are pairs i ≤ j of samples, times √2 off the diagonal: the length of a symmetric
    matrix is then the length of its coordinates. Every cut is scaled to length one.
    """

    b: int
    triples: IntArray
    """i, j, k of Q_ij + Q_ik ≤ Q_ii + Q_jk; k = −1 stands for Q_ij ≤ Q_ii."""
    keys: IntArray
    """i·b + j of the coordinates, rising."""
    G: Any
    """Cuts × coordinates, CSR."""
    mu: FloatArray
    step: float
    """1/‖G‖², for the steps on μ."""
    dtype: Any = np.float32
    adjoint: Any = field(init=False)
    """Gᵀ, CSR."""
    where: IntArray = field(init=False)
    """i·b + j of all entries that are touched, both halves, rising."""
    source: IntArray = field(init=False)
    """The coordinate of each of these entries."""
    stretch: FloatArray = field(init=False)
    """√2 off the diagonal, 1 on it."""
    shift: FloatArray = field(init=False)
    """Of the coordinates: Σ μ_l G_l, not stretched."""

    def __post_init__(self) -> None:
        i, j = np.divmod(self.keys, self.b)
        off = np.flatnonzero(i != j)
        where = np.concatenate([self.keys, j[off] * self.b + i[off]])
        order = np.argsort(where, kind="stable")
        source = np.concatenate([np.arange(len(self.keys)), off])
        stretch = np.where(i == j, 1.0, np.sqrt(2)).astype(self.dtype)
        for name, value in (
            ("adjoint", self.G.T.tocsr()),
            ("where", where[order]),
            ("source", source[order]),
            ("stretch", stretch),
            ("shift", (self.G.T @ self.mu) / stretch),
        ):
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.triples)

    def state(self) -> dict[str, Any]:
        """Return them for a checkpoint; see ``restored``."""
        numbers = {"mu": self.mu, "length": np.array([self.step])}
        stored = {"G_data": self.G.data, "G_indices": self.G.indices, "G_indptr": self.G.indptr}
        return {"triples": self.triples, "keys": self.keys, **numbers, **stored}

    def restored(self, state: dict[str, Any]) -> Cuts:
        """Return the cuts of such a state, of the same block."""
        shape = len(state["triples"]), len(state["keys"])
        stored = (state["G_data"], state["G_indices"], state["G_indptr"])
        G, step = sparse.csr_matrix(stored, shape=shape), float(state["length"][0])
        return Cuts(self.b, state["triples"], state["keys"], G, state["mu"], step, self.dtype)

    def entries(self, rows: slice) -> slice:
        """Return which of the touched entries lie in these rows."""
        ends = np.searchsorted(self.where, [rows.start * self.b, rows.stop * self.b])
        return slice(int(ends[0]), int(ends[1]))

    def ascend(self, T: FloatArray) -> None:
        """Improve μ for the matrix T: Z = max(T − Σ μ_l G_l, 0) comes nearer to what cuts allow."""
        adjoint, target = self.adjoint, T.ravel()[self.keys] * self.stretch
        mu, ahead, pace = self.mu.copy(), self.mu.copy(), 1.0
        for _ in range(ASCENTS):
            Z = np.maximum(target - adjoint @ ahead, 0)
            new = np.maximum(ahead + self.step * (self.G @ Z), 0)
            faster = (1 + np.sqrt(1 + 4 * pace**2)) / 2
            ahead = new + np.asarray((pace - 1) / faster, self.dtype) * (new - mu)
            mu, pace = new, faster
        self.mu[:] = mu
        self.shift[:] = (adjoint @ mu) / self.stretch

    def exact_shift(self, u: FloatArray) -> tuple[FloatArray, float]:
        """Return the touched entries of Σ μ_l G_l in float64, and how far rounding moves them.

        The second is the Frobenius norm of what the sum may be off by.
        """
        G, _ = _matrix(self.triples, self.keys, self.b, u)
        mu = self.mu.astype(np.float64)
        i, j = np.divmod(self.keys, self.b)
        stretch = np.where(i == j, 1.0, np.sqrt(2))
        adjoint = G.T.tocsr()
        terms = int(np.diff(adjoint.indptr).max(initial=0))
        off = (terms + 8) * EPS * float(np.linalg.norm(abs(adjoint) @ mu))
        return ((adjoint @ mu) / stretch)[self.source], off


def no_cuts(b: int, dtype: Any) -> Cuts:
    """Return an empty collection."""
    none = np.zeros(0, np.int64)
    G = sparse.csr_matrix((0, 0), dtype=dtype)
    return Cuts(b, none.reshape(0, 3), none, G, np.zeros(0, dtype), 1.0, dtype)


def _matrix(
    triples: IntArray, keys: IntArray | None, b: int, u: FloatArray
) -> tuple[Any, IntArray]:
    """Return the cuts as rows of length one over coordinates, in float64, and the coordinates."""
    i, j, k = triples.T
    three = k >= 0
    k = np.where(three, k, j)  # of a pair, what belongs to k has coefficient 0

    def key(one: IntArray, two: IntArray) -> IntArray:
        return np.minimum(one, two) * b + np.maximum(one, two)

    columns = np.stack([key(i, j), key(i, k), key(i, i), key(j, k)], axis=1)
    root = np.sqrt(0.5)
    values = np.stack(
        [
            root / (u[i] * u[j]),
            np.where(three, root / (u[i] * u[k]), 0.0),
            -1 / (u[i] * u[i]),
            np.where(three, -root / (u[j] * u[k]), 0.0),
        ],
        axis=1,
    )
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    rows = np.repeat(np.arange(len(triples)), 4).reshape(-1, 4)
    real = values != 0
    if keys is None:
        keys = np.unique(columns[real])
    places = np.searchsorted(keys, columns[real])
    shape = len(triples), len(keys)
    return sparse.csr_matrix((values[real], (rows[real], places)), shape=shape), keys


def with_new(old: Cuts, found: IntArray, u: FloatArray) -> Cuts:
    """Return the cuts that hold something, and new ones."""
    used = np.flatnonzero(old.mu > 0)
    triples = np.concatenate([old.triples[used], found])
    mu = np.concatenate([old.mu[used], np.zeros(len(found), old.dtype)])
    G, keys = _matrix(triples, None, old.b, u)
    v = np.ones(G.shape[0])
    norm = 1.0
    for _ in range(10):
        v = G @ (G.T @ v)
        norm = float(np.linalg.norm(v))
        v /= max(norm, 1e-300)
    G = G.astype(old.dtype)
    return Cuts(old.b, triples, keys, G, mu, 0.9 / max(norm, 1.0), old.dtype)


def violated(
    rows_of: Callable[[slice], FloatArray], u: FloatArray, old: Cuts, each: Any
) -> IntArray:
    """Return the triples of cuts that Z violates most, worst first, without those that are there.

    j and k are looked for only where Z_ij and Z_ik are positive: for others nothing is violated.
    """
    b = len(u)
    Q = np.empty((b, b), old.dtype)
    inverse = (1 / u).astype(old.dtype)

    def scale(rows: slice) -> None:
        Q[rows] = rows_of(rows)
        Q[rows] *= inverse[rows, None]
        Q[rows] *= inverse

    each(scale, row_blocks(b, 256))
    diagonal = Q.diagonal().copy()
    least = VIOLATED * float(diagonal.mean())
    strips = row_blocks(b, 16)
    found: list[tuple[FloatArray, IntArray]] = [(np.zeros(0), np.zeros((0, 3), int))] * len(strips)

    def search(rows: slice) -> None:
        few = [_violated_at(i, Q, diagonal, least) for i in range(rows.start, rows.stop)]
        found[rows.start // 16] = (
            np.concatenate([amounts for amounts, _ in few]),
            np.concatenate([triples for _, triples in few]),
        )

    each(search, strips)
    amounts = np.concatenate([amounts for amounts, _ in found])
    triples = np.concatenate([triples for _, triples in found])
    fresh = ~np.isin(_codes(triples, b), _codes(old.triples, b))
    amounts, triples = amounts[fresh], triples[fresh]
    room = min(NEW_CUTS * b, MOST_CUTS * b - int((old.mu > 0).sum()))
    return triples[np.argsort(-amounts, kind="stable")[: max(room, 0)]]


def _codes(triples: IntArray, b: int) -> IntArray:
    i, j, k = triples.T.astype(np.int64)
    return (i * (b + 1) + j + 1) * (b + 1) + k + 1


def _violated_at(
    i: int, Q: FloatArray, diagonal: FloatArray, least: float
) -> tuple[FloatArray, IntArray]:
    """Return the worst violations among the cuts whose corner is i, and their triples."""
    row = Q[i]
    near = np.flatnonzero(row > least)
    near = near[near != i]
    if len(near) > NEAR:
        near = np.sort(near[np.argpartition(-row[near], NEAR)[:NEAR]])
    # Of two, one must hold more than half of Q_ii.
    heavy = near[row[near] > (diagonal[i] + least) / 2]
    amounts = row[heavy, None] + row[near] - diagonal[i] - Q[np.ix_(heavy, near)]
    # Where both are heavy, a pair would be met twice; where they are one, it is the pair's cut.
    amounts[(heavy[:, None] > near) & (row[near] > (diagonal[i] + least) / 2)] = 0
    amounts[heavy[:, None] == near] = row[heavy] - diagonal[i]
    flat = amounts.ravel()
    places = np.flatnonzero(flat > least)
    if len(places) > ROW_CUTS:
        places = places[np.argpartition(-flat[places], ROW_CUTS)[:ROW_CUTS]]
    one, two = np.divmod(places, max(len(near), 1))
    j, k = heavy[one], near[two]
    k = np.where(j == k, -1, k)
    low, high = np.minimum(j, k), np.maximum(j, k)
    triples = np.column_stack(
        [np.full(len(j), i), np.where(k < 0, j, low), np.where(k < 0, k, high)]
    )
    return flat[places], triples
