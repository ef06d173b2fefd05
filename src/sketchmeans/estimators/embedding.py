"""KernelEmbedding: the preprocessing alone, for any clusterer or model after it."""

from __future__ import annotations

from typing import Any, Self

from sketchmeans._arrays import FloatArray
from sketchmeans.estimators.documents import documented
from sketchmeans.estimators.progress import FitProgress, with_callbacks
from sketchmeans.estimators.sketched import SketchedEstimator


@documented
class KernelEmbedding(SketchedEstimator):
    """Rows Y with K ≈ YYᵀ, from one pass over a kernel matrix K that is never stored.

    Euclidean distances between rows of ``embedding_`` are distances in the kernel's feature
    space, so any clusterer or linear model can work on them.

    Passes over K: ``n_passes``. Memory: n × width numbers and a few tiles.

    Parameters
    ----------
    rank : int, float or "auto"
        Columns of the embedding: a number, the fraction of the trace of K to hold (0 to 1), or
        "auto", 18: what ``KernelKMeans`` takes for its default of 8 clusters.
    [kernel, gamma, degree, coef0, kernel_params]
    [method, oversampling, sketch, truncation, n_passes]
    [precision, memory_limit, n_jobs, random_state, verbose]

    Attributes
    ----------
    [embedding_, eigenvalues_, rank_, gamma_, stats_, n_features_in_]

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sketchmeans import KernelEmbedding
    >>> X = load_iris().data
    >>> KernelEmbedding(rank=5, random_state=0).fit_transform(X).shape
    (150, 5)
    """

    def __init__(
        self,
        rank: Any = "auto",
        *,
        kernel: Any = "rbf",
        gamma: Any = "median",
        degree: int = 3,
        coef0: float = 1.0,
        kernel_params: dict[str, Any] | None = None,
        method: str = "one-pass",
        oversampling: Any = "auto",
        sketch: str = "auto",
        truncation: str = "late",
        n_passes: int = 1,
        precision: str = "auto",
        memory_limit: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.rank = rank
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.method = method
        self.oversampling = oversampling
        self.sketch = sketch
        self.truncation = truncation
        self.n_passes = n_passes
        self.precision = precision
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Compute the embedding of X.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features), or ColumnStream
            For ``kernel="precomputed"`` the kernel matrix, which may be a memory map.
        y : ignored
        sample_weight : array of shape (n_samples,), optional
            The embedding favours samples of large weight.
        """
        with self._fitting(), FitProgress(self, 4) as progress:
            embedded = self._embed(X, sample_weight, progress)
        self._publish(embedded, progress.seconds)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> FloatArray:
        """Fit, and return ``embedding_``."""
        return self.fit(X, sample_weight=sample_weight).embedding_
