"""What the estimators that embed share: from an operator to an embedding, and new points."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from sketchmeans._arrays import FloatArray
from sketchmeans.blas import count_threads
from sketchmeans.blocks import left_out, row_blocks
from sketchmeans.checks import check_choice
from sketchmeans.engine import Run
from sketchmeans.estimators.base import Checked, KernelEstimator, statistics
from sketchmeans.estimators.checks import (
    check_count_or_auto,
    check_landmarks,
    check_rank,
    refuse_unread,
)
from sketchmeans.estimators.deciding import Decision, decide, hinted_method, refuse_elsewhere
from sketchmeans.estimators.embedded import (
    Embedded,
    replaced_rows,
    stored_rows,
    unweighted_rows,
)
from sketchmeans.estimators.expecting import expected_work
from sketchmeans.estimators.foreseen import Foreseen
from sketchmeans.estimators.memory import Budget, Plan, parse_bytes
from sketchmeans.estimators.progress import FitProgress
from sketchmeans.estimators.sizing import (
    auto_rank,
    embedding_dtype,
    is_fraction,
    request_of,
    widest,
    work_of,
)
from sketchmeans.estimators.streaming import in_blocks, saved_by, take_plan, to_stream
from sketchmeans.lowrank import METHODS, ColumnStream, Cost, LowRank, Request, approximate, recover
from sketchmeans.lowrank.cholesky import capacity_for
from sketchmeans.lowrank.core import noise_level
from sketchmeans.lowrank.methods import Method
from sketchmeans.operators import GivenRows, NeighborOperator
from sketchmeans.rows import Rows
from sketchmeans.text import called, setting


class SketchedEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    """An estimator that embeds: from an operator to rows Y with K ≈ YYᵀ, and new points."""

    @property
    def _n_clusters(self) -> int | None:
        """Clusters that are looked for; None where there are none."""
        return None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _check_options(self) -> None:
        """Refuse bad options before anything is computed."""
        super()._check_options()
        check_choice("method", self.method, ["auto", *METHODS])
        options = {"oversampling", "n_landmarks", "sketch", "truncation", "n_passes", "precision"}
        if self.method == "auto":
            sketches = [*METHODS["one-pass"].sketches, *METHODS["nystrom"].sketches]
        else:
            method = METHODS[self.method]
            refuse_unread(self, options - set(method.reads), f"method={self.method!r}")
            sketches = [*method.sketches]
        check_choice("sketch", self.sketch, ["auto", *sketches])
        check_choice("truncation", self.truncation, ["late", "early"])
        for name, least in (("n_passes", 1), ("oversampling", 0), ("n_landmarks", 1)):
            check_count_or_auto(name, getattr(self, name), least)
        if self.method == "auto":
            hinted_method(self)  # refuses options that contradict each other

    def _check_neighbors(self) -> None:
        """Refuse options that the neighbours kernel does not read."""
        names = ["oversampling", "n_landmarks", "sketch", "truncation", "n_passes", "precision"]
        if self.method != "exact":
            names.append("method")
        label = setting("kernel", "neighbors")
        refuse_unread(self, names, label, dict.fromkeys(names, "rbf"))
        if is_fraction(self.rank):
            raise ValueError(
                f"rank={self.rank} asks for a share of the trace, which {label} spreads over all "
                "anchors. Give rank as a number, that of the clusters for clusters."
            )

    def _check_size(self, n: int) -> None:
        check_rank(self.rank, n, truncation=self.truncation)
        if isinstance(self.rank, Integral) and self.n_landmarks != "auto":
            check_landmarks(self.n_landmarks, int(self.rank))

    def _planned(self, data: Checked) -> Foreseen:
        """Return how a fit to such data would go about it; refuse what cannot keep the limit."""
        decision, dtype = decide(self, data.operator), embedding_dtype(data.X)
        ask = request_of(self, data.operator, decision.method, decision.n_passes)
        budget = self._budget(data, decision, dtype)
        ask, plan = self._fitting_plan(METHODS[decision.method], ask, budget)
        return Foreseen(data, decision, ask, plan, dtype)

    def _embed(
        self, X: Any, sample_weight: Any, progress: FitProgress, folder: Path | None = None
    ) -> Embedded:
        """Fit the embedding: everything of a fit but K-means. Scratch files lie in the folder."""
        with progress.stage("prepare"):
            self._check_options()
            random_state = progress.checkpoint.random_state(self.random_state)
            seeds = random_state.randint(2**31 - 1, size=2)
            if isinstance(X, ColumnStream):
                return self._embed_stream(X, sample_weight, random_state)
            if self.kernel == "neighbors":
                self._check_neighbors()
            rows = to_stream(self, X, folder)
            data = self._prepare(rows, sample_weight, int(seeds[1]), streams=True)
            dtype, operator = embedding_dtype(data.X), data.operator
            decision = decide(self, operator)
            if isinstance(data.X, Rows):
                refuse_elsewhere(self, decision, operator)
            progress.checkpoint.belongs_to(lambda: self._identified(data))
            saved_by(progress.checkpoint, data.X)
        low_rank, plan, width, cost = self._approximate(
            data, decision, dtype, int(seeds[0]), progress
        )
        with progress.stage("embed"):
            embedding, dual = unweighted_rows(low_rank, data.weights, dtype)
            apart = left_out(data.weights)
            if isinstance(operator, NeighborOperator) and data.weights is not None:
                # NOTE: rows that are the same stay the same to the bit, as they do for new points;
                # divided by the roots of their weights they would not, and K-means would see it.
                plain = operator.unweighted()
                product = plain.product(low_rank.dual, plan.run)
                embedding = stored_rows(product, None, embedding.dtype)
                cost += Cost(distances=plain.stream_distances)
                apart = apart[:0]
            for block in row_blocks(len(apart), 256):
                rows = apart[block]
                cross = (low_rank.new_points or operator).against(data.X[rows])
                embedding = replaced_rows(embedding, rows, cross.multiply(dual, plan.run))
                cost += Cost(entries=cross.entries)
        return Embedded(
            low_rank=low_rank,
            embedding=embedding,
            dual=dual,
            new_points=low_rank.new_points or operator.for_new_points(),
            plan=plan,
            random_state=random_state,
            width=width,
            engine=operator.engine,
            precision=operator.dtype if low_rank.new_points is None else low_rank.new_points.dtype,
            cost=cost,
            decision=decision,
            operator=operator,
            gamma=data.gamma,
            weights=data.weights,
        )

    def _approximate(
        self, data: Checked, decision: Decision, dtype: Any, seed: int, progress: FitProgress
    ) -> tuple[LowRank, Plan, int, Cost]:
        """Approximate K; return also how it was run, the width, and what all attempts cost.

        A rank that is a fraction of the trace widens the sketch until it holds so much.
        """
        operator, n = data.operator, data.X.shape[0]
        name, fraction = decision.method, is_fraction(self.rank)
        method = METHODS[name]
        ask = request_of(self, operator, decision.method, decision.n_passes, seed)
        budget = replace(self._budget(data, decision, dtype), checkpoint=progress.checkpoint)
        cost = Cost()
        while True:
            ask, plan = self._fitting_plan(method, ask, budget)
            take_plan(data.X, plan.run.n_threads)
            progress.expect(expected_work(operator, method, ask, decision, self._n_clusters))
            work = None if method.landmarks else work_of(operator, decision.n_passes)
            with progress.stage("kernel passes", work) as tick:
                run = replace(plan.run, progress=tick)
                low_rank = approximate(operator, name, replace(ask, run=run))
            if name == "one-pass":
                progress.split("kernel passes", low_rank.cost.seconds, "recover")
            cost, found = cost + low_rank.cost, len(low_rank.eigenvalues)
            if not fraction:
                break
            if (needed := low_rank.rank_for(float(self.rank))) is not None:
                low_rank = low_rank.truncate(needed)
                break
            if found < ask.width:
                break  # all of K that is not rounding is here
            self._refuse_fraction(method, low_rank, ask.width, widest(n))
            wider = min(2 * ask.width, widest(n))
            ask = replace(ask, rank=wider, width=wider)
            del low_rank
        if not method.stops_at_tolerance:
            return low_rank, plan, ask.width, cost
        if fraction:  # it may have found fewer columns than it might have
            room = capacity_for(found, ask.width, ask.tolerance)
            plan = budget.plan(method, replace(ask, rank=max(low_rank.rank, 1), width=room))
        return low_rank, plan, found, cost

    def _budget(self, data: Checked, decision: Decision, dtype: Any) -> Budget:
        del decision
        return Budget(
            data.operator,
            n_threads=self._run().n_threads,
            limit=parse_bytes(self.memory_limit),
            copied=data.copied + data.before,
            itemsize=dtype.itemsize,
        )

    def _refuse_fraction(self, method: Method, low_rank: LowRank, width: int, most: int) -> None:
        """Say that a fraction of the trace cannot be held, unless a wider sketch may do it."""
        if method.landmarks and self.n_landmarks != "auto":
            raise ValueError(
                f"rank={self.rank} asks for {self.rank:.1%} of the trace, but {width} landmarks "
                f"hold {low_rank.share_held:.1%}. Raise {called('n_landmarks')}, or lower rank."
            )
        if width >= most:
            raise ValueError(
                f"rank={self.rank} asks for {self.rank:.1%} of the trace, but a sketch of "
                f"{width} columns holds {low_rank.share_held:.1%}: this kernel's spectrum is "
                "too flat for that. Lower the fraction, give rank as a number, or lower gamma."
            )
        if method.stops_at_tolerance:
            raise MemoryError(
                f"{called('memory_limit')}={self.memory_limit!r} cannot be kept: rank={self.rank} "
                f"needs more than the {width} columns that it leaves room for; they hold "
                f"{low_rank.share_held:.1%} of the trace. Raise {called('memory_limit')}, or lower "
                "rank."
            )

    def _fitting_plan(self, method: Method, ask: Request, budget: Budget) -> tuple[Request, Plan]:
        """Return what to ask for and its plan.

        A method that finds by itself how many columns a share of the trace needs is asked for no
        more than the memory limit has room for: most often it needs far fewer.
        """

        def is_too_wide(width: int) -> bool:
            try:
                budget.plan(method, replace(ask, rank=width, width=width))
            except MemoryError:
                return True
            return False

        stops = method.stops_at_tolerance and is_fraction(self.rank)
        if stops and is_too_wide(ask.width):
            room = bisect_left(range(2, ask.width), True, key=is_too_wide)
            ask = replace(ask, rank=room + 1, width=room + 1)
        return ask, budget.plan(method, ask)

    def _embed_stream(
        self, stream: ColumnStream, sample_weight: Any, random_state: Any
    ) -> Embedded:
        """Fit the embedding to columns that have been pushed: no pass is left to make."""
        rank = self._check_stream(stream, sample_weight)
        result = stream.result()
        low_rank = recover(
            result,
            stream.sketch.matrix,
            rank=rank,
            truncation=self.truncation,
            eta=noise_level(stream.dtype, result.relative_error),
            rounding=16 * float(np.finfo(stream.dtype).eps),
            cost=Cost(1, result.entries),
        )
        if is_fraction(self.rank):
            needed = low_rank.rank_for(float(self.rank))
            if needed is None:
                raise ValueError(
                    f"rank={self.rank} asks for {self.rank:.1%} of the trace, but the stream's "
                    f"{stream.width} columns hold {low_rank.share_held:.1%}. Lower rank, or stream "
                    "with a larger width."
                )
            low_rank = low_rank.truncate(needed)
        self.n_features_in_ = stream.n_samples
        self.__dict__.pop("feature_names_in_", None)
        embedding, dual = unweighted_rows(low_rank, None, stream.dtype)
        threads = count_threads(self.n_jobs)
        return Embedded(
            low_rank=low_rank,
            embedding=embedding,
            dual=dual,
            new_points=GivenRows(stream.dtype, result.diagonal),
            plan=Plan(Run(threads), threads, 0),
            random_state=random_state,
            width=stream.width,
            engine="stream",
            precision=stream.dtype,
            cost=low_rank.cost,
            decision=decide(self, None),
        )

    def _check_stream(self, stream: ColumnStream, sample_weight: Any) -> int:
        """Refuse what a stream cannot serve; return the rank to recover."""
        unread = {"gamma", "degree", "coef0", "kernel_params", "sketch", "precision"}
        unread |= {"n_landmarks", "memory_limit", "checkpoint"}  # its long work is done
        if self.kernel != "precomputed":
            unread.add("kernel")
        if self.method != "one-pass":
            unread.add("method")
        if self.n_passes != 1:
            unread.add("n_passes")
        refuse_unread(self, unread, "a ColumnStream, which holds a kernel already sketched")
        if sample_weight is not None:
            raise ValueError(
                "sample_weight cannot be used with a ColumnStream: its kernel is sketched "
                "already. Push columns of D^½ K D^½ instead."
            )
        width = stream.width
        check_rank(self.rank, stream.n_samples, truncation=self.truncation)
        if is_fraction(self.rank):
            rank = width
        elif self.rank == "auto":
            rank = auto_rank(self._n_clusters, max(width // 2, 1))
        else:
            rank = int(self.rank)
        asked = rank if self.oversampling == "auto" else rank + self.oversampling
        if asked > width:
            raise ValueError(
                f"rank={self.rank} and oversampling={self.oversampling} need a sketch of at least "
                f"{asked} columns, but the stream has width={width}. Lower them, or stream with a "
                "larger width."
            )
        return rank

    def _publish(self, embedded: Embedded, seconds: dict[str, float]) -> None:
        """Set the attributes that the estimators share: only now, when nothing can fail."""
        low_rank = embedded.low_rank
        self.embedding_ = embedded.embedding
        self.rank_ = self.embedding_.shape[1]
        self.eigenvalues_ = np.zeros(self.rank_)
        self.eigenvalues_[: low_rank.rank] = low_rank.leading
        self._sketch_eigenvalues = low_rank.eigenvalues  # with those beyond the rank, for plots
        decision, whole = embedded.decision, low_rank.whole
        streamed = whole is not None and whole.gram is not None and whole.operator.held is None
        self.n_landmarks_ = len(low_rank.dual) if METHODS[decision.method].landmarks else None
        self.width_ = low_rank.factor.shape[1] if streamed else self.n_landmarks_ or embedded.width
        if isinstance(embedded.operator, NeighborOperator):
            self.width_ = embedded.operator.map.stored
        self.gamma_ = embedded.gamma
        self.stats_ = statistics(
            embedded.cost,
            seconds,
            embedded.plan,
            embedded.engine,
            embedded.precision,
            sketch_bytes=len(self.embedding_) * self.width_ * 8,
        )
        self.stats_ |= {"eta": low_rank.eta, "negative_mass": low_rank.negative_mass}
        self.stats_ |= {"method": decision.method, "why": decision.why}
        if isinstance(embedded.operator, NeighborOperator):
            features = embedded.operator.map
            self.stats_ |= {"anchors": features.count, "graphs": len(features.graphs)}
        self._dual = embedded.dual
        self._new_points = embedded.new_points
        self._n_features_out = self.rank_

    def transform(self, X: Any, *, out: Any = None) -> FloatArray:
        """Embed points by the map of the training data: y(x) = k(x, X) A.

        Kernel entries: m per point for m landmarks, or n for the n training samples.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_points, n_features), or rows in a file
            As ``fit`` takes them. For a precomputed kernel or a stream: the kernel of the points
            with the training samples.
        out : path, optional
            A new .npy file for the embedding, which appears whole or not at all; a memory map of it
            is returned.

        Returns
        -------
        array of shape (n_points, rank_)
        """
        check_is_fitted(self)
        return in_blocks(self, X, self._embed_new, (self.rank_,), out, self._run())

    def _embed_new(self, X: Any, run: Run) -> FloatArray:
        """Embed points that were checked."""
        embedding = self._new_points.against(X).multiply(self._dual, run)
        return embedding.astype(X.dtype if X.dtype == np.float32 else np.float64, copy=False)


def embed(model: SketchedEstimator, X: Any) -> Embedded:
    """Return the embedding of X that a fit of the model would cluster, and fit nothing more."""
    with FitProgress(model, 4) as progress:
        return model._embed(X, None, progress)
