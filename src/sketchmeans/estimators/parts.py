"""A fitted estimator taken apart and put together again, for whoever stores it.

The estimators keep what prediction needs under private names. Only this module and the estimators
themselves know them.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from sketchmeans.estimators.base import KernelEstimator
from sketchmeans.estimators.cluster import KernelKMeans
from sketchmeans.estimators.embedding import KernelEmbedding
from sketchmeans.estimators.full import FullKernelKMeans
from sketchmeans.estimators.landmark_lloyd import LandmarkCentroids
from sketchmeans.estimators.lloyd import FeatureCentroids
from sketchmeans.estimators.streaming import refuse_changed
from sketchmeans.operators import NeighborPoints, NewPoints
from sketchmeans.rows import Rows
from sketchmeans.text import counted


@dataclass(frozen=True)
class Parts:
    """What a fitted estimator holds beside its parameters."""

    attributes: dict[str, Any]
    """What ``fit`` left behind, by the names of the attributes."""
    new_points: NewPoints
    """The kernel of new points with the samples or the landmarks, or their features by anchors."""
    samples: NewPoints | None = None
    """That with all samples, where exact distances are taken in an estimator with an embedding."""
    centroids: FeatureCentroids | LandmarkCentroids | None = None
    output: str | None = None
    """What ``set_output`` asked of ``transform``."""


@dataclass(frozen=True)
class AnchorSets:
    """The sets of anchors of a model with the neighbours kernel.

    >>> print(AnchorSets((450, 450, 448), 5))
    3 sets of 448 to 450 anchors, 5 neighbours
    """

    sizes: tuple[int, ...]
    n_neighbors: int

    def __str__(self) -> str:
        least, most = min(self.sizes), max(self.sizes)
        said = counted(most, "anchor") if least == most else f"{least:,} to {most:,} anchors"
        if len(self.sizes) > 1:
            said = f"{len(self.sizes):,} sets of {said}"
        return f"{said}, {counted(self.n_neighbors, 'neighbour')}"


def anchors_of(model: KernelEstimator) -> AnchorSets | None:
    """Return the sets of anchors of a fitted estimator; None where its kernel has none."""
    points = parts_of(model).new_points
    if not isinstance(points, NeighborPoints):
        return None
    graphs = points.map.graphs
    return AnchorSets(tuple(map(len, graphs)), max(graph.n_neighbors for graph in graphs))


def parts_of(model: KernelEstimator) -> Parts:
    """Take a fitted estimator apart; nothing is copied."""
    refuse_changed(model)
    parameters = model.get_params(deep=False)
    attributes = {name: value for name, value in vars(model).items() if name not in parameters}
    # scikit-learn writes this by set_output, and has no public way to read it.
    output = attributes.pop("_sklearn_output_config", {}).get("transform")
    new_points, samples = attributes.pop("_new_points"), attributes.pop("_samples", None)
    return Parts(attributes, new_points, samples, attributes.pop("_centroids", None), output)


def put_together(cls: type[KernelEstimator], parameters: dict[str, Any], parts: Parts) -> Any:
    """Build the fitted estimator of a class from its parameters and parts; nothing is copied."""
    model: Any = cls(**parameters)
    if parts.output is not None:
        model.set_output(transform=parts.output)
    vars(model).update(parts.attributes, _new_points=parts.new_points)
    if cls is not FullKernelKMeans:
        model._n_features_out = model.rank_
    if cls is not KernelEmbedding:
        model._centroids = parts.centroids
    if cls is KernelKMeans:
        model._samples = parts.samples
    return model


def check_options(model: KernelEstimator) -> None:
    """Refuse options that ``fit`` would refuse."""
    model._check_options()


def without_samples(model: Any) -> tuple[Any, Rows | None]:
    """Return a fitted estimator without labels and embedding, and rows that it needs elsewhere.

    None where its landmarks or anchors are enough to predict.
    """
    light, rows = copy.copy(model), None
    light.embedding_ = None
    if hasattr(model, "labels_"):
        light.labels_ = (
            model._used() if hasattr(model, "_used") else None
        )  # a member each is enough
    for name in ("_new_points", "_samples"):
        points = getattr(model, name, None)
        if points is not None and isinstance(getattr(points, "data", None), Rows):
            rows = points.data
            setattr(light, name, points.on(None))
    return light, rows


def gathered(model: Any, samples: Any = None) -> Any:
    """Return a fitted estimator whose kernel of new points has its samples here.

    They are given, or fetched where they are elsewhere.
    """
    whole, fetched = copy.copy(model), samples
    for name in ("_new_points", "_samples"):
        points = getattr(model, name, None)
        if points is None or not hasattr(points, "on"):
            continue
        if fetched is None and isinstance(points.data, Rows):
            fetched = points.data[:]
        if fetched is not None:
            setattr(whole, name, points.on(fetched))
    return whole


def check_rows(model: KernelEstimator, X: Any) -> Any:
    """Return rows as ``fit`` sees them, an array or CSR matrix of floats; refuse what it would."""
    return model._check_data(X, reset=True, given_rows=False)
