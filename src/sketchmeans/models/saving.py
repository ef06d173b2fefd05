"""``save``: a fitted model is taken apart, checked as ``load`` will check it, and written."""

from __future__ import annotations

import json
import os
import warnings
from dataclasses import asdict
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from sketchmeans._arrays import Array
from sketchmeans._package import __version__
from sketchmeans.atomic import refuse_existing, whole_file
from sketchmeans.container import MOST_HEADER, ModelFileError, parse, place, write
from sketchmeans.estimators.landmark_lloyd import LandmarkCentroids
from sketchmeans.estimators.parts import check_options, parts_of
from sketchmeans.models import pipelines, preparation, texts
from sketchmeans.models.checks import prefixed
from sketchmeans.models.points import arrays_of, describe
from sketchmeans.models.schema import ESTIMATORS, Model, check, extras_of
from sketchmeans.operators import GivenRows

MOST_DESCRIBED = MOST_HEADER - 100_000
"""Characters of a header without the table of arrays."""


def save(model: Model | Pipeline, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write a fitted model to one file, which ``load`` reads without running any code of it.

    The file holds JSON and raw arrays with checksums, no pickle. What prediction needs is in it as
    arrays: the samples (or the landmarks or anchors, for methods and kernels that need only
    those), the map of new points, the centers; and every public attribute of the fit, certificate
    and statistics included. It appears whole or not at all. Memory: a few megabytes beyond the
    model, and its anchors once more.

    Not in the file: callbacks, the ``memory`` of a pipeline, and the state of a ``random_state``
    that is a generator, which becomes None with a warning; predictions do not depend on it.

    Where the data were standardized before the fit, set ``standard_center_`` and
    ``standard_scale_`` on the model, as ``sketchmeans cluster`` does, and ``fill_values_`` where
    missing values were filled in before that: they are kept, for whoever prepares the data of
    ``predict``, which does not use them itself. So are ``encoded_columns_`` (of each column of text
    its first feature, its name and its categories) and ``libsvm_base_``.

    Parameters
    ----------
    model : KernelKMeans, FullKernelKMeans, KernelEmbedding or Pipeline
        Fitted. A kernel that is a Python function cannot be stored. A pipeline of scikit-learn ends
        with one of ours; before it there can be ``StandardScaler``, ``SimpleImputer`` and
        ``OneHotEncoder``, and the file holds what they have learned.
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
    pipeline = model if isinstance(model, Pipeline) else None
    last = model if pipeline is None else pipeline.steps[-1][1]
    name = _name(last, pipeline)
    way_out = None if overwrite else "Choose another path, or pass overwrite=True."
    if way_out is not None:
        refuse_existing(path, way_out=way_out)
    header, arrays = _take_apart(last, name, pipeline)
    try:
        check(header, place(arrays))
    except ModelFileError as error:
        raise ValueError(f"this model is not as fit left it: {error} Fit it again.") from error
    with whole_file(path, way_out=way_out) as temporary, temporary.open("wb") as file:
        write(file, header, arrays)


def _name(model: Any, pipeline: Pipeline | None) -> str:
    """Return the name of the class of an estimator, which must be ours and fitted."""
    name = next((name for name, kept in ESTIMATORS.items() if kept.cls is type(model)), None)
    if name is None and hasattr(model, "to_local"):
        raise TypeError(
            f"a {type(model).__name__} of sketchmeans.dask has its samples on a cluster: save the "
            "local model, model.to_local()."
        )
    if name is None:
        what = "a" if pipeline is None else "a pipeline that ends with a"
        raise TypeError(
            f"{what} {type(model).__name__} cannot be saved: only {', '.join(ESTIMATORS)} can, and "
            "pipelines that end with one of them."
        )
    check_is_fitted(model)
    return name


def _take_apart(
    model: Any, name: str, pipeline: Pipeline | None
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the header and the arrays of a fitted model, and of the steps before it."""
    kept, parameters, parts = ESTIMATORS[name], _parameters(model), parts_of(model)
    found, samples, centroids = parts.attributes, parts.samples, parts.centroids
    header = {
        "estimator": name,
        "written_by": f"sketchmeans {__version__}",
        "parameters": parameters,
        "numbers": {attribute: found[attribute] for attribute in kept.numbers},
        "n_features_in_": model.n_features_in_,
        "stats_": model.stats_,
        "certificate_": asdict(model.certificate_) if hasattr(model, "certificate_") else None,
        "output": parts.output,
        "new_points": describe(parts.new_points),
        "samples": None,
        "weighted": getattr(centroids, "weights", None) is not None,
        "named": hasattr(model, "feature_names_in_"),
        "standardized": hasattr(model, "standard_scale_"),
    }
    arrays = {attribute: np.asarray(found[attribute]) for attribute in kept.arrays}
    arrays |= arrays_of(parts.new_points, "new_points")
    if samples is not None and _same(samples, parts.new_points):
        header["samples"] = "new_points"
    elif samples is not None:
        header["samples"] = describe(samples)
        arrays |= arrays_of(samples, "samples")
    if centroids is not None:
        arrays |= prefixed("centroids", vars(centroids))
        header["by_landmarks"] = isinstance(centroids, LandmarkCentroids)
    if hasattr(model, "fill_values_"):
        header["imputed"] = True
    for attribute in extras_of(header):
        arrays[attribute] = getattr(model, attribute)
    if header["named"]:
        names = [str(name) for name in model.feature_names_in_]
        arrays |= texts.as_arrays("feature_names", names)
    header |= preparation.describe(model)
    arrays |= preparation.arrays_of(model)
    if pipeline is not None:
        header["pipeline"] = pipelines.describe(pipeline)
        arrays |= pipelines.arrays_of(pipeline)
    try:
        text = json.dumps(header, default=_plain, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"this model cannot be saved: {error}. Parameters and statistics must be texts and "
            "finite numbers."
        ) from error
    if len(text) > MOST_DESCRIBED:
        raise ValueError(
            f"this model cannot be saved: its description takes {len(text):,} characters, and a "
            f"file has room for {MOST_DESCRIBED:,}. Encode fewer columns."
        )
    return parse(text.encode()), arrays


def _parameters(model: Any) -> dict[str, Any]:
    """Return the parameters, as far as a file can hold them."""
    parameters: dict[str, Any] = model.get_params(deep=False)
    del parameters["checkpoint"]  # a folder of this machine, and of this fit
    if callable(parameters["kernel"]):
        describe(parameters["kernel"])  # raises, and says what to do
    check_options(model)
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
    kinds: dict[Any, Any] = {np.bool_: bool, Integral: int, Real: float}
    for kind, plain in kinds.items():
        if isinstance(value, kind):
            return plain(value)
    raise TypeError(f"{value!r:.80} is neither a text nor a number")


def _same(samples: Any, new_points: Any) -> bool:
    """Whether two of a model's ``NewPoints`` are one and need be stored once."""
    if not (isinstance(samples, GivenRows) and isinstance(new_points, GivenRows)):
        return samples is new_points
    alike = samples.dtype == new_points.dtype and samples.diagonal is new_points.diagonal
    return alike and samples.chosen is new_points.chosen is None
