"""The memory of a fit, reckoned before it starts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans.blocks import BLOCK
from sketchmeans.checkpoints import NOTHING, Checkpoint
from sketchmeans.engine import tile_rows
from sketchmeans.engine.run import Run
from sketchmeans.engine.strips import strip_length
from sketchmeans.estimators.many_rows import drawn_rows, finish_bytes, starts_on_some, walked_rows
from sketchmeans.lowrank.methods import Method
from sketchmeans.lowrank.needs import kmeans_bytes, spills, takes_centers
from sketchmeans.lowrank.nystrom import holds_columns
from sketchmeans.lowrank.request import Request
from sketchmeans.lowrank.sparse_features import SEEN_BEYOND
from sketchmeans.operators import DataOperator, NeighborOperator
from sketchmeans.operators.base import THREAD_BYTES, KernelOperator
from sketchmeans.text import called, human

_UNITS = {"": 1, "B": 1}
_UNITS |= {f"{prefix}B": 1000**power for power, prefix in enumerate("KMGT", start=1)}
_UNITS |= {f"{prefix}iB": 1024**power for power, prefix in enumerate("KMGT", start=1)}

OVERHEAD = 16_000_000
"""Small arrays, thread stacks and allocator slack that the plan does not itemise."""


def parse_bytes(limit: Any) -> int | None:
    """Turn "2GB", "512MiB" or a number into bytes; None stays None.

    >>> parse_bytes("2GB"), parse_bytes("1.5 GiB"), parse_bytes(1000)
    (2000000000, 1610612736, 1000)
    """
    if limit is None:
        return None
    if isinstance(limit, str):
        match = re.fullmatch(r"\s*([0-9.]+)\s*([A-Za-z]*)\s*", limit)
        units = {name.lower(): size for name, size in _UNITS.items()}
        if match and match[2].lower() in units and match[1].count(".") <= 1 and match[1] != ".":
            amount = float(match[1]) * units[match[2].lower()]
        else:
            raise ValueError(
                f"{called('memory_limit')}={limit!r} is not understood: give a number of bytes, "
                'or a text such as "500MB", "2GB" or "2GiB".'
            )
    elif isinstance(limit, Real) and not isinstance(limit, bool):
        amount = float(limit)
    else:
        raise ValueError(
            f"{called('memory_limit')}={limit!r} must be a number of bytes, a text such as "
            '"2GB", or None.'
        )
    if not 0 < amount < float("inf"):
        raise ValueError(f"{called('memory_limit')}={limit!r} must be positive.")
    return int(amount)


@dataclass(frozen=True)
class Plan:
    """How a fit keeps its memory limit."""

    run: Run
    n_starts: int
    """Starts of K-means that run side by side, each with its own copy of the embedding."""
    peak: int
    """Bytes at the highest point, reckoned."""
    stages: Mapping[str, int] = field(default_factory=dict)
    """Bytes that each stage of the fit holds at its highest point."""

    def with_stage(self, name: str, size: int) -> Plan:
        """Return the plan of a fit that has one stage more."""
        return replace(self, peak=max(self.peak, size), stages={**self.stages, name: size})

    def kept_by(self, checkpoint: Checkpoint) -> Plan:
        """Return the same plan with this checkpoint."""
        return replace(self, run=replace(self.run, checkpoint=checkpoint))


def copied_bytes(given: Any, checked: Any) -> int:
    """Return what checked data take beyond those that were given; 0 where they are the same."""
    if checked is given:
        return 0
    arrays = (
        [checked.data, checked.indices, checked.indptr] if sparse.issparse(checked) else [checked]
    )
    theirs = getattr(given, "data", None) if sparse.issparse(given) else given
    if isinstance(theirs, np.ndarray) and np.may_share_memory(theirs, arrays[0]):
        return 0
    return sum(array.nbytes for array in arrays)


def refining_bytes(operator: KernelOperator, n_clusters: int, run: Run) -> int:
    """Return what an exact Lloyd iteration takes: memberships, sums over clusters, and tiles."""
    n = operator.shape[0]
    members = 2 if operator.root_weights is None else 9
    columns = n * (n_clusters + 1) * 8 + n * n_clusters * members + n * 120
    return columns + operator.scratch_bytes(n_clusters, run)


@dataclass(frozen=True)
class Budget:
    """What a fit holds beside its approximation, and how much it may."""

    operator: KernelOperator
    n_threads: int
    limit: int | None
    copied: int
    """Bytes of a copy of the data that was made before."""
    itemsize: int
    """Bytes of a number of the embedding."""
    n_clusters: int | None = None
    n_init: int = 1
    n_refine: int = 0
    walks: bool = False
    """Whether K-means starts from walks on the graph of the neighbours kernel."""
    checkpoint: Checkpoint = NOTHING

    def plan(self, method: Method, ask: Request) -> Plan:
        """Choose threads, packing and side-by-side starts; refuse what cannot keep the limit.

        Without a limit K-means may copy the embedding up to twice the size of the sketch.
        """
        n, width = self.operator.shape[0], ask.width
        kept = ask.rank if method.landmarks else width
        sketch, embedding = n * (kept + 1) * 8, n * ask.rank * self.itemsize
        starts = max(1, min(self.n_threads, self.n_init, 2 * sketch // max(embedding, 1)))
        peak = partial(self._peak, method, ask)
        without = {"packs": (False,)} if spills(self.operator) else {}
        chosen = choose(peak, self.n_threads, starts, self.limit, **without)
        if chosen is not None:
            stages = self._stages(method, ask, chosen.run, chosen.n_starts)
            return replace(chosen, stages=stages).kept_by(self.checkpoint)
        assert self.limit is not None
        least = self._peak(method, ask, Run(pack=False), 1)
        if isinstance(self.operator, NeighborOperator):
            count = self.operator.planned_sizes()[1]
            order = min(n, count)
            what, less = f"{count:,} anchors in all", f"{called('n_anchors')} or "
            less += called("n_graphs")
            parts = f"{order} × {order} matrices of {human(order**2 * 8)}, embedding"
            parts += f" {human(embedding)}, one block of rows at a time"
        elif method.landmarks:
            what, less = f"{width} landmarks", called("n_landmarks")
            parts = f"{width} × {width} matrices of {human(width**2 * 8)}, embedding"
            parts += f" {human(embedding)}, one block of rows at a time"
        else:
            what, less = f"width={width}", "oversampling"
            parts = f"sketch {human(sketch)}, embedding {human(embedding)}, one tile at a time"
        decoding = getattr(self.operator.data, "scratch_bytes", 0)
        if decoding:
            parts += f", and {human(decoding)} to decode rows of the file: chunks or row groups of"
            parts += " fewer numbers take less"
        raise MemoryError(
            f"{called('memory_limit')}={human(self.limit)} cannot be kept: {n:,} samples with "
            f"{what} need {human(least)} at the least ({parts}). Raise "
            f"{called('memory_limit')}, or lower rank or {less}."
        )

    def _peak(self, method: Method, ask: Request, run: Run, starts: int) -> int:
        return max(self._stages(method, ask, run, starts).values())

    def _stages(self, method: Method, ask: Request, run: Run, starts: int) -> dict[str, int]:
        """Return what each stage holds at its highest point, a copy of the data included."""
        n, width, rank = self.operator.shape[0], ask.width, ask.rank
        needs = method.needs(self.operator, replace(ask, run=run))
        embedding = 0 if needs.spilled else n * rank * self.itemsize
        kept = needs.kept + embedding  # the factor stays until the labels are certified
        embedding_at_most = kept + min(n, BLOCK) * 3 * rank * 8
        if self.operator.leaves_out:  # those are left to the map of new points
            crossing = kept + self.operator.cross_bytes(rank, run)
            embedding_at_most = max(embedding_at_most, crossing)
        stages = {"kernel passes": needs.working, "embed": embedding_at_most}
        if self.n_clusters is not None:
            drawn = drawn_rows(n, self.n_clusters)
            labels = self.n_init if drawn is None and not self.walks else 1
            kept += labels * n * 4 + n * 16  # the labels of all starts
            if self.walks:
                clustering = self._of_walks(rank, run, starts)
            elif drawn is None:
                clustering = starts * kmeans_bytes(n, self.n_clusters, embedding)
            else:
                clustering = self._of_many_rows(drawn, rank, run, starts)
            stages["K-means"] = kept + clustering
            if ask.truncation == "early" and not method.landmarks:
                width += rank  # the early form is held against the late one
            streamed = method.landmarks and not holds_columns(n, width, rank)
            block = min(n, BLOCK) * (rank if streamed else width)
            stages["certify"] = kept + 4 * block * 8 + 6 * width**2 * 8
            if method.landmarks:  # also without iterations: sums over clusters
                stages["refine"] = kept + self._landmark_bytes(ask, self.n_clusters, run)
            elif self.n_refine and needs.spilled:  # in the kernel's own feature space
                sums = self.operator.scratch_bytes(self.n_clusters, run)
                stages["refine"] = kept + n * 48 + sums
            elif self.n_refine:
                stages["refine"] = kept + refining_bytes(self.operator, self.n_clusters, run)
        beside = self.copied + OVERHEAD + self._ahead(ask, run)
        return {name: size + beside for name, size in stages.items()}

    def _ahead(self, ask: Request, run: Run) -> int:
        """Return what blocks of rows take that are read from files ahead of the computation."""
        if not spills(self.operator):
            return 0
        n, width = self.operator.shape[0], max(ask.rank, 1)
        strips = 0
        if isinstance(self.operator, DataOperator):
            strips = 2 * strip_length(n, tile_rows(n)) * (self.operator.n_features + width) * 8
        of_data = max(1 << 23, self.operator.row_bytes(64))
        of_embedding = min(n, 16 * BLOCK) * width * self.itemsize
        sums = 0 if isinstance(self.operator, NeighborOperator) else 8 * ask.width**2
        blocks = (run.n_threads + 2) * (max(of_data, of_embedding, strips) + sums)
        return int(blocks + self.operator.data.scratch_bytes)

    def _landmark_bytes(self, ask: Request, n_clusters: int, run: Run) -> int:
        """Return what sums over clusters and iterations in landmark space take."""
        operator, m = self.operator, ask.width
        n, rows = operator.shape[0], operator.rows_at_once(m)
        own = operator.row_bytes(4 * rows) + 3 * rows * m * 8 + rows * n_clusters * 40
        own += 3 * m * n_clusters * 8 + THREAD_BYTES
        if takes_centers(operator, ask):  # dense ones, which make rows dense
            own += 4 * rows * operator.n_features * 8
        return run.n_threads * own + n * 48 + 8 * m * n_clusters * 8

    def _of_many_rows(self, drawn: int, rank: int, run: Run, starts: int) -> int:
        """Return what K-means takes where its starts see some rows, and Lloyd's iterations all."""
        assert self.n_clusters is not None
        some = drawn + self.n_clusters  # those that a draw missed may come in
        rows = some * rank * self.itemsize
        labels = starts_on_some(self.n_init) * some * 4
        starting = rows + labels + some * 40 + starts * kmeans_bytes(some, self.n_clusters, rows)
        n = self.operator.shape[0]
        sizes = n, self.n_clusters, rank, self.itemsize, run.n_threads
        return max(n * 16, starting, labels + finish_bytes(*sizes))

    def _of_walks(self, rank: int, run: Run, starts: int) -> int:
        """Return what the starts after walks take: rows that they see, and a stream over all."""
        operator, n_clusters = self.operator, self.n_clusters
        assert isinstance(operator, NeighborOperator)
        assert n_clusters is not None
        rows = walked_rows(operator.shape[0], n_clusters) + n_clusters
        _, anchors, stored = operator.planned_sizes()
        embedded = rows * (rank + SEEN_BEYOND) * 8
        features = 3 * rows * stored * 12 + operator.block_bytes()
        starting = 2 * embedded + starts * kmeans_bytes(rows, n_clusters, embedded)
        each = rows * (4 * self.n_init + 32 * n_clusters + 64) + 4 * anchors * n_clusters * 8
        streaming = operator.scratch_bytes(n_clusters, run) + operator.shape[0] * 24
        return max(features + starting + each, streaming)


def choose(
    peak: Callable[[Run, int], int],
    n_threads: int,
    starts: int,
    limit: int | None,
    packs: tuple[bool, ...] = (True, False),
) -> Plan | None:
    """Return the first plan that keeps the limit: packed copies go last, starts go first.

    ``packs`` says whether there may be any.
    """
    for pack in packs:
        for threads in range(n_threads, 0, -1):
            run = Run(threads, pack)
            for side_by_side in range(starts, 0, -1):
                size = peak(run, side_by_side)
                if limit is None or size <= limit:
                    return Plan(run, side_by_side, size)
    return None
