"""What each method allocates, reckoned before it runs: the highest point, and what it returns."""

from __future__ import annotations

import math

import numpy as np

from sketchmeans.blocks import BLOCK
from sketchmeans.centers import rows_for_centers
from sketchmeans.engine import tile_rows
from sketchmeans.lowrank.cholesky import capacity_for, streams_columns
from sketchmeans.lowrank.exact import forms_matrix, useful_features
from sketchmeans.lowrank.filtered import block_width, is_filtered
from sketchmeans.lowrank.nystrom import auto_sampling, holds_columns
from sketchmeans.lowrank.request import Needs, Request
from sketchmeans.lowrank.sparse_features import SEEN_BEYOND
from sketchmeans.operators import KernelOperator, NeighborOperator
from sketchmeans.operators.anchors import room_bytes, searched_natively, takes_samples
from sketchmeans.operators.base import THREAD_BYTES
from sketchmeans.operators.gram import sums_densely
from sketchmeans.rows import Rows
from sketchmeans.sketches import SKETCHES, HadamardSketch

_VECTORS = 12
"""Vectors of n numbers that a method keeps beside its matrices: diagonals, sums, permutations."""

_SMALL = 14
"""Matrices of width × width, at most, while a core is decomposed."""


def spills(operator: KernelOperator) -> bool:
    """Whether what streams leave of all rows, such as the factor, goes to scratch files."""
    return isinstance(operator.data, Rows) and operator.data.spills


def _recovering(n: int, width: int) -> int:
    """Blocks of rows and small matrices of a decomposition of n × width numbers."""
    return 3 * min(n, BLOCK) * width * 8 + _SMALL * width * width * 8


def one_pass_needs(operator: KernelOperator, ask: Request) -> Needs:
    """W, Ω and the tiles of a pass; W, Ω and the dual when it is over."""
    n, width, rank = operator.shape[0], ask.width, ask.rank
    W = n * (width + 1) * 8
    Omega = n * width * np.dtype(SKETCHES.get(ask.sketch, HadamardSketch).dtype).itemsize
    if ask.n_passes > 1:
        Omega = max(Omega, n * width * operator.dtype.itemsize)
    dual = n * rank * 8
    early = n * rank * 8 if ask.truncation == "early" else 0
    passing = operator.scratch_bytes(width, ask.run) + _VECTORS * n * 8
    rows = min(n, BLOCK)  # of the data, at most half a million numbers, and of Ω, in float64
    audit = min(operator.row_bytes(3 * rows), 3 << 22) + rows * width * 8
    freed = _recovering(n, width)
    recovering = dual + early + freed + _VECTORS * n * 8
    kept = W + dual + early + 2 * n * 8 + freed
    return Needs(W + Omega + max(passing, audit, recovering), kept)


def takes_centers(operator: KernelOperator, ask: Request) -> bool:
    """Whether landmarks are centers of K-means."""
    sampling = auto_sampling(operator, ask.width) if ask.sketch == "auto" else ask.sketch
    return sampling == "kmeans"


def nystrom_needs(operator: KernelOperator, ask: Request) -> Needs:
    """The embedding and m × m matrices, what sampling takes, and C where it is held."""
    n, m = operator.shape[0], ask.width
    C = n * m * 8
    stages, centers = [], 0
    if takes_centers(operator, ask):
        # Centers are dense, also of sparse data: some for K-means, some as landmarks.
        centers = 8 * m * operator.n_features
        rows = min(n, rows_for_centers(m))
        stages.append(kmeans_bytes(rows, m, operator.row_bytes(rows)) + 4 * centers)
    elif ask.sketch == "column-norm":
        # A tile, its squares, and what makes it.
        rows = tile_rows(n)
        tiles = 4 * rows * rows * 8 + operator.row_bytes(4 * rows)
        stages.append(ask.run.n_threads * (tiles + THREAD_BYTES))
    elif ask.sketch == "leverage":
        stages.append(C + operator.columns_bytes(m, ask.run) + _recovering(n, m))
    recovering, kept = streaming_bytes(operator, m, ask, centers)
    return Needs(max([*stages, recovering]) + _VECTORS * n * 8, kept, spills(operator))


def streaming_bytes(
    operator: KernelOperator, m: int, ask: Request, centers: int = 0
) -> tuple[int, int]:
    """Return what ``from_landmarks`` allocates at the highest point, and what it leaves."""
    n, threads = operator.shape[0], ask.run.n_threads
    held = n * m * 8 if holds_columns(n, m, ask.rank) and not spills(operator) else 0
    rows = min(n, operator.rows_at_once(m))
    # Of a block: the rows as they are, prepared and packed; C; F in two precisions; a Gram matrix.
    own = operator.row_bytes(4 * rows) + 4 * rows * m * 8 + 2 * m * m * 8 + THREAD_BYTES
    if centers:
        own += 4 * rows * operator.n_features * 8 + 2 * centers
    small = _SMALL * m * m * 8 + 4 * centers + operator.row_bytes(2 * m)
    factor = 0 if spills(operator) else n * ask.rank * 8
    kept = held + factor + 5 * m * m * 8 + 2 * centers
    return held + factor + threads * own + small, kept


def cholesky_needs(operator: KernelOperator, ask: Request, batch: int) -> Needs:
    """F, what a round of ``batch`` pivots takes, and where F grows what it has outgrown.

    Where columns are streamed, F is that of a subsample, and its pivots are landmarks.
    """
    n, m = operator.shape[0], ask.width
    if streams_columns(n, m, ask.rank, ask.tolerance):
        few = min(n, rows_for_centers(m))
        pivoting = few * (m + 25 * batch) * 8 + operator.columns_bytes(batch, ask.run)
        pivoting += operator.row_bytes(few) + _recovering(few, m)
        recovering, kept = streaming_bytes(operator, m, ask)
        return Needs(max(pivoting, recovering) + _VECTORS * n * 8, kept, spills(operator))
    first = capacity_for(0, m, ask.tolerance)
    capacity = capacity_for(m, m, ask.tolerance)
    F = n * capacity * 8
    batch = min(batch, m)
    adding = n * batch * 25 + operator.columns_bytes(batch, ask.run)
    outgrown = F // 2 if capacity > first else 0
    working = F + max(adding, outgrown, _recovering(n, m)) + _VECTORS * n * 8
    return Needs(working, F + m * ask.rank * 8 + _recovering(n, m))


def exact_needs(operator: KernelOperator, ask: Request) -> Needs:
    """K and its copies where it is formed, the basis of Lanczos where it is not."""
    if isinstance(operator, NeighborOperator):
        return _sparse_features_needs(operator, ask)
    n, rank = operator.shape[0], min(ask.rank, operator.shape[0])
    columns = n * rank * 8
    vectors = _VECTORS * n * 8
    kept = 2 * columns + 2 * n * 8
    if features := useful_features(operator):
        count = features.map.count
        blocks = 8 * (_SMALL * count * count + 1024 * 5 * count)
        passing = operator.scratch_bytes(1, ask.run)
        return Needs(3 * columns + max(blocks, passing) + vectors, kept)
    if is_filtered(operator, rank):
        width = block_width(rank)
        W, recovering = n * (width + 1) * 8, _recovering(n, width)
        working = 6 * W + operator.scratch_bytes(width, ask.run) + vectors + recovering
        return Needs(working, W + columns + 2 * n * 8 + recovering)
    if forms_matrix(n, rank):
        K = n * n * 8
        forming = 3 * K + operator.columns_bytes(n, ask.run)
        deciding = 2 * K + 2 * columns
        return Needs(max(forming, deciding, K + 5 * columns) + vectors, kept)
    basis = min(n, max(2 * rank + 1, 20))
    passing = operator.scratch_bytes(1, ask.run)
    lanczos = n * (basis + rank) * 8 + 4 * n * 8 + passing
    return Needs(max(lanczos, 5 * columns) + vectors, kept)


def _sparse_features_needs(operator: NeighborOperator, ask: Request) -> Needs:
    """F where it is held, the anchors, and the matrix that is decomposed."""
    n, p, threads = operator.shape[0], operator.n_features, ask.run.n_threads
    m, width, stored = operator.planned_sizes()
    held = (n * stored * 12 if ask.run.pack else 0) + 4 * n * 8
    anchors = operator.row_bytes(2 * width) if takes_samples(operator.data, m) else width * p * 16
    if searched_natively(operator.data):  # packed, and with whole vectors of features
        anchors += width * 8 * (2 * p + 16)
    rows = min(n, rows_for_centers(m))
    few = operator.row_bytes(rows)
    finding = 4 * few
    if not takes_samples(operator.data, m):
        finding += max(kmeans_bytes(rows, m, few) + 4 * m * p * 8, room_bytes(p, m, rows))
    block = operator.block_bytes() + THREAD_BYTES
    order, span = min(n, width), operator.span_rows()
    forming = threads * (block + 3 * span * stored * 12) + 8 * order**2
    if width > n or not sums_densely():
        # Of a span, at the most, as many pairs of columns as its rows have or there are; of all
        # spans a sum, and another while one is added.
        pairs = 12 * min(span * stored**2, order**2)
        total = 12 * min(n * stored**2, order**2)
        forming += 2 * threads * pairs + 2 * total
    elif operator.root_weights is not None:
        # A span's sum for every thread, and those of the levels of the tree.
        forming += (threads + 3) * 8 * order**2
    deciding = 24 * order**2 + 8 * order * (60 + 2 * (ask.rank + SEEN_BEYOND))
    kept = held + anchors + 8 * ask.rank * (2 * width + (0 if spills(operator) else n))
    highest = max(finding, held + threads * block, held + forming, kept + deciding)
    return Needs(anchors + highest, kept, spills(operator))


def kmeans_bytes(n: int, n_clusters: int, rows: int) -> int:
    """Return what a start of scikit-learn's K-means takes for ``rows`` bytes of data.

    A copy of them, another for their variance, and distances.
    """
    candidates = 2 + int(math.log(n_clusters))  # k-means++ looks at so many samples at once
    return 2 * rows + n * (64 + 16 * candidates) + 256 * n_clusters * 8
