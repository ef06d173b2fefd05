"""``load``: a file is read, and its model put together from what has passed every check."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np
from sklearn.pipeline import Pipeline

from sketchmeans._arrays import Array
from sketchmeans.container import (
    Entry,
    ModelFileError,
    check_regular,
    read_arrays,
    read_header,
)
from sketchmeans.estimators.landmark_lloyd import LandmarkCentroids
from sketchmeans.estimators.lloyd import FeatureCentroids
from sketchmeans.estimators.parts import Parts, put_together
from sketchmeans.models import pipelines, preparation, texts
from sketchmeans.models.checks import check_range
from sketchmeans.models.points import restore
from sketchmeans.models.schema import (
    ESTIMATORS,
    Model,
    certificate_of,
    check,
    extras_of,
    upgraded,
)
from sketchmeans.models.steps import LONGEST_TEXT
from sketchmeans.text import printable


def load(path: str | os.PathLike[str]) -> Model | Pipeline:
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
    KernelKMeans, FullKernelKMeans, KernelEmbedding or Pipeline
        Fitted; a pipeline of scikit-learn where one was saved.

    Raises
    ------
    ModelFileError
        A ValueError: the file is no model, is damaged, or was written by a newer sketchmeans.
    """
    with _opened(path) as (file, header, entries):
        return _model_of(header, dict(read_arrays(file, entries)))


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
def _opened(path: str | os.PathLike[str]) -> Iterator[tuple[BinaryIO, dict[str, Any], list[Entry]]]:
    """Yield a model file, read as far as its arrays, and its checked header and table."""
    try:
        check_regular(path)
        with open(path, "rb", buffering=0) as file:
            version, header, entries = read_header(file)
            header = upgraded(header, version)
            check(header, entries)
            yield file, header, entries
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}. Look at its name.") from None
    except (ValueError, TypeError, OverflowError) as error:
        # What a file holds is quoted in messages, and may be as long as the file.
        said = printable(str(error), LONGEST_TEXT)
        raise ModelFileError(f"{os.fspath(path)} cannot be loaded: {said}") from error


def _model_of(header: dict[str, Any], arrays: dict[str, Array]) -> Model | Pipeline:
    """Build the model of a header and arrays that have passed ``check``."""
    kept, n_features = ESTIMATORS[header["estimator"]], header["n_features_in_"]
    found = {name: arrays[name] for name in (*kept.arrays, *extras_of(header))}
    for name, array in found.items():
        check_range(name, array, np.finfo(float).tiny if name == "standard_scale_" else -np.inf)
    attributes = found | header["numbers"]
    attributes |= {"n_features_in_": n_features, "stats_": header["stats_"]}
    attributes |= preparation.restore(header, arrays)
    if header["named"]:
        names = texts.from_arrays("feature_names", arrays)
        attributes["feature_names_in_"] = np.array(names, object)
    if "objectives_" in found:
        attributes["objectives_"] = tuple(found["objectives_"].tolist())
    if "labels_" in found:
        attributes["certificate_"] = certificate_of(header["certificate_"], needed=True)
        clusters = arrays["cluster_centers_" if "cluster_centers_" in arrays else "centroids_sizes"]
        check_range("labels_", found["labels_"], 0, len(clusters))
    points, samples = restore(header["new_points"], arrays, "new_points", n_features), None
    if header["samples"] == "new_points":
        samples = points
    elif header["samples"] is not None:
        samples = restore(header["samples"], arrays, "samples", n_features)
    parts = Parts(attributes, points, samples, _centroids(arrays), header["output"])
    model = put_together(kept.cls, header["parameters"], parts)
    if "pipeline" in header:
        return pipelines.restore(header["pipeline"], arrays, model)
    return model


def _centroids(arrays: dict[str, Array]) -> FeatureCentroids | LandmarkCentroids | None:
    """Build the centroids in feature space, where the file has them."""
    if "centroids_sizes" not in arrays:
        return None
    sizes, norms = arrays["centroids_sizes"], arrays["centroids_squared_norms"]
    check_range("centroids_sizes", sizes, 0)
    check_range("centroids_squared_norms", norms)
    if not sizes.any():
        raise ModelFileError("its centroids have no members.")
    if "centroids_coefficients" in arrays:
        coefficients = arrays["centroids_coefficients"]
        check_range("centroids_coefficients", coefficients)
        return LandmarkCentroids(coefficients, sizes, norms)
    labels, weights = arrays["centroids_labels"], arrays.get("centroids_weights")
    check_range("centroids_labels", labels, 0, len(sizes))
    if weights is not None:
        check_range("centroids_weights", weights, 0)
    return FeatureCentroids(labels, weights, sizes, norms)
