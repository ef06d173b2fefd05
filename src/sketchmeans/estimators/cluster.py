"""KernelKMeans: kernel K-means on the embedding, refined by exact iterations if asked."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import ClusterMixin

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.checks import check_count, check_number
from sketchmeans.disk import Outputs
from sketchmeans.estimators.assigning import Assigning
from sketchmeans.estimators.base import Checked
from sketchmeans.estimators.checks import check_clusters, check_count_or_auto
from sketchmeans.estimators.deciding import Decision
from sketchmeans.estimators.distinct import warn_of_equal_samples
from sketchmeans.estimators.documents import described_by
from sketchmeans.estimators.embedded import Embedded
from sketchmeans.estimators.embedding import KernelEmbedding
from sketchmeans.estimators.kmeans import inertia, move_centers
from sketchmeans.estimators.landmark_lloyd import (
    RefinedByLandmarks,
    refine_by_landmarks,
)
from sketchmeans.estimators.lloyd import Refined, refine
from sketchmeans.estimators.memory import Budget, Plan
from sketchmeans.estimators.progress import FitProgress, with_callbacks
from sketchmeans.estimators.proofs import (
    Clustered,
    check_proof,
    free_certificate,
    proof_of_fit,
    proves,
    refuse_proof,
    until_proved,
    with_proof,
)
from sketchmeans.estimators.sizing import work_of
from sketchmeans.estimators.sketched import SketchedEstimator
from sketchmeans.estimators.streaming import settle_points, whole, written
from sketchmeans.estimators.walks import cluster_rows
from sketchmeans.lowrank import ColumnStream, Request
from sketchmeans.lowrank.methods import Method
from sketchmeans.lowrank.result import Cost
from sketchmeans.operators import NeighborOperator
from sketchmeans.text import called


@described_by(KernelEmbedding)
class KernelKMeans(ClusterMixin, Assigning, SketchedEstimator):
    """Kernel K-means for data whose kernel matrix nobody can store.

    With the default kernel, "neighbors", the samples are the vertices of a graph that is never
    stored: its eigenvectors give an embedding of n × n_clusters numbers, K-means on its rows and
    after random walks of several lengths the clusters, and iterations on the graph itself lower
    its normalized cut, by which the best is chosen. Distances: n × anchors.
    With other kernels, passes over the tiles of K, or streams over its columns at some landmarks,
    give the embedding. Memory: n × width numbers, a few tiles, and K-means.

    Parameters
    ----------
    n_clusters : int
        Clusters to find.
    rank : int, float or "auto"
        Columns of the embedding: a number, the fraction of the trace of K to hold (0 to 1), or
        "auto", n_clusters + 10, and n_clusters for the kernel "neighbors". There a number leaves
        the walks out: K-means sees these columns alone.
    n_refine : int or "auto"
        Lloyd iterations in feature space after K-means, at most so many: exact ones, each a pass
        over K; with landmarks in the feature space of these, each nm kernel entries (and nm for
        the first); with "neighbors" in the kernel's own, at no distances. "auto" is 5 with
        landmarks and with "neighbors", and 0 otherwise.
    n_init : int or "auto"
        Starts of K-means; the best is kept. "auto" is 10, and with landmarks up to 30 where n,
        n_clusters and rank leave them cheap. From 40,000 samples on they run on some of them, up
        to 20 twice as many, and the best goes on over all. With "neighbors" there are so many
        after every walk, on 5,000 samples at the most.
    max_iter, tol
        Of K-means, as in scikit-learn.
    certificate : {"free", "blocks", "lifted", "triangles"} or None
        What ``fit`` proves of its labels: what it learns for nothing, or as ``certify`` with this
        effort, which takes longer. Up to 3,000 samples, "lifted" and "triangles" also look for
        better labels where the proof shows them, by exact iterations.
    tol_certified : float
        With a proof: end the starts as soon as the labels are proved to be no more than this above
        the best, relatively (0.01: one per cent). Beyond 3,000 samples it looks after 1, 3, 7 …
    [kernel, gamma, degree, coef0, kernel_params]
    [method, oversampling, n_landmarks, sketch, truncation, n_passes]
    [precision, memory_limit, checkpoint, n_jobs, random_state, verbose]

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        The cluster of each sample.
    [embedding_]
    cluster_centers_ : array of shape (n_clusters, rank_)
        Centroids in the embedding.
    inertia_ : float
        The objective: weighted sum of squared distances to the nearest centroid. In the embedding;
        after refinement in feature space, exactly; after refinement with landmarks an upper bound
        of that, with centroids in their feature space. ``stats_["objective"]`` says which, and
        ``-score(X)`` is the same of the training data.
    n_iter_ : int
        Iterations of the best start of K-means: from 40,000 samples on, those on some of the
        samples and those on all, each at most ``max_iter``. ``stats_["walk"]`` is the number of
        steps of the walk that it followed, None for an endless one.
    certificate_ : Certificate
        How far the objective of the labels can be from the least possible under this kernel, and
        nothing of whether the kernel and n_clusters suit the data; ``print`` it. With "neighbors"
        it states the normalized cut of the labels, and a bound that no clustering can get below.
    [eigenvalues_, rank_, n_landmarks_, gamma_, stats_, n_features_in_]

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sketchmeans import KernelKMeans
    >>> X, y = make_moons(1000, noise=0.05, random_state=0)
    >>> labels = KernelKMeans(2, random_state=0).fit_predict(X)
    >>> bool(max((labels == y).mean(), (labels != y).mean()) > 0.99)
    True

    The paper's kernel, on the paper's rings:

    >>> from sketchmeans.datasets import make_rings
    >>> X, y = make_rings(1000, random_state=0)
    >>> model = KernelKMeans(2, kernel="polynomial", degree=2, coef0=0, rank=2, random_state=0)
    >>> labels = model.fit_predict(X)
    >>> bool(max((labels == y).mean(), (labels != y).mean()) > 0.97)
    True
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernel: Any = "neighbors",
        gamma: Any = "median",
        degree: int = 3,
        coef0: float = 1.0,
        kernel_params: dict[str, Any] | None = None,
        method: str = "auto",
        rank: Any = "auto",
        oversampling: Any = "auto",
        n_landmarks: Any = "auto",
        sketch: str = "auto",
        truncation: str = "late",
        n_passes: Any = "auto",
        n_refine: Any = "auto",
        n_init: Any = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        certificate: str | None = "free",
        tol_certified: float = 0.0,
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
        self.method = method
        self.rank = rank
        self.oversampling = oversampling
        self.n_landmarks = n_landmarks
        self.sketch = sketch
        self.truncation = truncation
        self.n_passes = n_passes
        self.n_refine = n_refine
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.certificate = certificate
        self.tol_certified = tol_certified
        self.precision = precision
        self.memory_limit = memory_limit
        self.checkpoint = checkpoint
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_options(self) -> None:
        super()._check_options()
        check_count("n_clusters", self.n_clusters)
        check_count_or_auto("n_init", self.n_init, 1)
        check_count("max_iter", self.max_iter)
        check_count_or_auto("n_refine", self.n_refine, 0)
        check_number("tol", self.tol, least=0.0)
        check_proof(self)

    def _check_size(self, n: int) -> None:
        check_clusters(self.n_clusters, n)
        super()._check_size(n)

    @property
    def _n_clusters(self) -> int:
        return int(self.n_clusters)

    def _budget(self, data: Checked, decision: Decision, dtype: Any) -> Budget:
        return replace(
            super()._budget(data, decision, dtype),
            n_clusters=self.n_clusters,
            n_init=decision.n_init,
            n_refine=decision.n_refine,
            walks=decision.walks,
        )

    def _fitting_plan(self, method: Method, ask: Request, budget: Budget) -> tuple[Request, Plan]:
        ask, plan = super()._fitting_plan(method, ask, budget)
        return ask, with_proof(self, plan, budget, method, ask) if proves(self) else plan

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        out: Any = None,
        embedding_out: Any = None,
    ) -> Self:
        """Cluster the rows of X.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features), rows in a file, or ColumnStream
            A memory map that is large beside ``memory_limit`` or the memory, and anything else with
            a shape, a dtype and slices of rows (HDF5, Zarr), or the path of a .npy or Parquet file
            or of a folder of these, is read in blocks. For ``kernel="precomputed"`` the kernel
            matrix, which may be a memory map, or sparse: of a graph, ``sketchmeans.graphs`` makes
            one.
        y : ignored
        sample_weight : array of shape (n_samples,), optional
            Weights of the samples in the objective.
        out, embedding_out : path, optional
            New .npy files for labels and embedding, which appear whole or not at all; ``labels_``
            and ``embedding_`` are then memory maps of them.
        """
        outputs = Outputs({"out": out, "embedding_out": embedding_out})
        outputs.check()
        with self._fitting() as kept, FitProgress(self, 6, kept) as progress:
            if isinstance(X, ColumnStream) and self.n_refine not in ("auto", 0):
                raise ValueError(
                    f"{called('n_refine')}={self.n_refine} needs more passes over the kernel, and "
                    f"a ColumnStream is seen once. Set {called('n_refine')}=0."
                )
            if isinstance(X, ColumnStream):
                refuse_proof(self, "a ColumnStream, whose kernel is gone")
            embedded = self._embed(X, sample_weight, progress, outputs.folder)
            check_clusters(self.n_clusters, len(embedded.embedding))
            if self.tol_certified:
                again = partial(self._cluster, progress=progress)
                fitted = until_proved(again, embedded, self.tol_certified)
            else:
                fitted = self._cluster(embedded, progress)
            self._keep(fitted, progress)
            operator = fitted.embedded.operator
            samples = None if operator is None else operator.data
            warn_of_equal_samples(samples, fitted.start.labels_, self.n_clusters)
            # The files are last: when they appear, nothing is left that can fail.
            self.__dict__.update(written(outputs, fitted.embedded.embedding, fitted.labels))
        return self

    def _keep(self, fitted: Clustered, progress: FitProgress) -> None:
        """Set what a fit leaves behind."""
        embedded = fitted.embedded
        self._publish(embedded, progress.seconds)
        self.certificate_ = fitted.certificate
        self.n_iter_ = fitted.start.n_iter_
        self.cluster_centers_ = fitted.start.cluster_centers_
        self.labels_ = fitted.labels
        self.embedding_ = whole(embedded.embedding)
        self._settle(embedded, fitted.refined)
        settle_points(self, embedded.operator and embedded.operator.data)
        if embedded.decision.walks:
            self.stats_["walk"] = fitted.steps
        if fitted.n_starts is not None:
            self.stats_["starts"] = fitted.n_starts

    def _cluster(
        self, embedded: Embedded, progress: FitProgress, before: Clustered | None = None
    ) -> Clustered:
        """Cluster the embedding, refine the labels and certify them."""
        with progress.stage("K-means"):
            walked = cluster_rows(self, embedded, self.n_clusters)
            embedded = embedded.spending(walked.cost)
        labels, at_most, sums = walked.start.labels_, np.inf, None
        refined: Refined | RefinedByLandmarks | None = None
        if embedded.decision.n_refine and embedded.low_rank.whole is None:
            refined, embedded, at_most = self._refine(embedded, labels, progress)
            labels = refined.labels
        elif embedded.decision.n_refine:
            refined, embedded = self._refine_by_landmarks(embedded, labels, progress)
            labels, sums = refined.labels, refined.sums
        with progress.stage("certify"):
            certificate, spent = free_certificate(self, embedded, labels, at_most, sums)
            embedded = embedded.spending(spent)
            bound = None
            if proves(self):
                proof = proof_of_fit(self, embedded, labels, certificate, before)
                certificate, bound = proof.certificate, proof.bound
                if proof.better is not None:
                    refined, labels = proof.better, proof.better.labels
        return Clustered(walked.start, walked.steps, labels, refined, certificate, bound, embedded)

    def _refine(
        self, embedded: Embedded, labels: IntArray, progress: FitProgress
    ) -> tuple[Refined, Embedded, float]:
        """Run exact Lloyd iterations in feature space from the labels of the sketch.

        Return also the embedding with their cost, and what the objective is at most.
        """
        operator, n_iter = embedded.operator, embedded.decision.n_refine
        assert operator is not None
        with progress.stage("refine", work_of(operator, n_iter)) as tick:
            refined = refine(
                operator,
                labels,
                self.n_clusters,
                n_iter=n_iter,
                weights=embedded.weights,
                run=replace(embedded.plan.run, progress=tick),
            )
        rounding, checked = operator.rounding()
        at_most = refined.inertia + rounding * refined.reach
        return refined, embedded.spending(refined.cost + Cost(audit_entries=checked)), at_most

    def _refine_by_landmarks(
        self, embedded: Embedded, labels: IntArray, progress: FitProgress
    ) -> tuple[RefinedByLandmarks, Embedded]:
        """Run Lloyd iterations in the feature space of the landmarks."""
        operator, whole = embedded.operator, embedded.low_rank.whole
        assert operator is not None
        assert whole is not None
        with progress.stage("refine") as tick:
            refined = refine_by_landmarks(
                whole.operator,
                labels,
                self.n_clusters,
                n_iter=embedded.decision.n_refine,
                diagonal=operator.unweighted().diagonal(),
                weights=embedded.weights,
                run=replace(embedded.plan.run, progress=tick),
            )
        return refined, embedded.spending(refined.cost + Cost(entries=operator.diagonal_entries))

    def _settle(self, embedded: Embedded, refined: Refined | RefinedByLandmarks | None) -> None:
        """Set the objective and what ``predict`` measures distances by."""
        given = self.embedding_, self.cluster_centers_, self.labels_, embedded.weights
        self._centroids = self._samples = None
        if refined is None:
            self.inertia_ = inertia(*given)
            self.stats_["objective"] = "of the embedding"
            return
        self.inertia_ = refined.inertia
        move_centers(*given)
        self._centroids = refined.centroids
        self.stats_["objective"] = "exact"
        if isinstance(embedded.operator, NeighborOperator):
            return  # what it is refined in is the kernel's own feature space
        if isinstance(refined, RefinedByLandmarks):
            self.stats_["objective"] = "an upper bound of the exact one, by landmarks"
        elif embedded.operator is not None:  # exact distances need all samples
            self._samples = embedded.new_points

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> FloatArray:
        """Fit, and return ``embedding_``."""
        return self.fit(X, sample_weight=sample_weight).embedding_

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> IntArray:
        """Fit, and return ``labels_``."""
        return self.fit(X, sample_weight=sample_weight).labels_
