"""What the estimators share: from data and options to an embedding, and new points."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from sketchmeans.bandwidth import resolve_gamma
from sketchmeans.checks import (
    check_choice,
    check_count,
    check_kernel_options,
    check_precomputed,
    check_rank,
    check_weights,
    refuse_unread,
)
from sketchmeans.engine import count_threads
from sketchmeans.features import FeatureMapOperator, prefers_features
from sketchmeans.kernels import FloatArray, kernel_class, make_kernel
from sketchmeans.lowrank import LowRank, one_pass, recover
from sketchmeans.lowrank.one_pass import noise_level
from sketchmeans.memory import Plan, parse_bytes, plan
from sketchmeans.operators import (
    CallableOperator,
    CrossKernel,
    DataOperator,
    KernelOperator,
    PrecomputedOperator,
    rows_as_kernel,
)
from sketchmeans.points import row_blocks
from sketchmeans.precision import tile_dtype
from sketchmeans.progress import CallbackSupportMixin, FitProgress
from sketchmeans.sketches import SKETCHES, make_sketch
from sketchmeans.streams import ColumnStream

METHODS = ("one-pass",)
EXTRA_RANK = 10
"""rank="auto" is the number of clusters and this: see docs/defaults.md for the experiment."""
AUTO_CLUSTERS = 8
"""What rank="auto" takes for the number of clusters where there is none."""
WIDEST = 2048
"""Columns up to which a rank that is a fraction of the trace may widen the sketch."""


@dataclass(frozen=True)
class Embedded:
    """What fitting the embedding gives, before anything is clustered."""

    low_rank: LowRank
    embedding: FloatArray
    operator: KernelOperator | None
    """None for a stream, whose kernel is gone."""
    weights: FloatArray | None
    plan: Plan
    random_state: Any
    width: int
    n_threads: int


class SketchedEstimator(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, CallbackSupportMixin, BaseEstimator
):
    """What the estimators share: from data and options to an embedding, and new points."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _check_options(self) -> None:
        """Refuse bad options before anything is computed."""
        check_kernel_options(self)
        check_choice("method", self.method, METHODS)
        check_choice("sketch", self.sketch, ["auto", *SKETCHES])
        check_choice("truncation", self.truncation, ["late", "early"])
        check_choice("precision", self.precision, ["auto", "float32", "float64"])
        check_count("n_passes", self.n_passes)
        if isinstance(self.oversampling, str):
            check_choice("oversampling", self.oversampling, ["auto"])
        else:
            check_count("oversampling", self.oversampling, 0)
        if self.n_jobs is not None and (
            not isinstance(self.n_jobs, Integral) or isinstance(self.n_jobs, bool)
        ):
            raise TypeError(f"n_jobs={self.n_jobs!r} must be a whole number or None.")
        if self.n_jobs == 0:
            raise ValueError("n_jobs=0 is no number of threads: give 1, 2, …, -1 (all) or None.")
        parse_bytes(self.memory_limit)

    def _check_data(self, X: Any, *, reset: bool) -> Any:
        """Return X as a float array or CSR matrix, without a copy where that can be."""
        if self.kernel == "precomputed":
            # NOTE: a memory map is not searched for NaN here, which would read it once more; the
            # pass meets every entry and says where it found one.
            X = validate_data(
                self, X, reset=reset, accept_sparse="csr", dtype=None, ensure_all_finite=False
            )
            if X.dtype.kind not in "fiub":
                raise ValueError(
                    f"a precomputed kernel must hold real numbers, not dtype {X.dtype}."
                )
            return X
        X = validate_data(
            self,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order="C",
            accept_large_sparse=True,
        )
        return X

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
            seeds = random_state.randint(2**31 - 1, size=3)
            auto_rank = (n_clusters or AUTO_CLUSTERS) + EXTRA_RANK
            if isinstance(X, ColumnStream):
                return self._embed_stream(X, sample_weight, random_state, auto_rank, progress)
            X = self._check_data(X, reset=True)
            n = X.shape[0]
            if n_clusters is not None:
                self._check_clusters(n_clusters, X)
            check_rank(self.rank, n, truncation=self.truncation)
            weights = check_weights(sample_weight, n)
            operator = self._make_operator(X, weights, seeds)
            n_threads = count_threads(self.n_jobs)
            if isinstance(operator, CallableOperator) and self.n_jobs is None:
                n_threads = 1  # the callable may not be made for threads
            rank, width = self._rank_and_width(n, auto_rank)
            dtype = X.dtype if X.dtype in (np.float32, np.float64) else np.dtype(np.float64)
        while True:
            name = "hadamard" if self.sketch == "auto" else self.sketch
            sketch = make_sketch(name, n, width, int(seeds[0]))
            width = sketch.width
            chosen = plan(
                operator,
                width=width,
                rank=rank,
                n_passes=self.n_passes,
                sketch_itemsize=np.dtype(sketch.dtype).itemsize,
                n_clusters=n_clusters,
                n_init=n_init,
                n_refine=n_refine,
                embedding_itemsize=dtype.itemsize,
                n_threads=n_threads,
                limit=parse_bytes(self.memory_limit),
            )
            with progress.stage("kernel passes") as tick:

                def pass_tick(index: int, tick: Any = tick) -> Any:
                    return lambda done, total: tick(index * total + done, self.n_passes * total)

                low_rank = one_pass(
                    operator,
                    sketch,
                    rank=rank,
                    truncation=self.truncation,
                    n_passes=self.n_passes,
                    n_threads=chosen.n_threads,
                    progress=pass_tick,
                    pack=chosen.pack,
                )
            self._count(low_rank)
            if isinstance(self.rank, Integral) or self.rank == "auto":
                break
            needed = low_rank.rank_for(float(self.rank))
            if needed is not None:
                low_rank = low_rank.truncate(needed)
                break
            held = low_rank.eigenvalues.sum() / low_rank.trace
            if width >= min(n, WIDEST):
                raise ValueError(
                    f"rank={self.rank} asks for {self.rank:.1%} of the trace, but a sketch of "
                    f"{width} columns holds {held:.1%}: this kernel's spectrum is too flat for "
                    "that. Lower the fraction, give rank as a number, or lower gamma."
                )
            rank = width = min(2 * width, n, WIDEST)
            del low_rank
        with progress.stage("embed"):
            embedding = self._finish(low_rank, weights, operator, X, dtype, chosen.n_threads)
        return Embedded(
            low_rank, embedding, operator, weights, chosen, random_state, width, chosen.n_threads
        )

    def _embed_stream(
        self,
        stream: ColumnStream,
        sample_weight: Any,
        random_state: Any,
        auto_rank: int,
        progress: FitProgress,
    ) -> Embedded:
        """Fit the embedding to columns that have been pushed: no pass is left to make."""
        unread = {"gamma", "degree", "coef0", "kernel_params", "sketch", "precision", "n_passes"}
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
        rank = width if isinstance(self.rank, Real) else min(auto_rank, max(width // 2, 1))
        if isinstance(self.rank, Integral):
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
            trace=float(result.diagonal.sum()),
            entries=result.entries,
        )
        if not isinstance(self.rank, Integral) and self.rank != "auto":
            needed = low_rank.rank_for(float(self.rank))
            if needed is None:
                held = low_rank.eigenvalues.sum() / low_rank.trace
                raise ValueError(
                    f"rank={self.rank} asks for {self.rank:.1%} of the trace, but the stream's "
                    f"{width} columns hold {held:.1%}. Lower rank, or stream with a larger width."
                )
            low_rank = low_rank.truncate(needed)
        self.n_features_in_ = n
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self._count(low_rank)
        embedding = self._finish(low_rank, None, None, None, stream.dtype, stream.n_threads)
        threads = count_threads(self.n_jobs)
        chosen = Plan(threads, True, threads, 0)
        return Embedded(low_rank, embedding, None, None, chosen, random_state, width, threads)

    def _make_operator(self, X: Any, weights: FloatArray | None, seeds: Any) -> KernelOperator:
        """Choose the operator and its precision, and set ``gamma_``."""
        self.gamma_ = None
        if self.kernel == "precomputed":
            check_precomputed(X, int(seeds[1]))
            dtype = self.precision
            if dtype == "auto":
                dtype = np.float32 if X.dtype == np.float32 else np.float64
            return PrecomputedOperator(X, dtype=dtype, weights=weights)
        if callable(self.kernel):
            dtype = np.float32 if self.precision == "float32" else np.float64
            return CallableOperator(
                X, self.kernel, params=self.kernel_params, dtype=dtype, weights=weights
            )
        cls = kernel_class(self.kernel)
        if "gamma" in cls.options():
            self.gamma_ = resolve_gamma(self.gamma, cls, X, int(seeds[1]))
        kernel = make_kernel(self.kernel, gamma=self.gamma_, degree=self.degree, coef0=self.coef0)
        if prefers_features(X.shape[0], X.shape[1], kernel):
            return FeatureMapOperator(X, kernel, weights=weights)
        return DataOperator(X, kernel, dtype=tile_dtype(X, kernel, self.precision), weights=weights)

    def _rank_and_width(self, n: int, auto_rank: int) -> tuple[int, int]:
        """Return the rank to recover and the width of the sketch."""
        fraction = isinstance(self.rank, Real) and not isinstance(self.rank, Integral)
        rank = int(self.rank) if isinstance(self.rank, Integral) else min(auto_rank, n)
        extra = rank if self.oversampling == "auto" else int(self.oversampling)
        width = min(rank + extra, n)
        return (width if fraction else rank), width

    def _check_clusters(self, n_clusters: int, X: Any) -> None:
        """Nothing to check where nothing is clustered."""

    def _count(self, low_rank: LowRank) -> None:
        """Add up what the passes cost; a sketch that had to be widened made more than one."""
        counted = self.__dict__.setdefault("_counted", {"passes": 0, "entries": 0, "audit": 0})
        counted["passes"] += low_rank.passes
        counted["entries"] += low_rank.entries
        counted["audit"] += low_rank.audit_entries

    def _finish(
        self,
        low_rank: LowRank,
        weights: FloatArray | None,
        operator: KernelOperator | None,
        X: Any,
        dtype: Any,
        n_threads: int,
    ) -> FloatArray:
        """Return the embedding in the data's precision; weighted samples are scaled back."""
        self._dual = low_rank.dual
        self._new_points = operator
        n, rank = len(low_rank.factor), max(low_rank.rank, 1)
        embedding = np.zeros((n, rank), dtype)
        if low_rank.rank == 0:  # K = 0
            self._dual = np.zeros((n, 1))
            return embedding
        for rows in row_blocks(n):
            block = low_rank.embedding[rows]
            if weights is not None:
                with np.errstate(divide="ignore", invalid="ignore"):
                    block = block / np.sqrt(weights[rows, None])
            embedding[rows] = block
        if weights is not None and (out := np.flatnonzero(weights == 0)).size:
            assert operator is not None
            cross = operator.against(X[out])
            embedding[out] = cross.multiply(self._dual, n_threads=n_threads)
        return embedding

    def _publish(self, embedded: Embedded, progress: FitProgress, X: Any) -> None:
        """Set the attributes that the estimators share."""
        low_rank, operator = embedded.low_rank, embedded.operator
        self.embedding_ = embedded.embedding
        self.eigenvalues_ = low_rank.eigenvalues[: low_rank.rank]
        if low_rank.rank == 0:
            self.eigenvalues_ = np.zeros(1)
        self.rank_ = self.embedding_.shape[1]
        self.width_ = embedded.width
        self._n_features_out = self.rank_
        counted = self.__dict__.pop("_counted")
        self.stats_ = {
            "passes": counted["passes"],
            "kernel_entries": counted["entries"],
            "audit_entries": counted["audit"],
            "seconds": {name: round(value, 6) for name, value in progress.seconds.items()},
            "sketch_bytes": low_rank.factor.shape[0] * embedded.width * 8,
            "planned_bytes": embedded.plan.peak,
            "engine": operator.engine if operator is not None else "stream",
            "precision": str(operator.dtype if operator is not None else X.dtype),
            "n_threads": embedded.n_threads,
            "eta": low_rank.eta,
            "negative_mass": low_rank.negative_mass,
        }

    def _against(self, X: Any) -> CrossKernel:
        """Return the kernel between new points and the samples."""
        if self._new_points is None:
            return rows_as_kernel(X, self.embedding_.dtype)
        return self._new_points.against(X)

    def _check_new(self, X: Any) -> Any:
        check_is_fitted(self)
        if self._new_points is None and self.kernel != "precomputed":
            precomputed = copy.copy(self)
            precomputed.kernel = "precomputed"
            return precomputed._check_data(X, reset=False)
        return self._check_data(X, reset=False)

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
        embedding = self._against(X).multiply(self._dual, n_threads=count_threads(self.n_jobs))
        return embedding.astype(X.dtype if X.dtype == np.float32 else np.float64, copy=False)
