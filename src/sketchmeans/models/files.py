"""Fitted models in files that are safe to open: ``save`` and ``load``.

``container`` has the format of the file, ``model_schema`` what the file of each estimator holds and
the checks of its header, ``stored_points`` what prediction needs to know of the samples. Here a
model is taken apart and put together.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from numbers import Integral, Real
from typing import Any, BinaryIO

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sketchmeans._arrays import FloatArray
from sketchmeans._version import __version__
from sketchmeans.atomic import refuse_existing, whole_file
from sketchmeans.estimators import FullKernelKMeans, KernelEmbedding
from sketchmeans.estimators.lloyd import FeatureCentroids
from sketchmeans.models import container
from sketchmeans.models import points as stored_points
from sketchmeans.models.container import ModelFileError
from sketchmeans.models.points import check_range
from sketchmeans.models.schema import ESTIMATORS, LONGEST_TEXT, Model, certificate_of, check
from sketchmeans.operators import GivenRows
from sketchmeans.text import printable


def save(model: Model, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write a fitted model to one file, which ``load`` reads without running any code of it.

    The file holds JSON and raw arrays with checksums, no pickle. What prediction needs is in it as
    arrays: the samples (or the landmarks, for methods that need only those), the map of new
    points, the centers; and every public attribute of the fit, certificate and statistics
    included. It appears whole or not at all. Memory: a few megabytes beyond the model.

    Not in the file: callbacks, and the state of a ``random_state`` that is a generator, which
    becomes None with a warning; predictions do not depend on it.

    Where the data were standardized before the fit, set ``standard_center_`` and
    ``standard_scale_`` on the model, as ``sketchmeans cluster`` does, and ``fill_values_`` where
    missing values were filled in before that: they are kept, for whoever prepares the data of
    ``predict``, which does not use them itself.

    Parameters
    ----------
    model : KernelKMeans, FullKernelKMeans or KernelEmbedding
        Fitted. A kernel that is a Python function cannot be stored.
    path : path
        By convention with the extension ``.skm``.
    overwrite : bool
        Whether a file that exists is replaced.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_iris
    >>> from sketchmeans import KernelKMeans, load, save
    >>> X = load_iris().data
    >>> model = KernelKMeans(3, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, f"{folder}/iris.skm")
    ...     loaded = load(f"{folder}/iris.skm")
    >>> bool((loaded.predict(X) == model.predict(X)).all())
    True
    """
    name = next((name for name, kept in ESTIMATORS.items() if kept.cls is type(model)), None)
    if name is None:
        raise TypeError(
            f"a {type(model).__name__} cannot be saved: only {', '.join(ESTIMATORS)} can. Of a "
            "pipeline save the last step, and the others by themselves."
        )
    check_is_fitted(model)
    way_out = None if overwrite else "Choose another path, or pass overwrite=True."
    if way_out is not None:
        refuse_existing(path, way_out=way_out)
    header, arrays = _take_apart(model, name)
    try:
        check(header, container.place(arrays))
    except ModelFileError as error:
        raise ValueError(f"this model is not as fit left it: {error} Fit it again.") from error
    with whole_file(path, way_out=way_out) as temporary, temporary.open("wb") as file:
        # Files without fill values are of format 1, which the first sketchmeans reads.
        container.write(file, header, arrays, version=2 if header.get("imputed") else 1)


def load(path: str | os.PathLike[str]) -> Model:
    """Read a model that ``save`` wrote: it predicts as it did, bit for bit on the same machine.

    Files from strangers are safe to load: nothing in them is run, every size is checked against
    the real one before memory is taken, and a file that ``save`` could not have written is
    refused. Memory: at most the size of the file and a few megabytes; names of features take as
    much as Python's texts do.

    Parameters
    ----------
    path : path
        A file that ``save`` wrote.

    Returns
    -------
    KernelKMeans, FullKernelKMeans or KernelEmbedding
        Fitted.

    Raises
    ------
    ModelFileError
        A ValueError: the file is no model, is damaged, or was written by a newer sketchmeans.
    """
    with _opened(path) as (file, header, entries):
        return _put_together(header, container.read_arrays(file, entries))


def read_description(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what the header of a model file says, and the shapes of its arrays; reads no array.

    Parameters
    ----------
    path : path
        A file that ``save`` wrote.

    Returns
    -------
    dict
        The estimator, its parameters, numbers, statistics and certificate; under "arrays" the
        shape and dtype of each array.
    """
    with _opened(path) as (_, header, entries):
        return {**header, "arrays": {entry.name: (entry.shape, entry.dtype) for entry in entries}}


@contextmanager
def _opened(
    path: str | os.PathLike[str],
) -> Iterator[tuple[BinaryIO, dict[str, Any], list[container.Entry]]]:
    """Yield a model file, read as far as its arrays, and its checked header and table."""
    try:
        container.check_regular(path)
        with open(path, "rb", buffering=0) as file:
            header, entries = container.read_header(file)
            check(header, entries)
            yield file, header, entries
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}. Look at its name.") from None
    except (ValueError, TypeError, OverflowError) as error:
        # What a file holds is quoted in messages, and may be as long as the file.
        said = printable(str(error), LONGEST_TEXT)
        raise ModelFileError(f"{os.fspath(path)} cannot be loaded: {said}") from error


def _take_apart(model: Any, name: str) -> tuple[dict[str, Any], dict[str, FloatArray]]:
    """Return the header and the arrays of a fitted model."""
    kept = ESTIMATORS[name]
    samples = getattr(model, "_samples", None)
    shared = samples is not None and _same(samples, model._new_points)
    header = {
        "estimator": name,
        "written_by": f"sketchmeans {__version__}",
        "parameters": _parameters(model),
        "numbers": {attribute: getattr(model, attribute) for attribute in kept.numbers},
        "n_features_in_": model.n_features_in_,
        "stats_": model.stats_,
        "certificate_": asdict(model.certificate_) if hasattr(model, "certificate_") else None,
        "output": getattr(model, "_sklearn_output_config", {}).get("transform"),
        "new_points": stored_points.describe(model._new_points),
        "samples": None,
        "weighted": False,
        "named": hasattr(model, "feature_names_in_"),
        "standardized": hasattr(model, "standard_scale_"),
    }
    arrays = {attribute: np.asarray(getattr(model, attribute)) for attribute in kept.arrays}
    arrays |= stored_points.arrays_of(model._new_points, "new_points")
    if samples is not None:
        header["samples"] = "new_points" if shared else stored_points.describe(samples)
        if not shared:
            arrays |= stored_points.arrays_of(samples, "samples")
    if (centroids := getattr(model, "_centroids", None)) is not None:
        arrays["centroids_labels"] = centroids.labels
        arrays["centroids_sizes"] = centroids.sizes
        arrays["centroids_squared_norms"] = centroids.squared_norms
        if centroids.weights is not None:
            header["weighted"] = True
            arrays["centroids_weights"] = centroids.weights
    if hasattr(model, "fill_values_"):
        header["imputed"] = True
        arrays["fill_values_"] = model.fill_values_
    if header["standardized"]:
        arrays["standard_center_"] = model.standard_center_
        arrays["standard_scale_"] = model.standard_scale_
    if header["named"]:
        names = [str(name).encode("utf-8", "surrogatepass") for name in model.feature_names_in_]
        arrays["feature_names_text"] = np.frombuffer(b"".join(names), np.uint8)
        arrays["feature_names_ends"] = np.cumsum([len(name) for name in names], dtype=np.int64)
    try:
        text = json.dumps(header, default=_plain, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"this model cannot be saved: {error}. Parameters and statistics must be texts and "
            "finite numbers."
        ) from error
    return container.parse(text.encode()), arrays


def _parameters(model: Any) -> dict[str, Any]:
    """Return the parameters, as far as a file can hold them."""
    parameters: dict[str, Any] = model.get_params(deep=False)
    if callable(parameters["kernel"]):
        stored_points.describe(parameters["kernel"])  # raises, and says what to do
    model._check_options()
    if not isinstance(parameters["random_state"], Integral | None):
        parameters["random_state"] = None
        warnings.warn(
            "random_state is a generator, whose state is not saved: the loaded model has "
            "random_state=None. Its predictions are the same; a new fit of it is not.",
            UserWarning,
            stacklevel=4,
        )
    return parameters


def _plain(value: Any) -> Any:
    """Return a number of NumPy as one of JSON."""
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    raise TypeError(f"{value!r:.80} is neither a text nor a number")


def _same(samples: Any, new_points: Any) -> bool:
    """Whether two of a model's ``NewPoints`` are one and need be stored once."""
    if samples is new_points:
        return True
    return (
        isinstance(samples, GivenRows)
        and isinstance(new_points, GivenRows)
        and samples.dtype == new_points.dtype
        and samples.diagonal is new_points.diagonal
        and samples.chosen is new_points.chosen is None
    )


def _put_together(header: dict[str, Any], arrays: dict[str, FloatArray]) -> Model:
    """Build the model of a header and arrays that have passed ``check``."""
    kept = ESTIMATORS[header["estimator"]]
    model: Any = kept.cls(**header["parameters"])
    if header["output"] is not None:
        model.set_output(transform=header["output"])
    for name, value in header["numbers"].items():
        setattr(model, name, value)
    for name in kept.arrays:
        check_range(name, arrays[name])
        setattr(model, name, arrays[name])
    model.n_features_in_ = header["n_features_in_"]
    model.stats_ = header["stats_"]
    n_features = model.n_features_in_
    model._new_points = stored_points.restore(
        header["new_points"], arrays, "new_points", n_features
    )
    if header["named"]:
        model.feature_names_in_ = _names(arrays)
    if header["standardized"]:
        check_range("standard_center_", arrays["standard_center_"])
        check_range("standard_scale_", arrays["standard_scale_"], np.finfo(float).tiny)
        model.standard_center_ = arrays["standard_center_"]
        model.standard_scale_ = arrays["standard_scale_"]
    if header.get("imputed"):
        check_range("fill_values_", arrays["fill_values_"])
        model.fill_values_ = arrays["fill_values_"]
    if kept.cls is not FullKernelKMeans:
        model._n_features_out = model.rank_
    if kept.cls is KernelEmbedding:
        return model
    model.certificate_ = certificate_of(header["certificate_"], needed=True)
    model._centroids = _centroids(arrays)
    if kept.cls is FullKernelKMeans:
        model.objectives_ = tuple(model.objectives_.tolist())
        n_clusters = len(model._centroids.sizes)
    else:
        n_clusters = len(model.cluster_centers_)
        samples = header["samples"]
        model._samples = model._new_points if samples == "new_points" else None
        if isinstance(samples, dict):
            model._samples = stored_points.restore(samples, arrays, "samples", n_features)
    check_range("labels_", model.labels_, 0, n_clusters)
    return model


def _centroids(arrays: dict[str, FloatArray]) -> FeatureCentroids | None:
    """Build the exact centroids, where the file has them."""
    if "centroids_labels" not in arrays:
        return None
    labels, sizes = arrays["centroids_labels"], arrays["centroids_sizes"]
    norms, weights = arrays["centroids_squared_norms"], arrays.get("centroids_weights")
    check_range("centroids_labels", labels, 0, len(sizes))
    check_range("centroids_sizes", sizes, 0)
    check_range("centroids_squared_norms", norms)
    if weights is not None:
        check_range("centroids_weights", weights, 0)
    if not sizes.any():
        raise ModelFileError("its centroids have no members.")
    return FeatureCentroids(labels, weights, sizes, norms)


def _names(arrays: dict[str, FloatArray]) -> FloatArray:
    """Cut the text of all feature names where each of them ends."""
    text, ends = arrays["feature_names_text"].tobytes(), arrays["feature_names_ends"]
    starts = np.concatenate([[0], ends[:-1]])
    if (ends < starts).any() or ends[-1] != len(text):
        raise ModelFileError("its feature names do not end one after the other.")
    names = np.empty(len(ends), object)
    for index, (start, end) in enumerate(zip(starts, ends, strict=True)):
        names[index] = text[start:end].decode("utf-8", "surrogatepass")
    return names
