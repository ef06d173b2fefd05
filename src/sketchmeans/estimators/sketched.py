"""What the estimators that embed share: from an operator to an embedding, and new points."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state

from sketchmeans._arrays import FloatArray
from sketchmeans.blocks import row_blocks
from sketchmeans.checks import check_choice, check_count
from sketchmeans.engine import count_threads
from sketchmeans.estimators.base import KernelEstimator
from sketchmeans.estimators.checks import check_clusters, check_rank, check_weights, refuse_unread
from sketchmeans.estimators.memory import Plan, copied_bytes, parse_bytes, plan
from sketchmeans.estimators.progress import FitProgress, Tick, Work
from sketchmeans.kernels.precision import SAFE_SIZE
from sketchmeans.lowrank import METHODS, ColumnStream, LowRank, Request, approximate, recover
from sketchmeans.lowrank.cholesky import capacity_for
from sketchmeans.lowrank.core import noise_level
from sketchmeans.operators import GivenRows, KernelOperator, NewPoints
from sketchmeans.text import called

EXTRA_RANK = 10
"""rank="auto" is the number of clusters and this: see docs/defaults.md for the experiment."""
AUTO_CLUSTERS = 8
"""What rank="auto" takes for the number of clusters where there is none."""
WIDEST = 2048
"""Columns up to which a rank that is a fraction of the trace may widen the sketch."""


@dataclass
class Cost:
    """What the passes of a fit cost, added up."""

    passes: int = 0
    entries: int = 0
    audit_entries: int = 0

    def add(self, spent: Any) -> None:
        """Add what an approximation or a refinement spent."""
        self.passes += spent.passes
        self.entries += spent.entries
        self.audit_entries += getattr(spent, "audit_entries", 0)


@dataclass(frozen=True)
class Embedded:
    """What fitting the embedding gives, before anything is clustered."""

    low_rank: LowRank
    embedding: FloatArray
    operator: KernelOperator | None
    """None for a stream, whose kernel is gone."""
    new_points: NewPoints
    dual: FloatArray
    """A of y(x) = k(x, X) A."""
    gamma: float | None
    weights: FloatArray | None
    plan: Plan
    random_state: Any
    width: int
    engine: str
    precision: Any
    cost: Cost


class SketchedEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    """An estimator that embeds: from an operator to rows Y with K ≈ YYᵀ, and new points."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _check_options(self) -> None:
        """Refuse bad options before anything is computed."""
        super()._check_options()
        check_choice("method", self.method, METHODS)
        method = METHODS[self.method]
        options = {"oversampling", "sketch", "truncation", "n_passes", "precision"}
        refuse_unread(self, options - set(method.reads), f"method={self.method!r}")
        check_choice("sketch", self.sketch, ["auto", *method.sketches])
        check_choice("truncation", self.truncation, ["late", "early"])
        check_count("n_passes", self.n_passes)
        if isinstance(self.oversampling, str):
            check_choice("oversampling", self.oversampling, ["auto"])
        else:
            check_count("oversampling", self.oversampling, 0)

    def _embed(
        self,
        X: Any,
        sample_weight: Any,
        progress: FitProgress,
        *,
        n_clusters: int | None,
        n_init: int = 1,
        n_refine: int = 0,
    ) -> Embedded:
        """Fit the embedding: everything of a fit but K-means."""
        with progress.stage("prepare"):
            self._check_options()
            random_state = check_random_state(self.random_state)
            seeds = random_state.randint(2**31 - 1, size=2)
            auto_rank = (n_clusters or AUTO_CLUSTERS) + EXTRA_RANK
            if isinstance(X, ColumnStream):
                return self._embed_stream(X, sample_weight, random_state, auto_rank)
            given = X
            X = self._check_data(X, reset=True, given_rows=self.kernel == "precomputed")
            copied = copied_bytes(given, X)
            del given
            n = X.shape[0]
            if n_clusters is not None:
                check_clusters(n_clusters, n)
            check_rank(self.rank, n, truncation=self.truncation)
            weights = check_weights(sample_weight, n)
            operator, gamma = self._make_operator(X, weights, int(seeds[1]))
            rank, width = self._rank_and_width(n, auto_rank)
            dtype = X.dtype.newbyteorder("=")
            dtype = dtype if dtype in (np.float32, np.float64) else np.dtype(np.float64)
        cost = Cost()
        method = METHODS[self.method]
        ask = Request(
            rank=rank,
            width=width,
            seed=int(seeds[0]),
            sketch=self.sketch,
            truncation=self.truncation,
            n_passes=self.n_passes,
            tolerance=1 - float(self.rank) if is_fraction(self.rank) else 0.0,
        )

        def planned(ask: Request) -> Plan:
            return plan(
                operator,
                lambda threads, pack: method.needs(
                    operator, replace(ask, n_threads=threads, pack=pack)
                ),
                rank=ask.rank,
                width=ask.width,
                n_clusters=n_clusters,
                n_init=n_init,
                n_refine=n_refine,
                embedding_itemsize=dtype.itemsize,
                n_threads=self._thread_count(),
                limit=parse_bytes(self.memory_limit),
                copied=copied,
                early=ask.truncation == "early" and not method.landmarks,
                left_out=weights is not None and not weights.all(),
            )

        while True:
            ask, chosen = self._fitting_plan(ask, planned)
            work = work_of(operator, self.n_passes)
            with progress.stage("kernel passes", work) as tick:
                low_rank = approximate(
                    operator,
                    self.method,
                    replace(
                        ask,
                        n_threads=chosen.n_threads,
                        pack=chosen.pack,
                        progress=partial(part_of, tick, self.n_passes),
                    ),
                )
            if self.method == "one-pass":
                progress.split("kernel passes", low_rank.pass_seconds, "recover")
            cost.add(low_rank)
            width = ask.width
            if method.stops_at_tolerance:  # it may have found fewer columns than it might have
                width = low_rank.factor.shape[1]
            if not is_fraction(self.rank):
                break
            needed = low_rank.rank_for(float(self.rank))
            if needed is not None:
                low_rank = low_rank.truncate(needed)
                break
            if low_rank.factor.shape[1] < ask.width:
                break  # all of K that is not rounding is here
            if method.stops_at_tolerance and ask.width < min(n, WIDEST):
                raise MemoryError(
                    f"{called('memory_limit')}={self.memory_limit!r} cannot be kept: "
                    f"rank={self.rank} needs more than the {ask.width} columns that it leaves room "
                    f"for; they hold {low_rank.share_held:.1%} of the trace. Raise "
                    f"{called('memory_limit')}, or lower rank."
                )
            if ask.width >= min(n, WIDEST):
                raise ValueError(
                    f"rank={self.rank} asks for {self.rank:.1%} of the trace, but a sketch of "
                    f"{width} columns holds {low_rank.share_held:.1%}: this kernel's spectrum is "
                    "too flat for that. Lower the fraction, give rank as a number, or lower gamma."
                )
            wider = min(2 * width, n, WIDEST)
            ask = replace(ask, rank=wider, width=wider)
            del low_rank
        if method.stops_at_tolerance and is_fraction(self.rank):
            room = capacity_for(width, ask.width, ask.tolerance)
            chosen = planned(replace(ask, rank=max(low_rank.rank, 1), width=room))
        with progress.stage("embed"):
            embedding, dual = unweighted_rows(low_rank, weights, dtype)
            left_out = np.flatnonzero(weights == 0) if weights is not None else np.zeros(0, int)
            for start in range(0, len(left_out), 256):
                rows = left_out[start : start + 256]
                cross = (low_rank.new_points or operator.packing(chosen.pack)).against(X[rows])
                embedding[rows] = cross.multiply(dual, n_threads=chosen.n_threads)
                cost.entries += cross.entries
        return Embedded(
            low_rank=low_rank,
            embedding=embedding,
            operator=operator,
            new_points=low_rank.new_points or operator.for_new_points(),
            dual=dual,
            gamma=gamma,
            weights=weights,
            plan=chosen,
            random_state=random_state,
            width=width,
            engine=operator.engine,
            precision=np.dtype(np.float64) if method.landmarks else operator.dtype,
            cost=cost,
        )

    def _fitting_plan(
        self, ask: Request, planned: Callable[[Request], Plan]
    ) -> tuple[Request, Plan]:
        """Return what to ask for and its plan.

        A method that finds by itself how many columns a share of the trace needs is asked for no
        more than the memory limit has room for: most often it needs far fewer.
        """
        if not (METHODS[self.method].stops_at_tolerance and is_fraction(self.rank)):
            return ask, planned(ask)
        try:
            return ask, planned(ask)
        except MemoryError:
            widths = range(2, ask.width)
        room = bisect_left(widths, True, key=lambda width: not self._fits(planned, ask, width))
        ask = replace(ask, rank=room + 1, width=room + 1)
        return ask, planned(ask)

    @staticmethod
    def _fits(planned: Callable[[Request], Plan], ask: Request, width: int) -> bool:
        try:
            planned(replace(ask, rank=width, width=width))
        except MemoryError:
            return False
        return True

    def _embed_stream(
        self, stream: ColumnStream, sample_weight: Any, random_state: Any, auto_rank: int
    ) -> Embedded:
        """Fit the embedding to columns that have been pushed: no pass is left to make."""
        unread = {"gamma", "degree", "coef0", "kernel_params", "sketch", "precision", "n_passes"}
        unread.add("memory_limit")  # what a stream needs it has allocated
        if self.kernel != "precomputed":
            unread.add("kernel")
        refuse_unread(self, unread, "a ColumnStream, which holds a kernel already sketched")
        if sample_weight is not None:
            raise ValueError(
                "sample_weight cannot be used with a ColumnStream: its kernel is sketched "
                "already. Push columns of D^½ K D^½ instead."
            )
        n, width = stream.n_samples, stream.width
        check_rank(self.rank, n, truncation=self.truncation)
        if is_fraction(self.rank):
            rank = width
        elif self.rank == "auto":
            rank = min(auto_rank, max(width // 2, 1))
        else:
            rank = int(self.rank)
        asked = rank if self.oversampling == "auto" else rank + self.oversampling
        if asked > width:
            raise ValueError(
                f"rank={self.rank} and oversampling={self.oversampling} need a sketch of at least "
                f"{asked} columns, but the stream has width={width}. Lower them, or stream with a "
                "larger width."
            )
        result = stream.result()
        low_rank = recover(
            result,
            stream.sketch.matrix,
            rank=rank,
            truncation=self.truncation,
            eta=noise_level(stream.dtype, result.audit),
            rounding=16 * float(np.finfo(stream.dtype).eps),
            diagonal=result.diagonal,
            entries=result.entries,
        )
        if is_fraction(self.rank):
            needed = low_rank.rank_for(float(self.rank))
            if needed is None:
                raise ValueError(
                    f"rank={self.rank} asks for {self.rank:.1%} of the trace, but the stream's "
                    f"{width} columns hold {low_rank.share_held:.1%}. Lower rank, or stream with "
                    "a larger width."
                )
            low_rank = low_rank.truncate(needed)
        self.n_features_in_ = n
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        embedding, dual = unweighted_rows(low_rank, None, stream.dtype)
        threads = count_threads(self.n_jobs)
        cost = Cost()
        cost.add(low_rank)
        return Embedded(
            low_rank=low_rank,
            embedding=embedding,
            operator=None,
            new_points=GivenRows(stream.dtype, result.diagonal),
            dual=dual,
            gamma=None,
            weights=None,
            plan=Plan(threads, True, threads, 0),
            random_state=random_state,
            width=width,
            engine="stream",
            precision=stream.dtype,
            cost=cost,
        )

    def _rank_and_width(self, n: int, auto_rank: int) -> tuple[int, int]:
        """Return the rank to recover and the width of the sketch."""
        rank = int(self.rank) if isinstance(self.rank, Integral) else min(auto_rank, n)
        extra = rank if self.oversampling == "auto" else int(self.oversampling)
        if self.method == "exact":
            extra = 0
        width = min(rank + extra, n)
        if is_fraction(self.rank):
            if METHODS[self.method].stops_at_tolerance:
                width = min(n, WIDEST)
            rank = width
        return rank, width

    def _publish(self, embedded: Embedded, seconds: dict[str, float]) -> None:
        """Set the attributes that the estimators share: only now, when nothing can fail."""
        low_rank, cost = embedded.low_rank, embedded.cost
        self.embedding_ = embedded.embedding
        self.rank_ = self.embedding_.shape[1]
        self.eigenvalues_ = np.zeros(self.rank_)
        self.eigenvalues_[: low_rank.rank] = low_rank.leading
        self._sketch_eigenvalues = low_rank.eigenvalues  # with those beyond the rank, for plots
        self.width_ = embedded.width
        self.gamma_ = embedded.gamma
        self.stats_: dict[str, Any] = {
            "passes": cost.passes,
            "kernel_entries": cost.entries,
            "audit_entries": cost.audit_entries,
            "seconds": {name: round(value, 6) for name, value in seconds.items()},
            "sketch_bytes": len(self.embedding_) * embedded.width * 8,
            "planned_bytes": embedded.plan.peak,
            "engine": embedded.engine,
            "precision": str(embedded.precision),
            "n_threads": embedded.plan.n_threads,
            "eta": low_rank.eta,
            "negative_mass": low_rank.negative_mass,
        }
        self._dual = embedded.dual
        self._new_points = embedded.new_points
        self._n_features_out = self.rank_

    def transform(self, X: Any) -> FloatArray:
        """Embed points by the map of the training data: y(x) = k(x, X) A.

        Kernel entries: n a point, for the n training samples.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_points, n_features)
            For a precomputed kernel or a stream: the kernel of the points with the training
            samples.

        Returns
        -------
        array of shape (n_points, rank_)
        """
        X = self._check_new(X)
        embedding = self._new_points.against(X).multiply(self._dual, n_threads=self._thread_count())
        return embedding.astype(X.dtype if X.dtype == np.float32 else np.float64, copy=False)


def is_fraction(rank: Any) -> bool:
    """Whether ``rank`` is a fraction of the trace rather than a number of columns."""
    return isinstance(rank, Real) and not isinstance(rank, Integral)


def work_of(operator: KernelOperator, passes: int) -> Work:
    """Return what passes over the whole of K do: entries are met, or rows of a feature map."""
    n = operator.shape[0]
    if operator.engine == "feature map":
        return float(passes * n), "rows"
    return passes * n * (n + 1) / 2, "entries"


def part_of(tick: Tick, count: int, index: int) -> Tick:
    """Return the progress callback of the pass ``index`` of ``count``."""
    return lambda done, total: tick(index * total + done, count * total)


def unweighted_rows(
    low_rank: LowRank, weights: FloatArray | None, dtype: Any
) -> tuple[FloatArray, FloatArray]:
    """Return the embedding in the data's precision, scaled back by the weights, and the dual.

    It is in float64 where float32 cannot hold squares of its numbers, which K-means takes. Rows of
    weight zero are left to the map of new points. K = 0 gets one column of zeros.
    """
    n = len(low_rank.factor)
    if dtype == np.float32 and not fits_float32(low_rank, weights):
        dtype = np.float64
    if low_rank.rank == 0:
        return np.zeros((n, 1), dtype), np.zeros((len(low_rank.dual), 1))
    embedding = np.empty((n, low_rank.rank), dtype)
    for rows in row_blocks(n):
        block = low_rank.embedding[rows]
        if weights is not None:
            root = np.sqrt(weights[rows, None])
            block = np.divide(block, root, out=np.zeros_like(block), where=root > 0)
        embedding[rows] = block
    return embedding, low_rank.dual


def fits_float32(low_rank: LowRank, weights: FloatArray | None) -> bool:
    """Whether float32 holds the numbers of the embedding, and their squares."""
    largest = 0.0
    for rows in row_blocks(len(low_rank.factor)):
        block = np.abs(low_rank.embedding[rows]).max(axis=1, initial=0.0)
        if weights is not None:
            root = np.sqrt(weights[rows])
            block = np.divide(block, root, out=np.zeros_like(block), where=root > 0)
        largest = max(largest, float(block.max()))
    return largest == 0 or SAFE_SIZE[0] < largest < SAFE_SIZE[1]
