"""Labels, and the kernel that they are judged by: anybody's, or those of a fitted model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.checks import check_count
from sketchmeans.disk import is_source
from sketchmeans.estimators.cluster import KernelKMeans
from sketchmeans.estimators.full import FullKernelKMeans
from sketchmeans.estimators.given_labels import numbered
from sketchmeans.rows import Rows
from sketchmeans.text import called, setting

LOOKED_AT, NEAR = 16, 0.01
"""Rows that are embedded again, to see whether they are those of the model, and how near to what
it knows they must be, of the largest number."""


@dataclass(frozen=True)
class Judged:
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
    ) -> Judged:
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


def refuse_others(model: Any, X: Any) -> None:
    """Refuse rows that a model was not fitted to, by what it makes of some of them.

    NOTE: what the model knows of the best possible is not taken over all the same: rows between
    these, and weights, might differ.
    """
    if isinstance(X, Rows) or is_source(X):
        return  # to look at a few of these could take longer than to trust them
    validate_data(model, X, reset=False, skip_check_array=True)
    known = getattr(model, "embedding_", None)
    rows = X.iloc if hasattr(X, "iloc") else X if hasattr(X, "shape") else np.asarray(X)
    n = len(X) if hasattr(X, "iloc") else rows.shape[0]
    if not isinstance(known, np.ndarray) or n != len(known):
        return
    few = np.linspace(0, len(known) - 1, min(len(known), LOOKED_AT)).astype(np.intp)
    known = known[few].astype(np.float64)
    off = np.abs(model.transform(rows[few]) - known).max(axis=1)
    if off.max() > NEAR * np.abs(known).max():
        raise ValueError(
            f"X is not what the model was fitted to: row {few[off.argmax()]} is embedded "
            "elsewhere. Pass the rows that were given to fit, in their order, or pass labels and a "
            "kernel in the place of the model."
        )
