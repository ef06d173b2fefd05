"""FullKernelKMeans: Lloyd's algorithm in feature space on the whole of K, streamed."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.cluster import KMeans
from sklearn.utils import check_random_state

from sketchmeans._arrays import FloatArray
from sketchmeans.blas import OneBlasThread
from sketchmeans.blocks import relative_weights, row_blocks
from sketchmeans.certificate import certify
from sketchmeans.checks import check_choice, check_count
from sketchmeans.estimators.base import KernelEstimator
from sketchmeans.estimators.checks import check_clusters, check_weights
from sketchmeans.estimators.lloyd import Refined, fill_empty, refine
from sketchmeans.estimators.memory import (
    OVERHEAD,
    Plan,
    choose,
    copied_bytes,
    parse_bytes,
    refining_bytes,
)
from sketchmeans.estimators.progress import FitProgress, with_callbacks
from sketchmeans.estimators.sketched import EXTRA_RANK, Cost, unweighted_rows
from sketchmeans.lowrank import METHODS, LowRank, Request, one_pass
from sketchmeans.lowrank.core import noise_level
from sketchmeans.lowrank.needs import kmeans_bytes
from sketchmeans.lowrank.residual import look_at_residual
from sketchmeans.operators import KernelOperator, PrecomputedOperator
from sketchmeans.sketches import make_sketch
from sketchmeans.text import human

CACHE_LIMIT = 3000
"""Samples up to which K is kept as a matrix between iterations: 72 MB in float64."""
INITS = ("k-means++", "random", "sketch")


class FullKernelKMeans(ClusterMixin, KernelEstimator):
    """Kernel K-means on the whole kernel matrix, which is streamed and not stored.

    The paper's reference: exact Lloyd iterations in feature space. An iteration is one pass over
    K in n × K memory; up to 3,000 samples K is kept as a matrix instead. Slower than
    ``KernelKMeans``, which needs one pass in all.

    Kernel entries: n² for the matrix that is kept. Streamed, those of each pass: one an iteration,
    one more for the certificate, which also asks for the diagonal, and a start's: n · n_clusters
    and the diagonal, or a pass for ``init="sketch"``.

    Parameters
    ----------
    n_clusters : int
        Clusters to find.
    init : {"k-means++", "random", "sketch"}
        How to start: samples drawn far from each other in feature space; samples drawn at random;
        the labels of a one-pass sketch.
    n_init : int
        Starts; the best is kept.
    max_iter : int
        Iterations a start; it stops earlier when the labels do not change.
    kernel, gamma, degree, coef0, kernel_params, precision, memory_limit, n_jobs, random_state, \
verbose
        See ``KernelEmbedding``.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        The cluster of each sample.
    inertia_ : float
        Sum of squared distances in feature space to the centroids that gave ``labels_``.
    objectives_ : tuple of float
        The exact objective before each iteration of the best start; never rises for a positive
        semidefinite kernel.
    n_iter_ : int
        Iterations of the best start.
    certificate_ : Certificate
        How far the labels can be from the best possible.
    gamma_, stats_, n_features_in_
        See ``KernelEmbedding``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sketchmeans import FullKernelKMeans
    >>> FullKernelKMeans(n_clusters=3, random_state=0).fit(load_iris().data).labels_.shape
    (150,)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernel: Any = "rbf",
        gamma: Any = "median",
        degree: int = 3,
        coef0: float = 1.0,
        kernel_params: dict[str, Any] | None = None,
        init: str = "k-means++",
        n_init: int = 10,
        max_iter: int = 300,
        precision: str = "auto",
        memory_limit: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.precision = precision
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_options(self) -> None:
        super()._check_options()
        check_count("n_clusters", self.n_clusters)
        check_count("n_init", self.n_init)
        check_count("max_iter", self.max_iter)
        check_choice("init", self.init, INITS)

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Cluster the rows of X.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            For ``kernel="precomputed"`` the kernel matrix, which may be a memory map.
        y : ignored
        sample_weight : array of shape (n_samples,), optional
            Weights of the samples in the objective.
        """
        with (
            self._fitting(),
            FitProgress(self, self.n_init + 2 if isinstance(self.n_init, int) else 3) as progress,
        ):
            with progress.stage("prepare"):
                self._check_options()
                given = X
                X = self._check_data(X, reset=True, given_rows=self.kernel == "precomputed")
                copied = copied_bytes(given, X)
                del given
                n = X.shape[0]
                check_clusters(self.n_clusters, n)
                weights = check_weights(sample_weight, n)
                random = check_random_state(self.random_state)
                seeds = random.randint(2**31 - 1, size=self.n_init + 1)
                operator, gamma = self._make_operator(X, weights, int(seeds[0]))
                chosen = self._check_memory(operator, copied)
                n_threads = chosen.n_threads
                cost = Cost()
                streamed, is_cached = operator.packing(chosen.pack), n <= CACHE_LIMIT
                if is_cached:
                    streamed = _cached(operator, n_threads)
                    cost.add(Cost(passes=1, entries=n * n))
            best: Refined | None = None
            for seed in seeds[1:]:
                with progress.stage("Lloyd iterations") as tick:
                    start, spent = self._start(streamed, int(seed), n_threads)
                    found = refine(
                        streamed,
                        start,
                        self.n_clusters,
                        n_iter=self.max_iter,
                        weights=weights,
                        n_threads=n_threads,
                        repair=True,
                        progress=tick,
                    )
                if not is_cached:
                    cost.add(spent)
                    cost.add(found)
                if best is None or found.inertia < best.inertia:
                    best = found
            assert best is not None
            if not is_cached:  # the certificate makes a pass, and asks for the diagonal before
                entries = best.entries // best.passes + operator.diagonal_entries
                cost.add(Cost(passes=1, entries=entries))
            with progress.stage("certify"):
                rounding, checked = operator.rounding(fine=is_cached)
                # The certificate's pass measures the same of the operator that it meets.
                cost.add(Cost(audit_entries=checked if is_cached else 2 * checked))
                nothing = look_at_residual(streamed, _nothing(streamed, rounding), 0)
                cost.add(Cost(audit_entries=0 if is_cached else nothing.audit_entries))
                certificate = certify(
                    streamed,
                    best.labels,
                    nothing,
                    n_clusters=self.n_clusters,
                    exact=True,
                    n_threads=n_threads,
                )
        self.labels_ = best.labels
        self.inertia_ = best.inertia
        self.objectives_ = best.objectives
        self.n_iter_ = best.passes
        self.certificate_ = certificate
        self.gamma_ = gamma
        self._centroids = best.centroids
        self._new_points = operator.for_new_points()
        self.stats_ = {
            "passes": cost.passes,
            "kernel_entries": cost.entries,
            "audit_entries": cost.audit_entries,
            "seconds": {name: round(value, 6) for name, value in progress.seconds.items()},
            "planned_bytes": chosen.peak,
            "engine": operator.engine,
            "precision": str(operator.dtype),
            "n_threads": n_threads,
        }
        return self

    def _check_memory(self, operator: KernelOperator, copied: int) -> Plan:
        """Choose threads and packing; refuse what cannot keep the limit, before the start."""
        n, k = operator.shape[0], self.n_clusters
        root = operator.root_weights
        left_out = root is not None and not root.all()
        limit = parse_bytes(self.memory_limit)
        is_cached = n <= CACHE_LIMIT
        met = PrecomputedOperator(np.broadcast_to(0.0, (n, n))) if is_cached else operator
        rank = min(k + EXTRA_RANK, n)
        ask = Request(rank=rank, width=min(2 * rank, n), seed=0)

        def peak(threads: int, pack: bool, _: int) -> int:
            caching = n * n * 8 + operator.columns_bytes(n, threads) if is_cached else 0
            stages = [met.columns_bytes(1, threads) + n * 120]
            if self.init == "sketch":
                sketched = replace(ask, n_threads=threads, pack=pack)
                needs = METHODS["one-pass"].needs(met, sketched)
                embedding = n * rank * 8
                clustering = embedding + kmeans_bytes(n, k, embedding)
                stages += [needs.working, needs.kept + clustering]
                if left_out:  # samples of weight zero come in by their columns, 256 at a time
                    columns = n * 256 * 8 + met.columns_bytes(256, threads)
                    stages.append(needs.kept + embedding + columns)
            stages.append(refining_bytes(met, k, threads, pack=pack))
            # The certificate: memberships in float64, once more in one matrix, and their squares.
            certifying = met.scratch_bytes(k, threads, pack=pack) + n * (4 * k + 1) * 8 + n * 80
            stages.append(certifying)
            kept = 2 * n * (4 + 4) + (0 if root is None else 2 * n * 8)  # labels of two starts
            held = n * n * 8 if is_cached else 0
            return max(caching, held + kept + max(stages)) + copied + OVERHEAD

        chosen = choose(peak, self._thread_count(), 1, limit)
        if chosen is not None:
            return chosen
        assert limit is not None
        raise MemoryError(
            f"memory_limit={human(limit)} cannot be kept: {n:,} samples and {k} clusters need "
            f"{human(peak(1, False, 1))} at the least. Raise memory_limit, or lower n_clusters."
        )

    def _start(
        self, operator: KernelOperator, seed: int, n_threads: int
    ) -> tuple[FloatArray, Cost]:
        """Return labels to start from, and what they cost."""
        n, k = operator.shape[0], self.n_clusters
        weights = None if operator.root_weights is None else operator.root_weights**2
        # Distances in feature space are those of K, not of D^½ K D^½; weights count the samples.
        plain = copy.copy(operator)
        plain.root_weights = None
        if self.init == "sketch":
            rank = min(k + 10, n)
            sketch = make_sketch("hadamard", n, min(2 * rank, n), seed)
            low_rank = one_pass(operator, sketch, rank=rank, n_threads=n_threads)
            embedding, dual = unweighted_rows(low_rank, weights, np.float64)
            left_out = np.flatnonzero(weights == 0) if weights is not None else np.zeros(0, int)
            for block in row_blocks(len(left_out), 256):
                rows = left_out[block]
                embedding[rows] = plain.columns(rows, n_threads=n_threads).T @ dual
            with OneBlasThread():
                model = KMeans(k, n_init=1, random_state=seed)
                labels = model.fit_predict(embedding, sample_weight=relative_weights(weights))
            cost = Cost(entries=n * len(left_out))
            cost.add(low_rank)
            return labels.astype(np.int32), cost
        random = np.random.default_rng(seed)
        diagonal = plain.diagonal()
        heavy = np.ones(n) if weights is None else weights
        nearest = np.full(n, np.inf)
        labels = np.zeros(n, np.int32)
        for cluster in range(k):
            spread = np.where(np.isfinite(nearest), np.maximum(nearest, 0.0), 1.0) * heavy
            if self.init == "random" or not spread.any():
                spread = heavy
            center = int(random.choice(n, p=spread / spread.sum()))
            column = plain.columns(np.array([center]), n_threads=n_threads)[:, 0]
            distances = diagonal - 2 * column + diagonal[center]
            closer = distances < nearest
            labels[closer] = cluster
            nearest = np.where(closer, distances, nearest)
        fill_empty(labels, nearest * heavy, k)
        return labels, Cost(entries=n * k + operator.diagonal_entries)

    def predict(self, X: Any) -> FloatArray:
        """Return the nearest centroid in feature space; n kernel entries a point."""
        X = self._check_new(X)
        zeros = np.zeros(X.shape[0])
        cross = self._new_points.against(X)
        return self._centroids.assign(cross, zeros, self._thread_count())[0]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the objective of X: of the training data, −inertia_."""
        X = self._check_new(X)
        weights = check_weights(sample_weight, X.shape[0])
        diagonal = self._new_points.diagonal_of(X)
        cross = self._new_points.against(X)
        squares = self._centroids.assign(cross, diagonal, self._thread_count())[1]
        with OneBlasThread():  # BLAS sums in the order of its threads
            return -float(squares.sum() if weights is None else squares @ weights)


def _cached(operator: KernelOperator, n_threads: int) -> PrecomputedOperator:
    """Return the same operator with K as a matrix."""
    plain = copy.copy(operator)
    plain.root_weights = None
    K = plain.columns(np.arange(operator.shape[0]), n_threads=n_threads)
    weights = None if operator.root_weights is None else operator.root_weights**2
    cached = PrecomputedOperator(K, weights=weights)
    cached.is_psd = operator.is_psd
    return cached


def _nothing(operator: KernelOperator, rounding: float) -> LowRank:
    """Return the approximation K̂ = 0, from which certificates start."""
    n = operator.shape[0]
    return LowRank(
        factor=np.zeros((n, 0)),
        eigenvalues=np.zeros(0),
        rank=0,
        dual=np.zeros((n, 0)),
        trace=float(operator.diagonal().sum()),
        row_sums=None,
        sum_of_squares=None,
        eta=noise_level(operator.dtype, 0.0),
        rounding=rounding,
        passes=0,
        entries=0,
        audit_entries=0,
        pass_seconds=0.0,
    )
