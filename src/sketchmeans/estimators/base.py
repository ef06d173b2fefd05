"""What every estimator shares: options of the kernel, checks of data, and the operator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from sketchmeans._arrays import FloatArray
from sketchmeans.blas import OneBlasThread, count_threads
from sketchmeans.checkpoints import Checkpoint, kept_in
from sketchmeans.checkpoints.fingerprint import fingerprint
from sketchmeans.checks import check_choice
from sketchmeans.disk import FileRows
from sketchmeans.engine import engine_name
from sketchmeans.engine.run import ALONE, Run
from sketchmeans.estimators.checks import (
    canonical_csr,
    check_kernel_options,
    check_precomputed,
    describe_text,
    is_sideways,
    plain_floats,
    refuse_masked,
    refuse_not_square,
)
from sketchmeans.estimators.memory import Plan, copied_bytes, parse_bytes
from sketchmeans.estimators.outline import Kind, Outline
from sketchmeans.estimators.progress import CallbackSupportMixin
from sketchmeans.estimators.streaming import (
    as_fitted,
    in_file,
    refuse_bad_rows,
    refuse_changed,
    streamable,
    whole,
)
from sketchmeans.estimators.weights import check_weights
from sketchmeans.kernels import kernel_class, make_kernel
from sketchmeans.kernels.bandwidth import resolve_gamma
from sketchmeans.kernels.neighbors import NeighborOptions
from sketchmeans.kernels.precision import given_dtype, tile_dtype
from sketchmeans.kernels.sizes import check_entries, check_statistic, check_weighted
from sketchmeans.lowrank.result import Cost
from sketchmeans.operators import (
    CallableOperator,
    DataOperator,
    FeatureMapOperator,
    GivenRows,
    KernelOperator,
    NeighborOperator,
    PrecomputedOperator,
    SparseOperator,
)
from sketchmeans.operators.monomials import prefers_features
from sketchmeans.rows import Rows
from sketchmeans.text import called, setting


@dataclass(frozen=True)
class Checked:
    """Data that passed all checks, and the kernel of them."""

    X: Any
    operator: KernelOperator
    gamma: float | None
    weights: FloatArray | None
    copied: int
    """Bytes that X takes beyond what was given."""
    before: int = 0
    """Bytes that reading took before the fit, where rows were put in a scratch file."""


class KernelEstimator(CallbackSupportMixin, BaseEstimator):
    """An estimator with a kernel: from data and options to an operator."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def __getstate__(self) -> Any:
        refuse_changed(self)  # whoever pickles a model reads its samples
        return super().__getstate__()

    @contextmanager
    def _fitting(self) -> Iterator[Checkpoint]:
        """Hold BLAS to one thread for a whole fit, and keep a former fit if this one fails.

        Any sum that BLAS splits among threads has bits that depend on their number. Yields the
        checkpoint of the fit, of which nothing is left when it has come to its end.
        """
        before = dict(vars(self))
        try:
            with OneBlasThread(), kept_in(self.checkpoint) as checkpoint:
                yield checkpoint
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _check_options(self) -> None:
        """Refuse bad options before anything is computed."""
        check_kernel_options(self)
        check_choice("precision", self.precision, ["auto", "float32", "float64"])
        if self.n_jobs is not None and (
            not isinstance(self.n_jobs, Integral) or isinstance(self.n_jobs, bool)
        ):
            raise TypeError(f"{called('n_jobs')}={self.n_jobs!r} must be a whole number or None.")
        if self.n_jobs == 0:
            count_threads(0)  # raises, and says what to give
        parse_bytes(self.memory_limit)

    def _run(self) -> Run:
        """Return the threads for kernel entries: one for a callable, unless n_jobs was set."""
        if callable(self.kernel) and self.n_jobs is None:
            return ALONE
        return Run(count_threads(self.n_jobs))

    def _identified(self, data: Checked) -> dict[str, str]:
        """Return what a checkpoint of a fit is of."""
        return fingerprint(
            type(self).__name__,
            self.get_params(deep=False),
            engine_name(),
            X=data.X,
            sample_weight=data.weights,
        )

    def _check_size(self, n: int) -> None:
        """Refuse options that n samples are too few for."""

    def _prepare(self, X: Any, sample_weight: Any, seed: int, *, streams: bool = False) -> Checked:
        """Check the data and the weights, and make the operator.

        With ``streams``, rows in a file stay there where that can be. Nothing is read of them
        before all was checked that their shape decides.
        """
        given_rows = self.kernel == "precomputed"
        X = in_file(self, X)
        before = 0
        if isinstance(X, FileRows):
            self._check_size(X.shape[0])
            check_weights(sample_weight, X.shape[0])
            if given_rows:
                refuse_not_square(X.shape)
            kind = Kind.of(X, given_rows=given_rows)
            assert kind is not None
            before = as_fitted(kind, self).before
        if self.memory_limit is not None:
            self._refuse_early(X, sample_weight, seed)
        if not (streams and streamable(self)):
            X = whole(X, symmetric=given_rows)
        checked = self._check_data(X, reset=True, given_rows=given_rows)
        self._check_size(checked.shape[0])
        weights = check_weights(sample_weight, checked.shape[0])
        operator, gamma = self._make_operator(checked, weights, seed)
        return Checked(checked, operator, gamma, weights, copied_bytes(X, checked), before)

    def _refuse_early(self, X: Any, sample_weight: Any, seed: int) -> None:
        """Refuse a memory limit that cannot be kept, before the data are read or copied."""
        try:
            data = self._outlined(X, sample_weight, seed, look=False)
        except (ValueError, TypeError):
            return  # the checks of the data themselves say it better
        if data is not None:
            self._planned(data)

    def _planned(self, data: Checked) -> Any:
        """Return how a fit to such data would go about it; refuse what cannot keep the limit."""

    def _outlined(self, X: Any, sample_weight: Any, seed: int, *, look: bool) -> Checked | None:
        """Return the outline of data and its operator; None where only a conversion tells.

        With ``look`` it knows what rows hold: all where they are in memory, and some otherwise.
        """
        kind = Kind.of(X, given_rows=self.kernel == "precomputed")
        if kind is None:
            return None
        kind = as_fitted(kind, self)
        n, p = kind.shape
        self._check_size(n)
        weights = check_weights(sample_weight, n)
        if self.kernel == "precomputed":
            refuse_not_square(kind.shape)
            K = X if kind.nnz is not None else np.broadcast_to(np.zeros((), kind.dtype), (n, n))
            dtype = given_dtype(K, self.precision, largest=1.0, weights=weights)
            given = PrecomputedOperator if kind.nnz is None else SparseOperator
            operator: KernelOperator = given(K, dtype=dtype, weights=weights)
            return Checked(K, operator, None, weights, kind.copied, kind.before)
        spread = 1.0 if isinstance(self.gamma, str) else 1 / np.sqrt(2 * p * self.gamma)
        outline = Outline.looked_at(kind, X) if look else Outline.unread(kind, spread)
        operator, gamma = self._make_operator(outline, weights, seed)
        return Checked(outline, operator, gamma, weights, kind.copied, kind.before)

    def _check_data(self, X: Any, *, reset: bool, given_rows: bool) -> Any:
        """Return X as a float array or CSR matrix, without a copy where that can be."""
        if isinstance(X, Rows):
            return self._check_elsewhere(X)
        refuse_masked(X)
        X = whole(in_file(self, X))
        if given_rows:
            # NOTE: a memory map is not searched for NaN here, which would read it once more; the
            # pass meets every entry and says where it found one.
            X = validate_data(
                self, X, reset=reset, accept_sparse="csr", dtype=None, ensure_all_finite=False
            )
            if X.dtype.kind not in "fiub":
                raise ValueError(
                    f"a precomputed kernel must hold real numbers, not dtype {X.dtype}."
                )
            if reset and is_sideways(X):
                X = X.T
            return canonical_csr(X) if sparse.issparse(X) else X
        try:
            X = validate_data(
                self,
                plain_floats(X),
                reset=reset,
                accept_sparse="csr",
                dtype=[np.float64, np.float32],
                order="C",
            )
            return canonical_csr(X) if sparse.issparse(X) else X
        except (ValueError, TypeError) as error:
            if culprit := describe_text(X):
                raise type(error)(f"{error}. {culprit}") from error
            raise

    def _check_elsewhere(self, X: Rows) -> Rows:
        """Take rows that were checked where they are; refuse kernels that cannot be sent there."""
        self.refuse_elsewhere()
        if isinstance(X, FileRows):
            refuse_bad_rows(X)
        self.__dict__.pop("feature_names_in_", None)
        self.n_features_in_ = X.shape[1]
        if X.names is not None:
            self.feature_names_in_ = np.array(X.names, dtype=object)
        return X

    def refuse_elsewhere(self) -> None:
        """Refuse kernels that cannot be sent to where rows are."""
        if callable(self.kernel) or self.kernel == "precomputed":
            what = (
                "a callable kernel" if callable(self.kernel) else setting("kernel", "precomputed")
            )
            raise ValueError(
                f"{what} is not offered on a cluster: workers compute the kernel from rows of data "
                "by its name. Choose a kernel by name, or fit on one machine."
            )

    def _make_operator(
        self, X: Any, weights: FloatArray | None, seed: int
    ) -> tuple[KernelOperator, float | None]:
        """Choose the operator and its precision; return it with γ, if the kernel has one."""
        if self.kernel == "precomputed":
            largest = float(check_precomputed(X, seed).max())
            weight = 1.0 if weights is None else float(weights.max())
            check_weighted(largest, weight, "the precomputed kernel", "rescale it")
            dtype = given_dtype(X, self.precision, largest=largest, weights=weights)
            given = SparseOperator if sparse.issparse(X) else PrecomputedOperator
            return given(X, dtype=dtype, weights=weights), None
        if callable(self.kernel):
            dtype = np.float32 if self.precision == "float32" else np.float64
            params = self.kernel_params
            return CallableOperator(
                X, self.kernel, params=params, dtype=dtype, weights=weights
            ), None
        if self.kernel == "neighbors":
            options = NeighborOptions.of(self.kernel_params)
            return NeighborOperator(X, options, weights=weights, seed=seed), None
        cls = kernel_class(self.kernel)
        statistic = check_statistic(X, cls)
        gamma = resolve_gamma(self.gamma, cls, X, seed) if "gamma" in cls.options() else None
        kernel = make_kernel(self.kernel, gamma=gamma, degree=self.degree, coef0=self.coef0)
        check_entries(X, kernel, weights, statistic)
        if self.precision != "float32" and prefers_features(X.shape[0], X.shape[1], kernel):
            return FeatureMapOperator(X, kernel, weights=weights), gamma
        dtype = tile_dtype(X, kernel, self.precision, statistic=statistic, weights=weights)
        return DataOperator(X, kernel, dtype=dtype, weights=weights), gamma

    def _check_new(self, X: Any) -> Any:
        check_is_fitted(self)
        refuse_changed(self)
        given_rows = isinstance(self._new_points, GivenRows)
        return self._check_data(X, reset=False, given_rows=given_rows)


def statistics(
    cost: Cost,
    seconds: dict[str, float],
    plan: Plan,
    engine: str,
    precision: Any,
    **more: Any,
) -> dict[str, Any]:
    """Return ``stats_``: what a fit cost, and how it was run."""
    return {
        "passes": cost.passes,
        "kernel_entries": cost.entries,
        "audit_entries": cost.audit_entries,
        "distances": cost.distances,
        "seconds": {name: round(value, 6) for name, value in seconds.items()},
        **more,
        "planned_bytes": plan.peak,
        "engine": engine,
        "precision": str(precision),
        "n_threads": plan.run.n_threads,
    }
