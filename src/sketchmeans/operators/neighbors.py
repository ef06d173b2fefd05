"""The neighbours kernel of samples: K = FFᵀ with a few numbers per row of F, all of it linear in n.

F is sparse: a row has the weights of its nearest anchors, over the roots of what these hold. Its
Gram matrix, its products and the sums of its rows over clusters are sparse products over fixed
blocks of rows, added up in their order.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.blocks import row_blocks, rows_of
from sketchmeans.checkpoints import first_rows
from sketchmeans.engine import ALONE, Crew, Run
from sketchmeans.engine.nearest import PackedAnchors
from sketchmeans.kernels.neighbors import NeighborOptions
from sketchmeans.operators.anchors import (
    MORE,
    Anchors,
    Frame,
    find_anchors,
    scaled_rows,
    searched_natively,
)
from sketchmeans.operators.base import NewPoints
from sketchmeans.operators.cross import CrossKernel
from sketchmeans.operators.features import FeatureOperator, product_block
from sketchmeans.operators.gram import add_counts, finished, span_pairs, sums_densely
from sketchmeans.operators.neighbor_features import (
    NeighborFeatures,
    NeighborPoints,
    regular_csr,
    rows_at_once,
    squared_lengths,
)
from sketchmeans.operators.streams import Blockwise, span_rows
from sketchmeans.rows import Part, Rows, is_sparse


class NeighborOperator(FeatureOperator):
    """The neighbours kernel of samples, K = FFᵀ.

    Nothing is known of it before ``build``, which finds the anchors and sums up what they hold.
    Distances: n × anchors for ``build``, and again for every stream unless F is held in memory.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
    options : NeighborOptions
    weights : array of shape (n_samples,), optional
        Positive, or zero.
    seed : int
        Fixes the anchors.
    """

    map: NeighborFeatures
    held: Any = None
    is_psd = True

    def __init__(
        self, X: Any, options: NeighborOptions, *, weights: FloatArray | None = None, seed: int = 0
    ) -> None:
        super().__init__(X.shape[0], np.float64, weights)
        self._X, self.options, self.seed = X, options, seed
        self._known_diagonal: FloatArray | None = None

    @property
    def engine(self) -> str:
        """What computes the products."""
        return "sparse features"

    @property
    def data(self) -> Any:
        """The rows that the kernel is of."""
        return self._X

    @property
    def diagonal_entries(self) -> int:
        """None: ‖F_i‖² are met with F."""
        return 0

    @property
    def stream_distances(self) -> int:
        """The distances that one stream over all rows takes."""
        return 0 if self.holds else self.shape[0] * self.map.count

    def planned_sizes(self) -> tuple[int, int, int]:
        """Return, before they are found, anchors of a set, of all sets, and numbers of a row."""
        m, graphs = self.options.anchors_for(self.shape[0]), self.options.graphs
        return m, m * graphs, min(self.options.n_neighbors, m) * graphs

    def _rows_at_once(self) -> int:
        return rows_at_once(self.n_features, min(self.options.n_neighbors, self.planned_sizes()[0]))

    def span_rows(self) -> int:
        """Return the rows of a span: whole blocks."""
        return span_rows(self.shape[0], self._rows_at_once())

    def block_bytes(self) -> int:
        """Return what the nearest anchors of a block of rows take while they are looked for."""
        rows, p = min(self.shape[0], self._rows_at_once()), self.n_features
        m, _, stored = self.planned_sizes()
        least = 4 * self.row_bytes(rows) + rows * 8 * 6 * stored
        if is_sparse(self._X):
            # scikit-learn's own: distances of some hundred rows and anchors at a time.
            return least + rows * 8 * (4 * (self.options.n_neighbors + MORE) + 512)
        if searched_natively(self._X):
            return least + PackedAnchors.scratch_bytes(m, p)
        looked_at = self.options.n_neighbors + MORE
        return least + rows * 8 * (2 * looked_at * (p + 8) + 512)

    def scratch_bytes(self, width: int, run: Run) -> int:
        """Return what a stream allocates that sums up rows of F over so many clusters."""
        sums = self.planned_sizes()[1] * width * 8
        rows = self._rows_at_once() * width * 40
        return run.n_threads * (self.block_bytes() + rows + 2 * sums) + 4 * sums

    def build(self, run: Run = ALONE) -> int:
        """Find the anchors and what they hold; keep F if the run allows copies.

        Returns the distances that it took: those that placed the anchors (but for K-means), n ×
        anchors, and again where an anchor is among the nearest of no sample. Such ones are let go
        and the nearest are looked for anew, so that new points do not meet them either.
        """
        frame = Frame.of(self._X, self.options.metric)
        graphs, distances = self._find_graphs(frame)
        while True:
            # NOTE: what anchors hold is not known yet, and is left at one.
            self.map = NeighborFeatures(frame, graphs, [np.ones(len(one)) for one in graphs])
            sums = self._visit(run)
            distances += self.shape[0] * self.map.count
            if all(each.all() for each in sums):
                break
            graphs = [
                one.only(np.flatnonzero(each)) for one, each in zip(graphs, sums, strict=True)
            ]
        self.map = NeighborFeatures(frame, graphs, sums)
        if isinstance(self.held, Rows):
            work = partial(_features_of, scales=self.map.scales)
            self.held = self.held.run(work, size=self.span_rows(), stay=True, name="features")[0][0]
        elif self.holds:
            numbers = np.empty(self.held.shape)
            for rows in row_blocks(len(numbers)):  # NumPy copies indices to make them wide
                numbers[rows] = self.map.scales[self.held[rows]]
            self.held = regular_csr(self.held, numbers, self.map.count)
        return distances

    def _find_graphs(self, frame: Frame) -> tuple[list[Anchors], int]:
        """Return the sets of anchors, and the distances that placed them."""
        n, options = self.shape[0], self.options
        possible = np.arange(n) if self.weights is None else np.flatnonzero(self.weights)
        count = min(options.anchors_for(n), len(possible))
        graphs: list[Anchors] = []
        distances = 0
        for index in range(options.graphs):
            seed = int(np.random.default_rng([self.seed, index]).integers(2**31 - 1))
            placed = find_anchors(self._X, frame, possible, self.weights, count, seed)
            m, distances = placed.points.shape[0], distances + placed.distances
            # Half of them, where there are no more: were all anchors near to every sample, the
            # kernel would be the same for all pairs.
            near = options.n_neighbors if options.n_neighbors < m else max(m // 2, 1)
            graphs.append(Anchors(placed.points, near))
            if placed.are_all:
                break
        return graphs, distances

    def _visit(self, run: Run) -> list[FloatArray]:
        """Return what each set of anchors holds, from one stream; keep F if there is room.

        The numbers of F wait for what the anchors hold.
        """
        self.held, self.holds = None, False
        work = self.blockwise(partial(_visit_block, keep=run.pack))
        kept, total = self.stream(work, run, stay=True, sums=True, name="nearest-anchors")
        if run.pack:
            self.held, self.holds = kept[0], True
        ends = np.cumsum([len(one) for one in self.map.graphs])
        sums = np.split(total, ends[:-1])
        return [held / one.n_neighbors for held, one in zip(sums, self.map.graphs, strict=True)]

    def take_rows(self, X: Any) -> None:
        """Put these rows, or None, in the place of the samples."""
        self._X, self._known_diagonal = X, None

    def block(self, rows: slice) -> Any:
        """Return rows of F, a CSR matrix that knows nothing of weights."""
        if self.holds:
            return rows_of(self.held, rows)
        columns = self.anchors_of(rows)
        return regular_csr(columns, self.map.scales[columns], self.map.count)

    def anchors_of(self, rows: slice) -> IntArray:
        """Return the nearest anchors of samples in every set, counted through."""
        if self.holds:
            F = rows_of(self.held, rows)
            return F.indices.reshape(F.shape[0], -1).astype(np.int32, copy=False)
        blocks = row_blocks(rows.stop - rows.start, self.map.rows_at_once)
        parts = [
            self.map.neighbors(self.samples(slice(rows.start + part.start, rows.start + part.stop)))
            for part in blocks
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def few_rows(self, rows: IntArray) -> Any:
        """Return some rows of F by their numbers, as ``block`` does."""
        if self.holds:
            return self.held[rows]
        blocks = row_blocks(len(rows), self.map.rows_at_once)
        return sparse.vstack([self.map.block(self._X[rows[b]]) for b in blocks], format="csr")

    def distances_of(self, n_rows: int) -> int:
        """Return the distances that ``few_rows`` takes."""
        return 0 if self.holds else n_rows * self.map.count

    def features(self, rows: slice) -> Any:
        """Return rows of F, a CSR matrix, scaled by the roots of the weights."""
        return self._weighted(self.block(rows), rows)

    def _weighted(self, F: Any, rows: slice) -> Any:
        return F if self.root_weights is None else scaled_rows(F, self.root_weights[rows])

    def all_features(self) -> Any:
        """Return F as a whole, for few samples; the diagonal of K is met with it."""
        rows = slice(0, self.shape[0])
        F = self.block(rows)
        self._known_diagonal = squared_lengths(F)
        return self._weighted(F, rows)

    def gram_of_features(self, run: Run = ALONE) -> FloatArray:
        """Return FᵀF, from one stream, which also meets the diagonal of K.

        A number of F is that of its anchor, times the root of a weight. So what is summed up is how
        much of the samples two anchors share; without weights that is a count, and exact.
        """
        if self.root_weights is None and sums_densely() and not isinstance(self._X, Rows):
            total, lengths = self._counted(run)
        else:
            finish = partial(_shared_pairs, width=self.map.count)
            work = Blockwise(_shared_block, self.map.rows_at_once, finish)
            (lengths,), total = self.stream(work, run, sums=True, name="gram")
        self._known_diagonal = lengths
        return finished(total, self.map.scales)

    def _counted(self, run: Run) -> tuple[FloatArray, FloatArray]:
        """Return in how many samples two anchors meet, and ‖F_i‖²; threads share one matrix."""
        n, width = self.shape[0], self.map.count
        spans = row_blocks(n, self.span_rows())

        def visited(done: int) -> Iterator[list[IntArray]]:
            at_once = len(spans) if self.holds else run.n_threads
            for first in range(done, len(spans), at_once):
                group = range(first, min(first + at_once, len(spans)))
                crew.each(visit, group)
                yield [found.pop(index) for index in group]
                run.report(group.stop, len(spans))
                stage.offer(partial(state, group.stop))

        def state(done: int) -> dict[str, Any]:
            return first_rows({"lengths": lengths}, spans[done - 1].stop) | {"G": G, "done": done}

        def visit(index: int) -> None:
            found[index] = self.anchors_of(spans[index])
            lengths[spans[index]] = self.lengths_of(spans[index], found[index])

        found: dict[int, IntArray] = {}
        with Crew(run.n_threads) as crew, run.checkpoint.stage("counts", n, width) as stage:
            G, lengths, done = np.zeros((width, width)), np.empty(n), 0
            if stage.state is not None:
                G, lengths, done = (stage.state[name] for name in ("G", "lengths", "done"))
            add_counts(visited(done), G, crew)
            stage.finish(partial(state, len(spans)))
        return G, lengths

    def lengths_of(self, rows: slice, columns: IntArray) -> FloatArray:
        """Return ‖F_i‖² of samples whose nearest anchors are known."""
        parts = row_blocks(rows.stop - rows.start, self.map.rows_at_once)
        numbers = (self.map.scales[columns[part]] for part in parts)
        return np.concatenate([np.vecdot(one, one) for one in numbers])

    def product(self, coefficients: FloatArray, run: Run = ALONE) -> Any:
        """Return F @ coefficients, n × width in float64, from one stream."""
        work = self.blockwise(partial(product_block, coefficients=coefficients))
        return self.stream(work, run, stay=True, name="embed").kept[0]

    def _tile(self, rows: slice, columns: slice, out: FloatArray) -> FloatArray:
        out[...] = (self.block(rows) @ self.block(columns).T).toarray()
        return out

    def _diagonal(self) -> FloatArray:
        if self._known_diagonal is None:
            work = self.blockwise(_lengths_block)
            self._known_diagonal = self.stream(work, name="diagonal").kept[0]
        return self._known_diagonal

    def against(self, X: Any) -> CrossKernel:
        """Return the features of new points; see ``NeighborPoints``."""
        return self.for_new_points().against(X)

    def for_new_points(self) -> NeighborPoints:
        """Return what embeds new points: the anchors, and not the samples."""
        return NeighborPoints(self.map)

    def diagonal_of(self, X: Any) -> FloatArray:
        """Return κ(x, x) of new points."""
        return self.for_new_points().diagonal_of(X)

    def landmarks_at(self, X: Any, *, fine: bool = True) -> NewPoints:
        """Refuse: this kernel has anchors of its own."""
        raise ValueError("the neighbours kernel has anchors, and takes no landmarks.")


def _visit_block(part: NeighborOperator, rows: slice, *, keep: bool) -> Part:
    """Return the nearest anchors of samples, if they are kept, and what each anchor holds."""
    found = part.map.neighbors(part.samples(rows))
    weights = None if part.root_weights is None else part.root_weights[rows] ** 2
    mass = None if weights is None else np.repeat(weights, found.shape[1])
    held = np.bincount(found.ravel(), mass, part.map.count)
    return Part((found,) if keep else (), held.astype(np.float64, copy=False))


def _features_of(columns: IntArray, *, scales: FloatArray) -> Part:
    """Return F of rows whose nearest anchors are known."""
    return Part((regular_csr(columns, scales[columns], len(scales)),))


def _shared_block(part: NeighborOperator, rows: slice) -> Part:
    """Return ‖F_i‖² of rows, their anchors, and the roots of their weights."""
    columns = part.anchors_of(rows)
    root = np.ones(len(columns)) if part.root_weights is None else part.root_weights[rows]
    return Part((part.lengths_of(rows, columns), columns, root))


def _shared_pairs(span: Part, *, width: int) -> Part:
    """Return ‖F_i‖² of a span of rows, and how much of them any two anchors share."""
    lengths, columns, root = span.kept
    return Part((lengths,), span_pairs(columns, root, width))


def _lengths_block(part: NeighborOperator, rows: slice) -> Part:
    """Return ‖F_i‖² of rows."""
    return Part((squared_lengths(part.block(rows)),))
