"""certify on a cluster: the local one, given rows that are elsewhere; one task a block."""

from __future__ import annotations

import inspect
from typing import Any

from dask.base import is_dask_collection

from sketchmeans.dask.clients import client_for, working
from sketchmeans.dask.estimators import DaskEstimator, KernelKMeans
from sketchmeans.dask.inputs import array_of, place, weights_of
from sketchmeans.estimators import certifying

_local = inspect.signature(certifying.certify)


def certify(X: Any, labels: Any, *, client: Any = None, **options: Any) -> Any:
    """Prove how far a clustering is from the best possible, on the cluster that has the data.

    Every block of samples is a task; its rows travel to it from the workers that hold them. Without
    ``seconds`` the result is that of ``sketchmeans.certify``, to the bit, on processors of one
    kind. Client: a few numbers per sample. A worker: its rows, and eight matrices of block_size²
    numbers.

    Parameters
    ----------
    X : Dask array of shape (n_samples, n_features), or Dask dataframe
    labels : array or Dask array of shape (n_samples,), or a fitted sketchmeans.dask.KernelKMeans
    client : distributed.Client, optional
        The cluster; the client that was started last if left out.
    **options
        Those of ``sketchmeans.certify``; ``sample_weight`` may be a Dask array. Kernels that may be
        indefinite are not offered: their blocks do not add up.

    Returns
    -------
    Certificate
    """
    model = None
    if isinstance(labels, DaskEstimator):
        if not isinstance(labels, KernelKMeans):
            raise TypeError(
                f"a {type(labels).__name__} has no labels: give those of a clustering, or a fitted "
                "sketchmeans.dask.KernelKMeans."
            )
        model = labels.fitted()
        client = labels.fitted_by if client is None else client
    judged = labels if model is None else model
    certifying.check_elsewhere(judged, _local.bind(X, judged, **options).arguments)
    client = client_for(client)
    with working(client):
        if is_dask_collection(labels):
            judged = array_of(labels, client)
        options["sample_weight"] = weights_of(options.get("sample_weight"), client)
        rows = place(X, client).rows
        return certifying.certify(rows, judged, **options)


certify.__signature__ = _local.replace(  # type: ignore[attr-defined]
    parameters=[
        *_local.parameters.values(),
        inspect.Parameter("client", inspect.Parameter.KEYWORD_ONLY, default=None),
    ]
)
