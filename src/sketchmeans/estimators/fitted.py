"""What a fitted model knows: its kernel, and the embedding of its samples."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.engine.run import Progress, Run
from sketchmeans.estimators.base import KernelEstimator
from sketchmeans.estimators.embedding import KernelEmbedding
from sketchmeans.estimators.sizing import auto_rank
from sketchmeans.operators import KernelOperator, NeighborOperator

KERNEL_OPTIONS = ("kernel", "gamma", "degree", "coef0", "kernel_params")
"""Options that say which kernel it is."""


@dataclass(frozen=True)
class FittedEmbedding:
    """An embedding, the labels of its rows if there are any, and its spectrum."""

    embedding: FloatArray
    labels: IntArray | None
    eigenvalues: FloatArray
    """Kept ones: of YYᵀ, falling."""
    beyond: FloatArray
    """Further ones that the sketch saw and the rank dropped; none for a loaded model."""
    is_extra: bool
    """Whether the embedding was made to be shown, because the model has none."""
    near_one: bool = False
    """Whether the kernel is that of neighbours: its eigenvalues are exact, from 0 to 1, and as many
    as clusters are close to 1."""


def embedding_of(model: Any, X: Any = None, *, random_state: Any = 0) -> FittedEmbedding:
    """Return the embedding of the training samples of a fitted model.

    ``FullKernelKMeans`` has none: X, its training samples, is embedded with the model's own kernel
    by one pass over it, in n × width memory.
    """
    check_is_fitted(model)
    own = hasattr(model, "embedding_")
    source = model if own else _embedded(model, X, random_state)
    seen: FloatArray = getattr(source, "_sketch_eigenvalues", source.eigenvalues_)
    return FittedEmbedding(
        source.embedding_,
        getattr(model, "labels_", None),
        source.eigenvalues_,
        seen[source.rank_ :],
        is_extra=not own,
        near_one=has_neighbors(model),
    )


def _embedded(model: Any, X: Any, random_state: Any) -> KernelEmbedding:
    if X is None:
        raise ValueError(
            f"{type(model).__name__} works without an embedding, so there is none to show. Give "
            "its training samples as X: they are embedded by one pass over the kernel."
        )
    if X.shape[0] != len(model.labels_):
        raise ValueError(
            f"X has {X.shape[0]} rows, but the model was fitted to {len(model.labels_)} samples. "
            "Give the training samples."
        )
    options = options_of(model, (*KERNEL_OPTIONS, "precision", "n_jobs"))
    rank = auto_rank(model.n_clusters, X.shape[0])
    return KernelEmbedding(rank, random_state=random_state, **options).fit(X)


def options_of(model: Any, names: Iterable[str]) -> dict[str, Any]:
    """Return some options of a model, with the γ that its fit found, if it has."""
    options = {name: getattr(model, name) for name in names}
    found = getattr(model, "gamma_", None)
    return options if found is None else options | {"gamma": found}


def has_neighbors(model: Any) -> bool:
    """Whether the kernel of a model is that of neighbours."""
    return isinstance(model.kernel, str) and model.kernel == "neighbors"


def kernel_of(model: KernelEstimator, X: Any) -> KernelOperator:
    """Return the kernel that a fitted model has of data X, with the gamma or anchors that it found.

    The features of neighbours are made again for every product.
    """
    same = clone(model).set_params(**options_of(model, ()))
    checked = model._check_data(X, reset=False, given_rows=model.kernel == "precomputed")
    operator, _ = same._make_operator(checked, None, 0)
    if isinstance(operator, NeighborOperator):
        operator.map = model._new_points.map  # not built: other anchors would be another kernel
    return operator


def kernel_for(model: KernelEstimator, X: Any) -> tuple[KernelOperator, float | None]:
    """Return the kernel that a fit of a KernelKMeans to X would have, and γ; nothing is fitted."""
    same = clone(model)
    same._check_options()
    seeds = check_random_state(same.random_state).randint(2**31 - 1, size=2)  # as the fit draws
    data = same._prepare(X, None, int(seeds[1]))
    return data.operator, data.gamma


def predicted(model: Any, X: Any, progress: Progress) -> IntArray:
    """Return what ``predict`` of a model does, and tell how much of X is done on the way.

    Of a scikit-learn Pipeline with one of our estimators at its end, too.
    """
    if hasattr(model, "steps"):
        X, model = (model[:-1].transform(X) if len(model) > 1 else X), model[-1]
    labels: IntArray = model._predict(X, replace(model._run(), progress=progress))
    return labels


def run_of(model: KernelEstimator) -> Run:
    """Return the threads that a model works with."""
    return model._run()
