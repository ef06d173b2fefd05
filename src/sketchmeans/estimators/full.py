"""FullKernelKMeans: Lloyd's algorithm in feature space on the whole of K, streamed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import ClusterMixin

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.blas import OneBlasThread
from sketchmeans.certificate.certifying import Wanted, certificate_for, nothing_known
from sketchmeans.certificate.result import Certificate
from sketchmeans.checks import check_choice, check_count
from sketchmeans.engine.run import Run
from sketchmeans.estimators.base import Checked, KernelEstimator, statistics
from sketchmeans.estimators.checks import check_clusters
from sketchmeans.estimators.cluster import KernelKMeans
from sketchmeans.estimators.distinct import warn_of_equal_samples
from sketchmeans.estimators.documents import described_by
from sketchmeans.estimators.lloyd import Refined, refine
from sketchmeans.estimators.memory import (
    OVERHEAD,
    Plan,
    choose,
    parse_bytes,
    refining_bytes,
)
from sketchmeans.estimators.progress import FitProgress, with_callbacks
from sketchmeans.estimators.starts import start, start_bytes
from sketchmeans.estimators.streaming import settle_points
from sketchmeans.estimators.weights import check_weights
from sketchmeans.lowrank.result import Cost
from sketchmeans.operators import KernelOperator, PrecomputedOperator
from sketchmeans.text import called, human, setting

CACHE_LIMIT = 3000
"""Samples up to which K is kept as a matrix between iterations: 72 MB in float64."""
INITS = ("k-means++", "random", "sketch")


@described_by(KernelKMeans)
class FullKernelKMeans(ClusterMixin, KernelEstimator):
    """Kernel K-means on the whole kernel matrix, which is streamed and not stored.

    The paper's reference: exact Lloyd iterations in feature space. An iteration is one pass over
    K in n × K memory; up to 3,000 samples K is kept as a matrix instead. Slower than
    ``KernelKMeans``, which needs one pass in all.

    Kernel entries: n² for the matrix that is kept. Streamed, those of each pass: one per iteration,
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
        Iterations per start; it stops earlier when the labels do not change.
    [kernel, gamma, degree, coef0, kernel_params]
    [precision, memory_limit, checkpoint, n_jobs, random_state, verbose]

    Attributes
    ----------
    [labels_]
    inertia_ : float
        Sum of squared distances in feature space to the centroids that gave ``labels_``.
    objectives_ : tuple of float
        The exact objective before each iteration of the best start; never rises for a positive
        semidefinite kernel.
    n_iter_ : int
        Iterations of the best start.
    [certificate_, gamma_, stats_, n_features_in_]

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
        checkpoint: Any = None,
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
        self.checkpoint = checkpoint
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_options(self) -> None:
        super()._check_options()
        check_count("n_clusters", self.n_clusters)
        check_count("n_init", self.n_init)
        check_count("max_iter", self.max_iter)
        check_choice("init", self.init, INITS)
        if self.kernel == "neighbors":
            raise ValueError(
                f"{setting('kernel', 'neighbors')} is exact in KernelKMeans already: its features "
                "are the kernel's own. Use KernelKMeans with n_refine=300, which is full kernel "
                "K-means there."
            )

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Cluster the rows of X.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            For ``kernel="precomputed"`` the kernel matrix, which may be a memory map, or sparse: of
            a graph, ``sketchmeans.graphs`` makes one.
        y : ignored
        sample_weight : array of shape (n_samples,), optional
            Weights of the samples in the objective.
        """
        stages = self.n_init + 2 if isinstance(self.n_init, int) else 3
        with self._fitting() as kept, FitProgress(self, stages, kept) as progress:
            with progress.stage("prepare"):
                self._check_options()
                random = kept.random_state(self.random_state)
                seeds = random.randint(2**31 - 1, size=self.n_init + 1)
                data = self._prepare(X, sample_weight, int(seeds[0]))
                kept.belongs_to(lambda: self._identified(data))
                plan = self._planned(data).kept_by(kept)
                cost = Cost()
                met, is_cached = data.operator, data.X.shape[0] <= CACHE_LIMIT
                if is_cached:
                    met = _cached(met, plan.run)
                    cost += Cost(1, met.shape[0] ** 2)
            best: Refined | None = None
            progress.expect({"Lloyd iterations": (1.0, self.n_init)})
            for seed in seeds[1:]:
                with progress.stage("Lloyd iterations") as tick:
                    run = replace(plan.run, progress=tick)
                    found, starting = self._from_start(met, int(seed), data.weights, run)
                if not is_cached:
                    cost += starting + found.cost
                if best is None or found.inertia < best.inertia:
                    best = found
            assert best is not None
            with progress.stage("certify"):
                certificate, certifying = self._certify(data.operator, met, best, plan.run)
            settle_points(self, data.X)
        self.labels_ = best.labels
        self.inertia_ = best.inertia
        self.objectives_ = best.objectives
        self.n_iter_ = best.cost.passes
        self.certificate_ = certificate
        self.gamma_ = data.gamma
        self._centroids = best.centroids
        self._new_points = data.operator.for_new_points()
        operator = data.operator
        self.stats_ = statistics(
            cost + certifying, progress.seconds, plan, operator.engine, operator.dtype
        )
        warn_of_equal_samples(operator.data, self.labels_, self.n_clusters)
        return self

    def _from_start(
        self, met: KernelOperator, seed: int, weights: FloatArray | None, run: Run
    ) -> tuple[Refined, Cost]:
        """Start and iterate; return also what the start cost."""
        with run.checkpoint.stage("start", met.shape[0], self.n_clusters, seed) as stage:
            if stage.state is not None:
                return Refined.restored(stage.state, weights), Cost(*stage.state["starting"])
            silent = replace(run, progress=None)
            labels, starting = start(met, self.init, self.n_clusters, seed, silent)
            found = refine(
                met,
                labels,
                self.n_clusters,
                n_iter=self.max_iter,
                weights=weights,
                repair=True,
                run=run,
            )
            stage.finish(lambda: found.state() | {"starting": starting.parts})
        return found, starting

    def _certify(
        self, operator: KernelOperator, met: KernelOperator, best: Refined, run: Run
    ) -> tuple[Certificate, Cost]:
        """Certify the labels by one more pass over what was met of the operator."""
        is_cached = met is not operator
        rounding, checked = operator.rounding(fine=is_cached)
        nothing = nothing_known(met, rounding)
        wanted = Wanted(self.n_clusters, exact=True)
        certificate = certificate_for(met, best.labels, nothing, wanted, run)
        if is_cached:
            return certificate, Cost(audit_entries=checked)
        # A pass as those before; it asks for the diagonal, and measures the same as above again.
        entries = best.cost.entries // best.cost.passes + operator.diagonal_entries
        return certificate, Cost(1, entries, 2 * checked + nothing.cost.audit_entries)

    def _check_size(self, n: int) -> None:
        check_clusters(self.n_clusters, n)

    def _planned(self, data: Checked) -> Plan:
        """Choose threads and packing; refuse what cannot keep the limit, before the start."""
        operator, copied = data.operator, data.copied + data.before
        n, k = operator.shape[0], self.n_clusters
        limit = parse_bytes(self.memory_limit)
        is_cached = n <= CACHE_LIMIT
        met = PrecomputedOperator(np.broadcast_to(0.0, (n, n))) if is_cached else operator
        weighted, some_apart = operator.root_weights is not None, operator.leaves_out

        def peak(run: Run, _: int) -> int:
            caching = n * n * 8 + operator.columns_bytes(n, run) if is_cached else 0
            starting = start_bytes(met, self.init, k, run, some_apart=some_apart)
            # The certificate: memberships in float64, once more in one matrix, and their squares.
            certifying = met.scratch_bytes(k, run) + n * (4 * k + 1) * 8 + n * 80
            highest = max(starting, refining_bytes(met, k, run), certifying)
            kept = 2 * n * (4 + 4) + (2 * n * 8 if weighted else 0)  # labels of two starts
            held = n * n * 8 if is_cached else 0
            return max(caching, held + kept + highest) + copied + OVERHEAD

        chosen = choose(peak, self._run().n_threads, 1, limit)
        if chosen is not None:
            return chosen
        assert limit is not None
        raise MemoryError(
            f"{called('memory_limit')}={human(limit)} cannot be kept: {n:,} samples and {k} "
            f"clusters need {human(peak(Run(pack=False), 1))} at the least. Raise "
            f"{called('memory_limit')}, or lower {called('n_clusters')}."
        )

    def predict(self, X: Any) -> IntArray:
        """Return the nearest centroid in feature space; n kernel entries per point."""
        return self._predict(X, self._run())

    def _predict(self, X: Any, run: Run) -> IntArray:
        X = self._check_new(X)
        zeros = np.zeros(X.shape[0])
        cross = self._new_points.against(X)
        return self._centroids.assign(cross, zeros, run)[0]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the objective of X: of the training data, −inertia_.

        Not comparable across kernels or their widths: ``GridSearchCV`` would pick useless ones.
        For that, pass ``scoring=sketchmeans.metrics.neighbor_agreement_scorer``.
        """
        X = self._check_new(X)
        weights = check_weights(sample_weight, X.shape[0])
        diagonal = self._new_points.diagonal_of(X)
        cross = self._new_points.against(X)
        squares = self._centroids.assign(cross, diagonal, self._run())[1]
        with OneBlasThread():  # BLAS sums in the order of its threads
            return -float(squares.sum() if weights is None else squares @ weights)


def _cached(operator: KernelOperator, run: Run) -> PrecomputedOperator:
    """Return the same operator with K as a matrix."""
    K = operator.unweighted().columns(np.arange(operator.shape[0]), run)
    cached = PrecomputedOperator(K, weights=operator.weights)
    cached.is_psd = operator.is_psd
    return cached
