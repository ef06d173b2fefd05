"""KernelEmbedding: the preprocessing alone, for any clusterer or model after it."""

from __future__ import annotations

from typing import Any, Self

from sketchmeans._arrays import FloatArray
from sketchmeans.disk import Outputs
from sketchmeans.estimators.progress import FitProgress, with_callbacks
from sketchmeans.estimators.sketched import SketchedEstimator
from sketchmeans.estimators.streaming import settle_points, whole, written


class KernelEmbedding(SketchedEstimator):
    """Rows Y with K ≈ YYᵀ for a kernel matrix K that is never stored.

    Euclidean distances between rows of ``embedding_`` are distances in the kernel's feature
    space, so any clusterer or linear model can work on them.

    Two passes over K for few samples, columns of m landmarks for many: see ``method``. Memory:
    n × width numbers and a few tiles, or m × m numbers.

    Parameters
    ----------
    rank : int, float or "auto"
        Columns of the embedding: a number, the fraction of the trace of K to hold (0 to 1), or
        "auto", 18: what ``KernelKMeans`` takes for its default of 8 clusters. With "neighbors" set
        it to the number of clusters that you look for ("auto" is 8): with ten columns more, which
        other kernels like, the clusters are lost.
    kernel : str or callable
        "neighbors", the default of ``KernelKMeans``: two samples are alike where the same anchors
        are nearest to them; it follows curved clusters, has no width to choose, and kernel K-means
        on it is the normalized cut of a graph. Or "linear", "polynomial" ("poly"), "rbf"
        ("gaussian"; the default of the other estimators), "laplacian", "cosine", "sigmoid",
        "precomputed" (a matrix, dense or sparse), or a function of two blocks of rows, taken as
        symmetric and called from one thread unless ``n_jobs`` is set.
    gamma : float or str
        Of rbf, laplacian, polynomial and sigmoid. "median": 1 / median of the kernel's own
        distance on a seeded subsample; "4*median": four times that; "scale": as scikit-learn's.
    degree : int
        Of polynomial.
    coef0 : float
        Of polynomial and sigmoid.
    kernel_params : dict, optional
        Of "neighbors": ``n_anchors`` ("auto", a third of the samples, from 50 to 450), at centers
        of K-means on a subsample, in which rows with few others near them count more;
        ``n_neighbors`` (5), the anchors that count for a sample;
        ``n_graphs`` ("auto", 4), sets of anchors whose kernels are averaged; ``metric``,
        "euclidean" or "cosine". Of a callable kernel its keyword arguments.
    method : {"auto", "one-pass", "nystrom", "rpcholesky", "greedy-cholesky", "exact"}
        How K is approximated: from a random sketch, which meets all of K in every pass (the
        paper's way); from columns of K, landmarks that are found by ``sketch``, by random pivots,
        or by the largest pivots, in time linear in n; by its leading eigenvectors. "auto" is
        "exact" for "neighbors", which is linear in n too and reads no other, and for sparse
        matrices; "one-pass" where two passes are cheaper (few samples, kernels with few monomials,
        given matrices), and "nystrom" elsewhere. ``stats_["why"]`` tells.
    oversampling : int or "auto"
        Columns of the sketch of "one-pass" beyond ``rank``; "auto" is ``rank``.
    n_landmarks : int or "auto"
        m, for the methods with landmarks: columns of K that cost time, not memory. "auto" is 40
        per cluster (8 where there are none), from 200 to 2,000, and at least twice ``rank``.
    sketch : str
        For "one-pass" the distribution of Ω: "hadamard" ("auto"), "gaussian", "rademacher" or
        "sparse". For "nystrom" how landmarks are found: "kmeans" ("auto" for points: centers of
        K-means on a subsample), "uniform" ("auto" for functions, given matrices and wide sparse
        rows), "diagonal", "column-norm" or "leverage".
    truncation : {"late", "early"}
        When to cut to ``rank``: "late" is more accurate, "early" is the paper's algorithm as
        printed.
    n_passes : int or "auto"
        Passes of "one-pass" over K; a second one is nearly the exact eigendecomposition. "auto" is
        two where ``method`` is "auto", and one otherwise and for a ``ColumnStream``.
    precision : {"auto", "float32", "float64"}
        Of the tiles; "auto" follows the data, and takes float64 for float32 data where rounding
        would show. Finite feature maps work in float64, unless "float32" asks for tiles.
    memory_limit : int, str or None
        Bytes, or "2GB", that ``fit`` may allocate beyond X; refused at once if too low.
    checkpoint : str, path or None
        A folder in which a long fit saves what it has done, twice a minute or so; the same call
        goes on from there, with the same bits. Nothing is left of it when the fit has ended.
    n_jobs : int or None
        Threads; None is what ``joblib.parallel_config`` says, or all cores, and one inside a
        joblib or Dask worker. Never changes results.
    random_state : int, RandomState or None
        Fixes the result, bit for bit.
    verbose : int
        Show progress on standard error.

    Attributes
    ----------
    embedding_ : array of shape (n_samples, rank_)
        Y, with K ≈ YYᵀ; ``transform`` gives the same for the same rows.
    eigenvalues_ : array of shape (rank_,)
        Of YYᵀ, falling: approximate leading eigenvalues of K.
    rank_, width_ : int
        Columns of the embedding, and numbers kept per sample: those of the sketch.
    n_landmarks_ : int or None
        Landmarks that were used; None for methods without.
    gamma_ : float or None
        The γ that was used.
    stats_ : dict
        The method and why it was taken, passes, kernel entries, distances to anchors and those
        that place them, seconds by stage, bytes, engine, precision, threads.
    n_features_in_ : int
        Features seen in ``fit``.

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
        method: str = "auto",
        oversampling: Any = "auto",
        n_landmarks: Any = "auto",
        sketch: str = "auto",
        truncation: str = "late",
        n_passes: Any = "auto",
        precision: str = "auto",
        memory_limit: Any = None,
        checkpoint: Any = None,
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
        self.n_landmarks = n_landmarks
        self.sketch = sketch
        self.truncation = truncation
        self.n_passes = n_passes
        self.precision = precision
        self.memory_limit = memory_limit
        self.checkpoint = checkpoint
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, embedding_out: Any = None
    ) -> Self:
        """Compute the embedding of X.

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
            The embedding favours samples of large weight.
        embedding_out : path, optional
            A new .npy file for the embedding, which appears whole or not at all; ``embedding_`` is
            then a memory map of it.
        """
        outputs = Outputs({"embedding_out": embedding_out})
        outputs.check()
        with self._fitting() as kept, FitProgress(self, 4, kept) as progress:
            embedded = self._embed(X, sample_weight, progress, outputs.folder)
            self._publish(embedded, progress.seconds)
            settle_points(self, embedded.operator and embedded.operator.data)
            self.embedding_ = whole(embedded.embedding)
            # The files are last: when they appear, nothing is left that can fail.
            self.__dict__.update(written(outputs, embedded.embedding))
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> FloatArray:
        """Fit, and return ``embedding_``."""
        return self.fit(X, sample_weight=sample_weight).embedding_
