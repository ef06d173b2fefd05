"""The estimators for Dask collections: the local ones, given rows that are elsewhere."""

from __future__ import annotations

import copy
import inspect
import uuid
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Self

import dask.array as da
import numpy as np
from dask.base import is_dask_collection
from dask.delayed import delayed
from distributed import Client
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from sketchmeans._arrays import FloatArray
from sketchmeans.blocks import stacked
from sketchmeans.dask.clients import check_open, client_for, working
from sketchmeans.dask.inputs import is_frame, place, weights_of, without_rows
from sketchmeans.dask.placed import DaskRows, identity
from sketchmeans.estimators import cluster, embedding
from sketchmeans.estimators.parts import check_options, gathered, without_samples
from sketchmeans.estimators.weights import check_weights

SHARED = (
    "cluster_centers_",
    "inertia_",
    "n_iter_",
    "certificate_",
    "eigenvalues_",
    "rank_",
    "width_",
    "n_landmarks_",
    "gamma_",
    "stats_",
    "n_features_in_",
    "feature_names_in_",
)
"""What a fit leaves behind that is small, and the same as locally."""


def with_client(local: type) -> Callable[[type], type]:
    """Give a class the parameters of a local estimator, and ``client``."""
    signature = inspect.signature(local.__init__)  # type: ignore[misc]
    parameters = [*signature.parameters.values()]
    own = inspect.Parameter("client", inspect.Parameter.KEYWORD_ONLY, default=None)

    def __init__(self: Any, *args: Any, client: Any = None, **options: Any) -> None:
        bound = signature.bind(self, *args, **options)
        bound.apply_defaults()
        for name, value in list(bound.arguments.items())[1:]:
            setattr(self, name, value)
        self.client = client

    __init__.__signature__ = signature.replace(parameters=[*parameters, own])  # type: ignore[attr-defined]

    def decorate(cls: Any) -> Any:
        cls.__init__ = __init__
        cls._local = local
        return cls

    return decorate


class DaskEstimator(BaseEstimator):
    """What both estimators share: a local estimator that is fitted to rows on workers."""

    _local: type
    client: Any

    def __sklearn_clone__(self) -> Self:
        """Return the same without what was fitted; a client is shared, and not copied."""
        options = {name: clone(value, safe=False) for name, value in self._options().items()}
        return type(self)(**options, client=self.client)

    def _options(self) -> dict[str, Any]:
        """Return the parameters of the local estimator."""
        return {k: v for k, v in self.get_params(deep=False).items() if k != "client"}

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to a Dask collection, on its cluster.

        Parameters
        ----------
        X : Dask array of shape (n_samples, n_features), or Dask dataframe
            Dense, or with sparse blocks. Its chunks do not change the result.
        y : ignored
        sample_weight : array or Dask array of shape (n_samples,), optional
        """
        model: Any = self._local(**self._options())
        if model.checkpoint is not None:
            raise ValueError(
                f"checkpoint={model.checkpoint!r} is not offered on a cluster: what has been done "
                "lies on its workers, where the scheduler keeps it or has it done again. Leave "
                "checkpoint out, or fit on one machine."
            )
        check_options(model)
        client = client_for(self.client)
        with working(client):
            placed = place(X, client)
            model.fit(placed.rows, sample_weight=weights_of(sample_weight, client))
        for name in SHARED:
            self.__dict__.pop(name, None)
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))
        self._model, self.fitted_by = model, client
        self.embedding_ = _as_dask_array(client, model.embedding_, placed.sizes)
        if hasattr(model, "labels_"):
            self.labels_ = _as_dask_array(client, model.labels_, placed.sizes)
        return self

    def to_local(self) -> Any:
        """Return the local estimator: what it holds of all samples is fetched.

        Its embedding and labels, n × (rank + 1) numbers; after "one-pass" also the samples, which
        predictions need.
        """
        check_is_fitted(self, "embedding_")
        check_open(self.fitted_by, "what it fitted was on its cluster. Fit again, and ask in time")
        model = copy.copy(self._model)
        with working(self.fitted_by):
            if isinstance(model.embedding_, DaskRows):
                model.embedding_ = model.embedding_[:]
            return gathered(model)

    def fitted(self) -> Any:
        """Return the local estimator as it was fitted: its rows are on workers."""
        check_is_fitted(self, "embedding_")
        return self._model

    def _lazy_model(self) -> Any:
        """Return the model as a task: small, or with all samples where predictions need them."""
        light, rows = without_samples(self._model)
        light.__dict__.pop("feature_names_in_", None)  # were compared; blocks have none
        if rows is None:
            return delayed(light, pure=False)
        assert isinstance(rows, DaskRows)
        chunks = [delayed(chunk) for chunk in rows.chunks[0]]
        return delayed(_with_samples)(light, chunks)

    def _blocks(self, X: Any) -> da.Array:
        """Return new points as an array with one chunk of columns."""
        check_is_fitted(self, "embedding_")
        if not is_frame(X) and not isinstance(X, da.Array):
            raise TypeError(
                f"X is a {type(X).__name__}: give a Dask array or dataframe, or ask to_local(), "
                "which takes others."
            )
        self._check_columns(X)
        if is_frame(X):
            X = X.to_dask_array()
        return X.rechunk({1: -1}) if X.numblocks[1] > 1 else X

    def _check_columns(self, X: Any) -> None:
        """Refuse other columns than those of the fit, by their names where they have some."""
        if X.ndim != 2:
            raise ValueError(
                f"X has {X.ndim} dimensions, where rows and columns are needed: the model was "
                f"fitted to {self.n_features_in_} features."
            )
        validate_data(self, without_rows(X), reset=False, skip_check_array=True)

    def transform(self, X: Any) -> da.Array:
        """Return the embedding of new points, lazily: a Dask array with the chunks of X."""
        X = self._blocks(X)
        dtype = np.float32 if X.dtype == np.float32 else np.float64
        chunks = (X.chunks[0], (self.rank_,))
        return X.map_blocks(
            _call,
            model=self._lazy_model(),
            method="transform",
            width=self.rank_,
            dtype=dtype,
            chunks=chunks,
            name=None,
            token="sketchmeans-transform",
        )

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> da.Array:
        """Fit, and return ``embedding_``."""
        return self.fit(X, sample_weight=sample_weight).embedding_


@with_client(embedding.KernelEmbedding)
class KernelEmbedding(DaskEstimator):
    """``sketchmeans.KernelEmbedding`` for Dask arrays and dataframes, on their cluster.

    The parameters are those of the local estimator, and ``client``; the result is the same, to the
    bit, on processors of one kind. Client: at most n × rank numbers, the coefficients for new
    points after several passes; else a few per sample. A worker: its rows, and a few matrices of
    landmarks × landmarks.

    Parameters
    ----------
    client : distributed.Client, optional
        The cluster; the client that was started last if left out. For the others, see
        ``sketchmeans.KernelEmbedding``.

    Attributes
    ----------
    embedding_ : Dask array of shape (n_samples, rank_)
        With the chunks of X. The others are those of the local estimator.
    """


@with_client(cluster.KernelKMeans)
class KernelKMeans(DaskEstimator):
    """``sketchmeans.KernelKMeans`` for Dask arrays and dataframes, on their cluster.

    The parameters are those of the local estimator, and ``client``; the result is the same, to the
    bit, on processors of one kind. Client: at most n × rank numbers, the coefficients for new
    points after several passes; else a few per sample. A worker: its rows, and a few matrices of
    landmarks × landmarks, or anchors × anchors.

    Parameters
    ----------
    client : distributed.Client, optional
        The cluster; the client that was started last if left out. For the others, see
        ``sketchmeans.KernelKMeans``.

    Attributes
    ----------
    labels_ : Dask array of shape (n_samples,)
        With the chunks of X.
    embedding_ : Dask array of shape (n_samples, rank_)
        With the chunks of X. The others are those of the local estimator.
    """

    def predict(self, X: Any) -> da.Array:
        """Return the nearest clusters of new points, lazily: a Dask array with the chunks of X."""
        X = self._blocks(X)
        return X.map_blocks(
            _call,
            model=self._lazy_model(),
            method="predict",
            width=None,
            dtype=np.int32,
            drop_axis=1,
            token="sketchmeans-predict",
        )

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> da.Array:
        """Fit, and return ``labels_``."""
        return self.fit(X, sample_weight=sample_weight).labels_

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the objective of X."""
        check_is_fitted(self, "embedding_")
        client = self.fitted_by
        check_open(client, "what it fitted was on its cluster. Fit again on one that is open")
        if is_dask_collection(X):
            self._check_columns(X)
        with working(client):
            rows = place(X, client).rows
            weights = check_weights(weights_of(sample_weight, client), rows.shape[0])
            model, (chunks, sizes) = client.compute(self._lazy_model()), rows.chunks
            tasks = []
            for chunk, (start, stop) in zip(chunks, pairwise(np.cumsum([0, *sizes])), strict=True):
                part = None if weights is None else weights[start:stop]
                if part is None or part.any():  # else it adds nothing, and would be refused
                    tasks.append(client.submit(_score, model, chunk, part, pure=False))
            return float(sum(client.gather(tasks)))


def _score(model: Any, X: Any, weights: FloatArray | None) -> float:
    return model.score(X, sample_weight=weights)


def _call(X: Any, *, model: Any, method: str, width: int | None) -> Any:
    """Predict or embed a block of rows, which may be empty."""
    if not X.shape[0]:
        shape = (0,) if width is None else (0, width)
        return np.zeros(shape, np.int32 if width is None else X.dtype)
    return getattr(model, method)(X)


def _with_samples(model: Any, chunks: list[Any]) -> Any:
    """Return a model that holds its samples."""
    return gathered(model, stacked(chunks))


def _as_dask_array(client: Client, rows: Any, sizes: list[int]) -> da.Array:
    """Return an array, or rows on workers, as a Dask array with such chunks."""
    width = rows.shape[1:]
    if isinstance(rows, DaskRows):
        futures = rows.cut_at(sizes)
    else:
        ends = np.cumsum([0, *sizes])
        parts = [rows[a:b] for a, b in pairwise(ends)]
        futures = client.map(identity, parts, pure=False)
    name = f"sketchmeans-rows-{uuid.uuid4().hex}"
    rest = (0,) * len(width)
    graph = {(name, index, *rest): future for index, future in enumerate(futures)}
    chunks = (tuple(sizes), *((one,) for one in width))
    return da.Array(graph, name, chunks, dtype=rows.dtype)
