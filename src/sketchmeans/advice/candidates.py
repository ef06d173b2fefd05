"""Kernels and widths that are tried beside each other, and the clusters that each of them finds.

All see the same rows. Each is embedded once, for all numbers of clusters: K-means then takes as
many columns of the embedding as a fit with so many clusters would have.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.advice.borders import Votes
from sketchmeans.advice.by_cut import STARTS, clustered, votes_of
from sketchmeans.advice.evidence import stability
from sketchmeans.blas import OneBlasThread
from sketchmeans.estimators.cluster import KernelKMeans
from sketchmeans.estimators.embedded import Embedded
from sketchmeans.estimators.parts import check_options
from sketchmeans.estimators.sizing import EXTRA_RANK
from sketchmeans.estimators.sketched import embed
from sketchmeans.estimators.walks import cluster_rows

WIDTHS = ("0.25*median", "median", "4*median", "16*median")
"""Widths of the rbf kernel that are tried: from nearly a linear kernel to a local one."""


@dataclass(frozen=True)
class Candidate:
    """A kernel of some width, and the clusters that it finds."""

    kernel: str
    width: str | None
    """γ as ``KernelKMeans`` takes it; None where the kernel has none."""
    gamma: float | None
    extra: int
    """Columns of the embedding beyond the number of clusters."""
    embedding: FloatArray
    labels: dict[int, IntArray]
    """By the number of clusters."""

    @property
    def name(self) -> str:
        """The kernel and its width, in a word or two."""
        return self.kernel if self.width is None else f"{self.kernel} {self.width}"

    def stability(self, n_clusters: int, *, n_splits: int, seed: int) -> float:
        """Return how well halves of the rows agree; the same halves for every candidate."""
        Y = self.embedding[:, : n_clusters + self.extra]
        random = np.random.default_rng([seed, n_clusters])
        return stability(Y, n_clusters, n_splits=n_splits, random=random)


def check_candidates(options: dict[str, Any]) -> None:
    """Refuse options that a fit of any candidate would refuse."""
    for kernel, width in _tried():
        check_options(_model(kernel, width, 2, 0, options))


def candidates(
    X: Any, numbers: list[int], options: dict[str, Any], seed: int
) -> tuple[list[Candidate], Votes | None]:
    """Cluster rows with every kernel that is tried; return also what borders separate.

    For each kernel one embedding, and K-means for each number. The pieces whose borders are looked
    at come from the neighbours kernel; borders themselves know no kernel. None of too few rows.
    """
    found, votes = [], None
    for kernel, width in _tried():
        model = _model(kernel, width, numbers[-1], seed, options)
        neighbors = kernel == "neighbors"
        extra = 0 if neighbors else EXTRA_RANK
        if not neighbors:
            model.set_params(n_refine=0)
        embedded = embed(model, X)
        with OneBlasThread():
            if neighbors:
                labels = {k: clustered(model, embedded, k)[0] for k in numbers}
                votes = votes_of(model, embedded)
            else:
                labels = {k: _in_columns(model, embedded, k, k + extra) for k in numbers}
        found.append(Candidate(kernel, width, embedded.gamma, extra, embedded.embedding, labels))
    return found, votes


def _tried() -> list[tuple[str, str | None]]:
    return [("neighbors", None), *(("rbf", width) for width in WIDTHS)]


def _model(
    kernel: str, width: str | None, n_clusters: int, seed: int, options: dict[str, Any]
) -> KernelKMeans:
    given = options if width is None else {**options, "gamma": width}
    model = KernelKMeans(n_clusters, kernel=kernel, random_state=seed, **given)
    return model.set_params(n_init=STARTS) if model.n_init == "auto" else model


def _in_columns(model: KernelKMeans, embedded: Embedded, k: int, columns: int) -> IntArray:
    """Return the labels of K-means on the leading columns of an embedding."""
    leading = np.ascontiguousarray(embedded.embedding[:, :columns])
    return cluster_rows(model, replace(embedded, embedding=leading), k).start.labels_
