"""Plain K-means on the same rows: what the kernel changed, and what that is worth in its terms.

Rows count alike here: a fitted model does not keep the weights of its samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.advice.few import picked
from sketchmeans.blas import OneBlasThread
from sketchmeans.centers import near_one, subsample, without_warnings_of_starts
from sketchmeans.certificate.objective import cluster_sums, exact_objective, memberships
from sketchmeans.engine import Run
from sketchmeans.estimators.fitted import kernel_of, run_of
from sketchmeans.estimators.parts import parts_of
from sketchmeans.lowrank.core import CUT, noise_level
from sketchmeans.operators import (
    FeatureOperator,
    KernelOperator,
    LandmarkFeatures,
    LandmarkOperator,
    NeighborOperator,
    NewPoints,
)

MOST = 100_000
"""Rows that plain K-means is asked of, at most: of more so many are drawn by the seed."""
PASS_ROWS = 10_000
"""Rows up to which the exact objective is worth a pass over the kernel."""
ROWS, NUMBERS = 10_000, 1 << 21
"""Rows that K-means starts on, and numbers of them, at most; the others go to its centers."""
EACH = 20
"""Rows for a cluster, at the least."""
STARTS = 4
AS_GOOD = 1.01
"""Two clusterings count as equally good where their inertia differs by less than this factor."""
SAME = 1e-6
"""The trace, and what anchors hold, agree to this part where all samples weigh one."""


@dataclass(frozen=True)
class PlainKMeans:
    """What plain K-means finds in the rows of a fitted model."""

    labels: IntArray
    """Of all rows, or of those that were drawn."""
    objective: float | None
    """Of these labels, in the terms of the model's certificate: the normalized cut with
    kernel="neighbors"; else the objective of the kernel, exactly or, where the model has landmarks
    and many samples, what it is at most. None where neither is known, and where the certificate
    counts weights, which a model does not keep: that shows in the trace of the kernel, or in what
    the anchors hold. NOTE: weights of mean one leave the trace of an rbf kernel as it is. Nor
    is it known where rows were drawn."""
    rows: IntArray | None = None
    """The rows that were drawn; None where they are all."""


def plain_kmeans(model: Any, X: Any, *, random_state: int = 0) -> PlainKMeans | None:
    """Cluster the training rows of a model by K-means without a kernel.

    All rows weigh one. K-means starts on ``ROWS`` of them at most. Of more than ``MOST`` rows so
    many are drawn, and nothing is said of the objective. That takes a stream over the features of
    the kernel or the columns of the landmarks, or up to ``PASS_ROWS`` rows a pass over the kernel:
    less than the fit did.

    Parameters
    ----------
    model : KernelKMeans or FullKernelKMeans
        Fitted.
    X : array or CSR matrix of shape (n_samples, n_features)
        Its training samples.
    random_state : int
        Of K-means, and of the rows that it starts on.

    Returns
    -------
    PlainKMeans or None
        None where there are no rows to cluster: for kernel="precomputed".
    """
    if isinstance(model.kernel, str) and model.kernel == "precomputed":
        return None
    check_training_rows(model, X.shape[0] if hasattr(X, "shape") else len(X))
    drawn = subsample(np.arange(len(model.labels_)), MOST, random_state)
    if len(drawn) < len(model.labels_):
        some = picked(X, drawn)
        some = some if some.dtype.kind == "f" else some.astype(np.float64)
        ours = model.labels_[drawn]
        return PlainKMeans(plain_labels(some, ours, model.n_clusters, random_state), None, drawn)
    operator = kernel_of(model, X)
    labels = plain_labels(operator.data, model.labels_, model.n_clusters, random_state)
    with OneBlasThread():
        return PlainKMeans(labels, _objective(model, operator, labels, run_of(model)))


def check_training_rows(model: Any, n: int) -> None:
    """Refuse rows that are not as many as the model was fitted to."""
    if n != len(model.labels_):
        raise ValueError(
            f"X has {n} rows, but the model was fitted to {len(model.labels_)} samples. Give the "
            "training samples."
        )


def plain_labels(X: Any, labels: IntArray, n_clusters: int, seed: int) -> IntArray:
    """Return the labels of K-means of rows, dense or sparse, the same for any threads.

    One more start is at the means of ``labels``, and counts if it ends as well as the others: where
    there are many clusterings as good as each other, as a disc can be halved in any direction,
    those that differ say nothing of a kernel.
    """
    n, p = X.shape
    most = max(min(ROWS, NUMBERS // p), EACH * n_clusters)
    chosen = subsample(np.arange(n), most, seed)
    scaled, _ = near_one(X)
    some = scaled if len(chosen) == n else scaled[chosen]
    with OneBlasThread(), without_warnings_of_starts():  # the fit has told of equal rows
        found = KMeans(n_clusters, n_init=STARTS, random_state=seed).fit(some)
        if (means := _means(some, labels[chosen], n_clusters)) is not None:
            near = KMeans(n_clusters, init=means, n_init=1).fit(some)
            found = near if near.inertia_ <= AS_GOOD * found.inertia_ else found
        return found.labels_ if len(chosen) == n else found.predict(scaled)


def _means(X: Any, labels: IntArray, n_clusters: int) -> FloatArray | None:
    """Return the mean row of each cluster; None where one has no rows."""
    sizes = np.bincount(labels, minlength=n_clusters)
    if not sizes.all():
        return None
    members = memberships(labels, None, n_clusters).astype(X.dtype)
    return (X.T @ members / sizes).T.astype(X.dtype, order="C")


def _objective(model: Any, operator: KernelOperator, labels: IntArray, run: Run) -> float | None:
    """Return the objective of labels in the terms of the model's certificate, if it is known."""
    if isinstance(operator, NeighborOperator):
        return _cut(operator, labels, run)
    diagonal = operator.diagonal()
    trace, certified = float(diagonal.sum()), model.certificate_.trace_kernel
    if abs(trace - certified) > SAME * abs(certified):
        return None
    if isinstance(operator, FeatureOperator):
        return trace - _within(cluster_sums(operator, labels, None, run), labels)
    if operator.shape[0] <= PASS_ROWS:
        members = memberships(labels, np.ones(len(labels)), int(labels.max()) + 1)
        return exact_objective(trace, members, operator.multiply(members, run).W)
    points = parts_of(model).new_points
    if getattr(model, "n_landmarks_", None) is None or operator.is_psd is False:
        return None
    features = _landmark_features(operator, points)
    return trace - _within(cluster_sums(features, labels, None, run), labels)


def _cut(operator: NeighborOperator, labels: IntArray, run: Run) -> float | None:
    """Return the normalized cut; None where the anchors do not hold each of these rows once."""
    sums = cluster_sums(operator, labels, None, run)
    held = np.concatenate(operator.map.held)
    once = np.sqrt(held / len(operator.map.graphs))
    if not np.allclose(sums.sum(axis=1), once, rtol=SAME, atol=0.0):
        return None
    return max(len(np.unique(labels)) - _within(sums, labels), 0.0)


def _within(sums: FloatArray, labels: IntArray) -> float:
    """Return ⟨K, P⟩ from the sums of the rows of F over the clusters."""
    sizes = np.bincount(labels, minlength=sums.shape[1])
    full = sizes > 0
    return float((np.square(sums[:, full]).sum(axis=0) / sizes[full]).sum())


def _landmark_features(operator: KernelOperator, points: NewPoints) -> LandmarkOperator:
    """Return K̂ of the samples by the landmarks that a model kept."""
    landmarks: Any = points
    A = landmarks.against(landmarks.data).dense()
    values, vectors = np.linalg.eigh((A + A.T) / 2)
    kept = values > CUT * noise_level(points.dtype, 0.0) * values[-1]
    T = vectors[:, kept] / np.sqrt(values[kept])
    return LandmarkOperator(operator, LandmarkFeatures(points, T, points.rows_at_once(T.shape[0])))
