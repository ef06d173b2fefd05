"""certify: the distance to the best possible, for labels that anybody found."""

from __future__ import annotations

import inspect
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sketchmeans._arrays import IntArray
from sketchmeans.blas import OneBlasThread
from sketchmeans.certificate import Certificate
from sketchmeans.certificate.cut import cut_certificate
from sketchmeans.certificate.objective import cluster_sums
from sketchmeans.certificate.proven import (
    Proving,
    cut_scale,
    has_degrees_of_one,
    proven_certificate,
)
from sketchmeans.checkpoints import kept_in
from sketchmeans.checkpoints.fingerprint import fingerprint
from sketchmeans.engine import Run, engine_name
from sketchmeans.estimators.asking import check_asked
from sketchmeans.estimators.base import Checked, KernelEstimator
from sketchmeans.estimators.judged import Judged, refuse_others
from sketchmeans.estimators.progress import Bar
from sketchmeans.estimators.proofs import around_the_mean, first_size, moved_bytes, proof_run
from sketchmeans.estimators.streaming import saved_by
from sketchmeans.estimators.weights import refuse_light
from sketchmeans.kernels import make_kernel
from sketchmeans.lowrank.sparse_features import from_known_anchors, from_sparse_features
from sketchmeans.operators import NeighborOperator, SparseOperator
from sketchmeans.text import setting

AUTO_TRIANGLES = 1000
"""Samples up to which effort="auto" goes as far as triangles without a time limit: a minute."""


class _Data(KernelEstimator):
    """Checks of data and kernel, as a fit makes them."""

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        gamma: Any = "median",
        degree: int = 3,
        coef0: float = 1.0,
        kernel_params: dict[str, Any] | None = None,
        precision: str = "auto",
        memory_limit: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.precision = precision
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs

    foreseen: Callable[[Checked], Any] | None = None
    """What refuses a memory limit, of an outline of the data."""

    def _planned(self, data: Checked) -> None:
        if self.foreseen is not None:
            moved = moved_bytes(data.operator)
            self.foreseen(replace(data, copied=data.copied + moved))

    def prepared(self, X: Any, sample_weight: Any, seed: int) -> Checked:
        """Return checked data and their kernel, in float64; a linear one of centred rows."""
        self._check_options()
        refuse_light(sample_weight)
        data = self._prepare(X, sample_weight, seed)
        moved = around_the_mean(data.operator)
        if moved is data.operator:
            return data
        copied = data.copied + getattr(moved.data, "nbytes", 0)  # none here of rows elsewhere
        return replace(data, X=moved.data, operator=moved, copied=copied)

    def threads(self) -> Run:
        """Return how passes are run."""
        return self._run()


def certify(
    X: Any,
    labels: Any,
    *,
    kernel: Any = None,
    gamma: Any = "median",
    degree: int = 3,
    coef0: float = 1.0,
    kernel_params: dict[str, Any] | None = None,
    sample_weight: Any = None,
    n_clusters: int | None = None,
    effort: str = "auto",
    seconds: float | None = None,
    block_size: Any = "auto",
    failure_probability: float | None = None,
    memory_limit: Any = None,
    checkpoint: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
) -> Certificate:
    """Prove how far a clustering is from the best possible, whoever computed it.

    The objective of the labels is computed, and a bound that no clustering into as many clusters
    gets below. Kernel entries: n² up to 3,000 samples; beyond, one pass of n²/2 (n × 1,000 where
    that is less work) and n × block_size. Memory: eight matrices of block_size² numbers a thread.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
        For ``kernel="precomputed"`` the kernel matrix, which may be a memory map, or sparse.
    labels : array of shape (n_samples,), or a fitted KernelKMeans or FullKernelKMeans
        Whole numbers or text. A model brings its labels and its kernel; X is what it was fitted to.
    kernel : str or callable
        What the labels are to be judged by: "linear" for plain K-means. Not with a model.
    gamma, degree, coef0, kernel_params
        Of the kernel, as in ``KernelKMeans``; not with a model.
    sample_weight : array of shape (n_samples,), optional
        Weights of the samples in the objective.
    n_clusters : int, optional
        Clusters that the best clustering may have; as many as the labels have if left out.
    effort : {"auto", "free", "blocks", "lifted", "triangles"}
        How far to go: moments of the whole kernel; eigenvalues of blocks of samples; lifted
        eigenvalues; with cuts for three samples each. "auto" is "triangles" up to 1,000 samples or
        with ``seconds``, and "lifted" beyond.
    seconds : float, optional
        Go on while it gains, up to this time; then Ctrl-C returns the best so far. Without it the
        result is the same for any number of threads.
    block_size : int or "auto"
        Samples of a block; "auto" is all of them up to 3,000, 1,000 beyond, or by ``seconds``.
    failure_probability : float, optional
        Allow bounds that fail with this probability: from Gaussian probes of the pass, and where
        ``seconds`` are too few for all blocks, from some that are drawn. Each gets half of it.
    memory_limit : int or str, optional
        Bytes beyond X, such as "2GB".
    checkpoint : str or path, optional
        A folder in which a long proof saves what it has done; the same call goes on from there.
        Not with ``seconds``.
    n_jobs : int, optional
        Threads; None is all cores.
    random_state : int, optional
        Of the blocks, of γ, and of the anchors of "neighbors".
    verbose : int
        Show progress and the bound so far.

    Returns
    -------
    Certificate
        ``print`` it.

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from sketchmeans import certify
    >>> X = scale(load_wine().data)
    >>> labels = KMeans(3, n_init=10, random_state=0).fit_predict(X)
    >>> certify(X, labels, kernel="linear").relative_gap < 0.005
    True
    """
    began = time.perf_counter()
    check_asked(effort, seconds, block_size, failure_probability, checkpoint)
    judged = Judged.of(labels, kernel, gamma, degree, coef0, kernel_params, n_clusters)
    if judged.model is not None:
        refuse_others(judged.model, X)
    data = _Data(**judged.options, memory_limit=memory_limit, n_jobs=n_jobs)

    def reckoned(checked: Checked, own: Run) -> tuple[IntArray, Proving, Run]:
        n = checked.X.shape[0]
        numbers, clusters = judged.clusters(n, checked.weights, is_graph=_is_graph(checked))
        asked = Proving(
            n_clusters=clusters,
            effort=_effort(effort, n, seconds),
            seconds=None if seconds is None else float(seconds),
            began=began,
            block_size=None if isinstance(block_size, str) else int(block_size),
            failure_probability=failure_probability,
            seed=int(seeds[0]),
        )
        if memory_limit is not None:  # what is reckoned for the first blocks is what there is
            asked = replace(asked, largest_block=first_size(n, asked, data.threads()))
        met = checked.operator
        decomposes = isinstance(met, NeighborOperator)
        run = proof_run(met, asked, checked.copied, memory_limit, own, decomposes=decomposes)
        return numbers, asked, run

    data.foreseen = lambda checked: reckoned(checked, data.threads())
    with OneBlasThread(), kept_in(checkpoint) as kept:
        seeds = kept.random_state(random_state).randint(2**31 - 1, size=2)
        checked = data.prepared(X, sample_weight, int(seeds[1]))
        own = replace(data.threads(), checkpoint=kept)
        numbers, asked, run = reckoned(checked, own)
        kept.belongs_to(lambda: _identified(judged, checked, numbers, asked))
        saved_by(kept, checked.X)
        known = _of_graph(checked, judged, numbers, asked.n_clusters, run)
        with _Told(verbose) as told:
            asked = replace(asked, report=told)
            found = proven_certificate(checked.operator, numbers, asked, run, known)[0]
        return found


def _identified(
    judged: Judged, checked: Checked, labels: IntArray, asked: Proving
) -> dict[str, str]:
    """Return what a checkpoint of a proof is of."""
    names = ("n_clusters", "effort", "block_size", "failure_probability")
    options = judged.options | {name: getattr(asked, name) for name in names}
    if judged.model is not None:
        options["the certificate of the model"] = repr(judged.model.certificate_)
    weights = checked.weights
    return fingerprint(
        "certify", options, engine_name(), X=checked.X, labels=labels, sample_weight=weights
    )


def check_elsewhere(labels: Any, options: dict[str, Any]) -> None:
    """Refuse what cannot be proved where rows are elsewhere, before any are moved."""
    known = {name: one.default for name, one in inspect.signature(certify).parameters.items()}
    known |= options
    if known["checkpoint"] is not None:
        raise ValueError(
            f"checkpoint={known['checkpoint']!r} is not offered on a cluster: what has been done "
            "is on its workers. Leave checkpoint out, or certify on one machine."
        )
    asked = ("effort", "seconds", "block_size", "failure_probability", "checkpoint")
    check_asked(*(known[name] for name in asked))
    kernel_options = ("kernel", "gamma", "degree", "coef0", "kernel_params", "n_clusters")
    judged = Judged.of(labels, *(known[name] for name in kernel_options))
    data = _Data(**judged.options, memory_limit=known["memory_limit"], n_jobs=known["n_jobs"])
    data._check_options()
    data.refuse_elsewhere()
    if data.kernel == "neighbors":
        return
    kernel = make_kernel(data.kernel, gamma=1.0, degree=data.degree, coef0=data.coef0)
    if not kernel.is_psd:
        raise ValueError(
            f"{setting('kernel', data.kernel)} is not positive semidefinite in general, and bounds "
            "of blocks add up for kernels that are: on a cluster there would be no proof. Choose "
            "another kernel, or call sketchmeans.certify, which takes up to 3,000 samples as one "
            "block."
        )


def _effort(effort: str, n: int, seconds: float | None) -> str:
    """Turn "auto" into a level."""
    if effort != "auto":
        return effort
    return "triangles" if n <= AUTO_TRIANGLES or seconds is not None else "lifted"


def _is_graph(checked: Checked) -> bool:
    """Whether labels are judged by their normalized cut."""
    operator = checked.operator
    if isinstance(operator, NeighborOperator):
        return True
    return isinstance(operator, SparseOperator) and cut_scale(operator) is not None


def _of_graph(
    checked: Checked, judged: Judged, labels: IntArray, n_clusters: int, run: Run
) -> Certificate | None:
    """Return what eigenvalues tell of the cut of a neighbours kernel; None for other kernels."""
    operator = checked.operator
    if not isinstance(operator, NeighborOperator):
        return None
    if judged.model is not None:
        operator.map = judged.model._new_points.map
        if not has_degrees_of_one(operator):
            raise ValueError(
                "X or sample_weight are not what the model was fitted to: its graph has other "
                "degrees with them. Pass those that were given to fit."
            )
    decompose = from_sparse_features if judged.model is None else from_known_anchors
    low_rank = decompose(operator, rank=min(n_clusters, len(labels)), run=run)
    sums = cluster_sums(operator.unweighted(), labels, checked.weights, run)
    return cut_certificate(labels, low_rank, sums, checked.weights)


class _Told:
    """Shows progress, and the bound so far."""

    def __init__(self, verbose: int) -> None:
        self._bar = Bar(sys.stderr) if verbose else None

    def __enter__(self) -> Callable[[int, int, float], None] | None:
        return None if self._bar is None else self._show

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def _show(self, done: int, total: int, bound: float) -> None:
        assert self._bar is not None
        self._bar.show("proof", done, total, note=f"best possible at least {bound:.6g}")
