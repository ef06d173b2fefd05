"""certify: the distance to the best possible, for labels that anybody found."""

from __future__ import annotations

import inspect
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from sketchmeans._arrays import FloatArray, IntArray
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
from sketchmeans.checks import check_count
from sketchmeans.engine import Run, engine_name
from sketchmeans.estimators.asking import check_asked
from sketchmeans.estimators.base import Checked, KernelEstimator
from sketchmeans.estimators.checks import refuse_light
from sketchmeans.estimators.cluster import KernelKMeans
from sketchmeans.estimators.full import FullKernelKMeans
from sketchmeans.estimators.given_labels import numbered
from sketchmeans.estimators.progress import Bar
from sketchmeans.estimators.proofs import around_the_mean, first_size, moved_bytes, proof_run
from sketchmeans.estimators.streaming import saved_by
from sketchmeans.kernels import make_kernel
from sketchmeans.lowrank.sparse_features import from_known_anchors, from_sparse_features
from sketchmeans.operators import NeighborOperator, SparseOperator
from sketchmeans.rows import Rows
from sketchmeans.text import called, setting

AUTO_TRIANGLES = 1000
"""Samples up to which effort="auto" goes as far as triangles without a time limit: a minute."""


LOOKED_AT, NEAR = 16, 0.01
"""Rows that are embedded again, to see whether they are those of the model, and how near to what
it knows they must be, of the largest number."""


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
    judged = _Judged.of(labels, kernel, gamma, degree, coef0, kernel_params, n_clusters)
    if judged.model is not None:
        _refuse_others(judged.model, X)
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
    judged: _Judged, checked: Checked, labels: IntArray, asked: Proving
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
    judged = _Judged.of(labels, *(known[name] for name in kernel_options))
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


@dataclass(frozen=True)
class _Judged:
    """Labels, and the kernel that they are judged by."""

    labels: Any
    options: dict[str, Any]
    model: Any
    asked_clusters: int | None

    @classmethod
    def of(
        cls,
        labels: Any,
        kernel: Any,
        gamma: Any,
        degree: int,
        coef0: float,
        kernel_params: dict[str, Any] | None,
        n_clusters: int | None,
    ) -> _Judged:
        """Take labels as they are, or those of a model with its kernel."""
        options = {
            "gamma": gamma,
            "degree": degree,
            "coef0": coef0,
            "kernel_params": kernel_params,
        }
        if isinstance(labels, KernelKMeans | FullKernelKMeans):
            check_is_fitted(labels)
            defaults = {"gamma": "median", "degree": 3, "coef0": 1.0, "kernel_params": None}
            given = [name for name, value in options.items() if value != defaults[name]]
            if kernel is not None or given:
                name = "kernel" if kernel is not None else given[0]
                raise ValueError(
                    f"{called(name)} cannot be given with a model, which brings its own: its "
                    "labels are judged by the kernel that they were found with. Leave it out, or "
                    "pass model.labels_ to judge them by another kernel."
                )
            options = {name: getattr(labels, name) for name in options}
            if labels.gamma_ is not None:
                options["gamma"] = labels.gamma_
            options["kernel"] = labels.kernel
            return cls(labels.labels_, options, labels, n_clusters)
        if kernel is None:
            raise ValueError(
                "labels do not say what they minimised: give the kernel to judge them by, such as "
                f"{setting('kernel', 'linear')} for plain K-means, or a fitted model in the place "
                "of the labels."
            )
        return cls(labels, {**options, "kernel": kernel}, None, n_clusters)

    def clusters(
        self, n: int, weights: FloatArray | None, *, is_graph: bool
    ) -> tuple[IntArray, int]:
        """Return the labels as whole numbers from 0, and how many clusters the best may have.

        A cut is compared with those into as many clusters: with fewer, the least would be 0.
        """
        numbers = numbered(self.labels, n)
        used = len(np.unique(numbers if weights is None else numbers[weights > 0]))
        if self.asked_clusters is None:
            allowed = used if self.model is None or is_graph else self.model.n_clusters
            return numbers, int(allowed)
        check_count("n_clusters", self.asked_clusters)
        if is_graph and self.asked_clusters != used:
            raise ValueError(
                f"{called('n_clusters')}={self.asked_clusters}, and the labels have {used} "
                "clusters: a normalized cut is compared with those into as many clusters. Leave "
                f"{called('n_clusters')} out."
            )
        if self.asked_clusters < used:
            raise ValueError(
                f"n_clusters={self.asked_clusters} is less than the {used} clusters of the labels: "
                "they would be compared with a best clustering that may have fewer clusters than "
                "they have. Leave n_clusters out, or merge clusters first."
            )
        return numbers, int(self.asked_clusters)


def _refuse_others(model: Any, X: Any) -> None:
    """Refuse rows that a model was not fitted to, by what it makes of some of them.

    NOTE: what the model knows of the best possible is not taken over all the same: rows between
    these, and weights, might differ.
    """
    if isinstance(X, str | os.PathLike | Rows):
        return
    validate_data(model, X, reset=False, skip_check_array=True)
    known = getattr(model, "embedding_", None)
    if not isinstance(known, np.ndarray) or _num_samples(X) != len(known):
        return
    few = np.linspace(0, len(known) - 1, min(len(known), LOOKED_AT)).astype(np.intp)
    known = known[few].astype(np.float64)
    off = np.abs(model.transform(_safe_indexing(X, few)) - known).max(axis=1)
    if off.max() > NEAR * np.abs(known).max():
        raise ValueError(
            f"X is not what the model was fitted to: row {few[off.argmax()]} is embedded "
            "elsewhere. Pass the rows that were given to fit, in their order, or pass labels and a "
            "kernel in the place of the model."
        )


def _is_graph(checked: Checked) -> bool:
    """Whether labels are judged by their normalized cut."""
    operator = checked.operator
    if isinstance(operator, NeighborOperator):
        return True
    return isinstance(operator, SparseOperator) and cut_scale(operator) is not None


def _of_graph(
    checked: Checked, judged: _Judged, labels: IntArray, n_clusters: int, run: Run
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
