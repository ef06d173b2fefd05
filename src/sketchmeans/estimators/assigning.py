"""From new points to the nearest clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.blas import OneBlasThread
from sketchmeans.engine import Run
from sketchmeans.estimators.base import KernelEstimator
from sketchmeans.estimators.kmeans import nearest_centers
from sketchmeans.estimators.landmark_lloyd import LandmarkCentroids
from sketchmeans.estimators.streaming import in_blocks
from sketchmeans.estimators.weights import check_weights


class Assigning(KernelEstimator):
    """An estimator that assigns points to clusters, by its embedding or in feature space."""

    def _used(self) -> IntArray:
        """Return the clusters that have members.

        NOTE: where fewer samples differ than there are clusters, centers without members lie where
        others do, and rounding would choose among them.
        """
        counts = np.bincount(np.asarray(self.labels_), minlength=len(self.cluster_centers_))
        return np.flatnonzero(counts)

    def _assign(
        self, X: Any, run: Run, used: IntArray, *, measure: bool
    ) -> tuple[IntArray, FloatArray]:
        """Return the nearest cluster of checked points and, if measured, its squared distance."""
        if self._centroids is not None:
            points = self._samples or self._new_points
            diagonal = points.diagonal_of(X) if measure else np.zeros(X.shape[0])
            if isinstance(self._centroids, LandmarkCentroids):
                return self._centroids.assign(points, X, diagonal, run)
            return self._centroids.assign(points.against(X), diagonal, run)
        Y = self._new_points.against(X).multiply(self._dual, run)
        labels, squares = nearest_centers(Y, self.cluster_centers_[used].astype(np.float64))
        return used[labels].astype(np.int32), squares

    def predict(self, X: Any, *, out: Any = None) -> IntArray:
        """Return the nearest cluster of each point.

        Kernel entries: m per point for m landmarks, or n for the n training samples. After
        refinement the distances are those in feature space, to the centroids from which
        ``labels_`` were assigned.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_points, n_features), or rows in a file
            As ``fit`` takes them. For a precomputed kernel or a stream: the kernel of the points
            with the training samples.
        out : path, optional
            A new .npy file for the labels, which appears whole or not at all; a memory map of it is
            returned.

        Returns
        -------
        array of shape (n_points,)
        """
        return self._predict(X, self._run(), out)

    def _predict(self, X: Any, run: Run, out: Any = None) -> IntArray:
        check_is_fitted(self)
        used = self._used()

        def assign(rows: Any, run: Run) -> IntArray:
            return self._assign(rows, run, used, measure=False)[0]

        with OneBlasThread():
            return in_blocks(self, X, assign, (), out, run)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the objective of X: of the training data, −inertia_.

        Not comparable across kernels or their widths: ``GridSearchCV`` would pick useless ones.
        For that, pass ``scoring=sketchmeans.metrics.neighbor_agreement_scorer``.
        """
        with OneBlasThread():
            X = self._check_new(X)
            labels, squares = self._assign(X, self._run(), self._used(), measure=True)
            weights = check_weights(sample_weight, len(labels))
            return -float(squares.sum() if weights is None else squares @ weights)
