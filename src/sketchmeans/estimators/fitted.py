"""The embedding of a fitted model, for whoever wants to show it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.utils.validation import check_is_fitted

from sketchmeans._arrays import FloatArray
from sketchmeans.estimators.embedding import KernelEmbedding
from sketchmeans.estimators.sizing import auto_rank

_KERNEL = ("kernel", "gamma", "degree", "coef0", "kernel_params", "precision")


@dataclass(frozen=True)
class Shown:
    """An embedding, the labels of its rows if there are any, and its spectrum."""

    embedding: FloatArray
    labels: FloatArray | None
    eigenvalues: FloatArray
    """Kept ones: of YYᵀ, falling."""
    beyond: FloatArray
    """Further ones that the sketch saw and the rank dropped."""
    width: int
    is_extra: bool
    """Whether the embedding was made to be shown, because the model has none."""


def shown(model: Any, X: Any = None, *, random_state: Any = 0) -> Shown:
    """Return the embedding of the training samples of a fitted model.

    ``FullKernelKMeans`` has none: X, its training samples, is embedded with the model's own kernel
    by one pass over it, in n × width memory.
    """
    check_is_fitted(model)
    labels = getattr(model, "labels_", None)
    if hasattr(model, "embedding_"):
        return Shown(
            model.embedding_, labels, model.eigenvalues_, dropped(model), model.width_, False
        )
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
    options = {name: getattr(model, name) for name in (*_KERNEL, "n_jobs")}
    if model.gamma_ is not None:
        options["gamma"] = model.gamma_
    rank = auto_rank(model.n_clusters, X.shape[0])
    extra = KernelEmbedding(rank, random_state=random_state, **options).fit(X)
    return Shown(extra.embedding_, labels, extra.eigenvalues_, dropped(extra), extra.width_, True)


def dropped(model: Any) -> FloatArray:
    """Return the eigenvalues that the sketch saw beyond the rank; none for a loaded model."""
    seen: FloatArray = getattr(model, "_sketch_eigenvalues", model.eigenvalues_)
    return seen[model.rank_ :]
