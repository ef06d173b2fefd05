"""All methods side by side, at equal memory: every one keeps n × width numbers.

Beside them plain K-means, and on request spectral clustering and several kernels.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix
from sklearn.utils import check_random_state

from sketchmeans._arrays import Array, FloatArray, IntArray
from sketchmeans.advice.few import COMPARED, few_of
from sketchmeans.advice.rivals import PLAIN, RIVALS, Found, objection
from sketchmeans.certificate.objective import exact_objective, memberships
from sketchmeans.engine.run import ALONE, Run
from sketchmeans.estimators import KernelKMeans
from sketchmeans.estimators.checks import check_kernel, options_read
from sketchmeans.estimators.fitted import KERNEL_OPTIONS, kernel_for, kernel_of, run_of
from sketchmeans.lowrank import METHODS
from sketchmeans.metrics import neighbor_agreement, usual_neighbors
from sketchmeans.operators import KernelOperator
from sketchmeans.text import Table, called, did_you_mean, setting

Result = TypeVar("Result")

VARIANTS: dict[str, dict[str, Any]] = {
    "exact": {"method": "exact"},
    "one-pass": {"method": "one-pass"},
    "one-pass, early": {"method": "one-pass", "truncation": "early"},
    "one-pass, 2 passes": {"method": "one-pass", "n_passes": 2},
    "nystrom": {"method": "nystrom", "sketch": "uniform"},
    "nystrom, early": {"method": "nystrom", "sketch": "uniform", "truncation": "early"},
    "nystrom, diagonal": {"method": "nystrom", "sketch": "diagonal"},
    "nystrom, column-norm": {"method": "nystrom", "sketch": "column-norm"},
    "nystrom, leverage": {"method": "nystrom", "sketch": "leverage"},
    "nystrom, kmeans": {"method": "nystrom", "sketch": "kmeans"},
    "rpcholesky": {"method": "rpcholesky"},
    "greedy-cholesky": {"method": "greedy-cholesky"},
}
"""Our methods that ``compare`` compares: options of ``KernelKMeans`` by the name of a row."""
NEIGHBORS = "anchors"
"""The row of the neighbours kernel, which no method approximates."""
_ANY_KERNEL = ("n_init", "max_iter", "tol", "memory_limit", "n_jobs", "verbose")
"""Options that are read with every kernel."""


def accuracy(truth: Array, labels: IntArray) -> float:
    """Return the share of samples in the right cluster, under the best matching of clusters."""
    table = contingency_matrix(truth, labels)
    rows, columns = linear_sum_assignment(-table)
    return float(table[rows, columns].sum() / len(labels))


def measure(
    operator: KernelOperator, Y: FloatArray, labels: IntArray, run: Run = ALONE
) -> dict[str, float]:
    """Return the exact errors of K ≈ YYᵀ and the exact objective of labels, from one pass.

    ‖K − YYᵀ‖_F² = ‖K‖_F² − 2⟨KY, Y⟩ + ‖YᵀY‖_F² needs no matrix of n × n.
    """
    n_clusters = int(labels.max()) + 1
    members = memberships(labels, np.ones(len(labels)), n_clusters)
    Y = Y.astype(np.float64, copy=False)
    result = operator.multiply(np.concatenate([members, Y], axis=1), run)
    trace = float(operator.diagonal().sum())
    cross = float(np.einsum("ij,ij->", result.W[:, n_clusters:], Y))
    squared = result.sum_of_squares - 2 * cross + float(np.square(Y.T @ Y).sum())
    return {
        "kernel error": float(np.sqrt(max(squared, 0.0) / result.sum_of_squares)),
        "trace error": (trace - float(np.square(Y).sum())) / trace,
        "objective": exact_objective(trace, members, result.W[:, :n_clusters]),
    }


def compare(
    X: Any,
    n_clusters: int,
    *,
    y: Any = None,
    rank: Any = None,
    width: int | None = None,
    variants: Sequence[str] | None = None,
    kernels: Sequence[Any] | None = None,
    n_seeds: int = 5,
    random_state: Any = None,
    progress: Callable[[str, int, int], None] | None = None,
    **options: Any,
) -> Table:
    """Cluster X by every method at equal memory, and measure all of them exactly.

    Passes over K: one per method and seed to measure it, beside its own.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
        Or rows in a file, of which as of others 2,000 at the most are taken, drawn by the seed; or
        the kernel matrix, with ``kernel="precomputed"``.
    n_clusters : int
    y : array of shape (n_samples,), optional
        True labels, for accuracy, ARI and NMI.
    rank : int, optional
        Columns of the embedding; n_clusters if left out.
    width : int, optional
        Numbers kept per sample, by every method but the exact one; twice ``rank`` if left out.
    variants : sequence of str, optional
        Names from ``VARIANTS``, "plain K-means" (without a kernel), and "spectral clustering"
        (scikit-learn's, with this kernel as the affinity: it stores n × n numbers); all but the
        last if left out.
    kernels : sequence of str or callable, optional
        Instead of ``kernel``: each of these with each variant that makes sense for it. The
        neighbours kernel has one row, since nothing approximates it.
    n_seeds : int
        Seeds to average over.
    random_state : int, RandomState or None
    progress : callable, optional
        Told the name of a method, how many of its fits are done, and how many there are.
    **options
        Passed on to ``KernelKMeans``: kernel (rbf if left out), gamma, n_jobs, … With ``kernels``,
        gamma and its like go to those that read them.

    Returns
    -------
    Table
        A row per method: mean relative kernel error (Frobenius and trace, exact), mean exact
        objective and its ratio to the least of this kernel, agreement with ``y``, kernel entries,
        seconds, and peak memory of one fit as Python's allocator saw it. None where a measure makes
        no sense. With ``kernels``, also the kernel, and ``metrics.neighbor_agreement``: objectives
        cannot be compared across kernels, and this can.
    """
    plan = _planned(variants, kernels, options)
    rank = n_clusters if rank is None else rank
    width = 2 * rank if width is None else width
    seeds = check_random_state(random_state).randint(2**31 - 1, size=n_seeds)
    X, chosen, said = few_of(X, COMPARED, options.get("kernel"), int(seeds[0]))
    y = y if y is None or chosen is None else np.asarray(y)[chosen]
    tell = progress or (lambda name, done, total: None)
    rows = []
    for names, own in plan:
        task = _Task(X, y, n_clusters, rank, width, own, seeds, tell, kernels is not None)
        rows += task.rows(names)
    caption = (
        f"{n_clusters} clusters, rank {rank}, {width} numbers per sample, mean over "
        f"{n_seeds} seeds; kernel errors and objectives are exact"
    )
    caption += f"; {said}" if said else ""
    if kernels is not None:
        caption += ". Objectives can be compared only within a kernel, and so can what is above "
        caption += "the least; neighbor agreement can be compared across kernels"
    return Table(tuple(rows), caption=caption)


def default_variants(kernel: Any) -> list[str]:
    """Return the rows of a kernel, where none are asked for by name."""
    given = isinstance(kernel, str) and kernel == "precomputed"
    # Of a given matrix there are no points to put landmarks or centers among.
    return [
        name for name in [*VARIANTS, PLAIN] if not (given and name in ("nystrom, kmeans", PLAIN))
    ]


def _planned(
    variants: Sequence[str] | None, kernels: Sequence[Any] | None, options: dict[str, Any]
) -> list[tuple[list[str], dict[str, Any]]]:
    """Return for each kernel the names of its rows, and its options; refuse what is not known."""
    names = None if variants is None else [_known(name, list(variants)) for name in variants]
    if kernels is None:
        kernel = options.get("kernel", "rbf")
        names = default_variants(kernel) if names is None else names
        if isinstance(kernel, str) and kernel == "neighbors":
            raise ValueError(
                f"{setting('kernel', 'neighbors')} needs no method that approximates it: its "
                "leading eigenvectors are exact, and there is nothing to compare. Choose another "
                f"kernel, or set it beside others with {called('kernels')}."
            )
        for name in names:
            if (why := objection(name, kernel)) is not None:
                raise ValueError(why)
        return [(names, {**options, "kernel": kernel})]
    plan = []
    for kernel, own in _options_of_each(kernels, options):
        if isinstance(kernel, str) and kernel == "neighbors":
            plan.append(([NEIGHBORS], own))
            continue
        wanted = default_variants(kernel) if names is None else names
        whys = {name: objection(name, kernel) for name in wanted}
        if all(whys.values()):
            raise ValueError(next(why for why in whys.values() if why is not None))
        plan.append(([name for name in wanted if whys[name] is None], own))
    return plan


def _known(name: str, asked: list[str]) -> str:
    """Return the name of a row as it is spelled here."""
    known = [*VARIANTS, *RIVALS]
    for one in known:
        if name.lower() == one.lower():
            return one
    unknown = [one for one in asked if one.lower() not in map(str.lower, known)]
    raise ValueError(
        f"{called('variants')} {unknown} are not known. Known: {'; '.join(known)}."
        + did_you_mean(name, known)
    )


def _options_of_each(
    kernels: Sequence[Any], options: dict[str, Any]
) -> list[tuple[Any, dict[str, Any]]]:
    """Return the kernels, each with the options that it reads; refuse those that none reads."""
    kernels = list(dict.fromkeys([kernels] if isinstance(kernels, str) else kernels))
    if not kernels:
        raise ValueError(
            f"{called('kernels')} is empty. Name one kernel at least, or leave it out."
        )
    if "kernel" in options:
        raise ValueError(
            f"{called('kernel')} and {called('kernels')} cannot both be given. Leave one out."
        )
    if "precomputed" in kernels and len(kernels) > 1:
        raise ValueError(
            f"{called('kernels')} has 'precomputed' among others, but X cannot be both a kernel "
            "matrix and rows. Compare it by itself."
        )
    for kernel in kernels:
        check_kernel(kernel)
    reads = {kernel: options_read(kernel) for kernel in kernels}
    for name in KERNEL_OPTIONS:
        if name in options and not any(name in some for some in reads.values()):
            raise ValueError(
                f"{setting(name, options[name])} is not read by any of these kernels. Leave it out."
            )
    found = []
    for kernel in kernels:
        general = _ANY_KERNEL if kernel == "neighbors" else options.keys() - set(KERNEL_OPTIONS)
        kept = {name: options[name] for name in options if name in {*general, *reads[kernel]}}
        found.append((kernel, {**kept, "kernel": kernel}))
    return found


@dataclass(frozen=True)
class _Trial:
    """One fit, and what was measured of it."""

    width: int | None
    entries: int
    values: dict[str, float | None]
    seconds: float
    peak: int
    """Bytes, as Python's allocator saw them; 0 where they were not traced."""


@dataclass(frozen=True)
class _Task:
    """The rows of one kernel."""

    X: Any
    y: Any
    n_clusters: int
    rank: Any
    width: int
    options: dict[str, Any]
    seeds: IntArray
    tell: Callable[[str, int, int], None]
    is_one_of_many: bool

    def rows(self, names: list[str]) -> list[dict[str, Any]]:
        """Return the rows of these names, and how far each is above the least."""
        kernel = self.options["kernel"]
        label = kernel if isinstance(kernel, str) else getattr(kernel, "__name__", repr(kernel))
        own = self._with_one_kernel()
        rows = []
        for name in names:
            told = f"{label}, {name}" if self.is_one_of_many else name
            trials = []
            for index, seed in enumerate(self.seeds):
                self.tell(told, index, len(self.seeds))
                trials.append(self._try(name, int(seed), own, traced=index == 0))
            self.tell(told, len(self.seeds), len(self.seeds))
            shown = {"kernel": label} if self.is_one_of_many else {}
            rows.append({**shown, **_row(name, trials)})
        least = min(row["objective"] for row in rows)
        for row in rows:
            above = row["objective"] - least  # of an objective of zero there are no multiples
            row["above least"] = above / least if least > 0 else (np.inf if above else 0.0)
        return rows

    def _with_one_kernel(self) -> dict[str, Any]:
        """Return the options with the γ that the first fit would find: one for all rows."""
        if self.options["kernel"] == "neighbors":
            return self.options
        kept = {name: self.options[name] for name in self.options if name in self._of_kernel}
        model = KernelKMeans(self.n_clusters, random_state=int(self.seeds[0]), **kept)
        gamma = kernel_for(model, self.X)[1]
        return self.options if gamma is None else {**self.options, "gamma": gamma}

    @property
    def _of_kernel(self) -> tuple[str, ...]:
        return (*KERNEL_OPTIONS, "precision", "n_jobs")

    def _try(self, name: str, seed: int, own: dict[str, Any], *, traced: bool) -> _Trial:
        """Fit and measure; trace the memory of the fit, if asked."""
        if name in RIVALS:
            kept = {key: own[key] for key in own if key in self._of_kernel}
            model = KernelKMeans(self.n_clusters, random_state=seed, **kept)
            operator, run = kernel_for(model, self.X)[0], run_of(model)
            found, seconds, peak = _timed(
                lambda: RIVALS[name](operator, self.n_clusters, seed, own, run), traced
            )
            values = _objective_alone(operator, found.labels, run)
        else:
            chosen = own if name == NEIGHBORS else _options(name, self.rank, self.width, own)
            model = KernelKMeans(self.n_clusters, **{**chosen, "random_state": seed})
            _, seconds, peak = _timed(lambda: model.fit(self.X), traced)
            entries = int(model.stats_["kernel_entries"])
            found = Found(model.labels_, model.width_, entries)
            if name == NEIGHBORS:
                values = {**_UNKNOWN, "objective": model.certificate_.objective}
            else:
                operator = kernel_of(model, self.X)
                values = {**measure(operator, model.embedding_, found.labels, run_of(model))}
        values |= self._agreements(found.labels)
        return _Trial(found.width, found.entries, values, seconds, peak)

    def _agreements(self, labels: IntArray) -> dict[str, float | None]:
        """Return how labels agree with the truth, and of several kernels with neighbours."""
        values: dict[str, float | None] = {}
        if self.is_one_of_many:
            none = self.options["kernel"] == "precomputed" or len(labels) < 2
            count = usual_neighbors(len(labels))
            values["neighbor agreement"] = (
                None if none else neighbor_agreement(self.X, labels, n_neighbors=count)
            )
        if self.y is not None:
            truth = np.asarray(self.y)
            values["accuracy"] = accuracy(truth, labels)
            values["ARI"] = float(adjusted_rand_score(truth, labels))
            values["NMI"] = float(normalized_mutual_info_score(truth, labels))
        return values


_UNKNOWN: dict[str, float | None] = {"kernel error": None, "trace error": None}
"""Of what has no embedding that approximates a kernel."""


def _objective_alone(
    operator: KernelOperator, labels: IntArray, run: Run
) -> dict[str, float | None]:
    """Return the exact objective of labels, from one pass."""
    none = np.empty((len(labels), 0))
    return {**_UNKNOWN, "objective": measure(operator, none, labels, run)["objective"]}


def _options(name: str, rank: Any, width: int, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a row: all keep ``width`` numbers per sample."""
    reads = METHODS[VARIANTS[name]["method"]].reads
    sized = {"oversampling": max(width - rank, 0), "n_landmarks": max(width, rank)}
    chosen = {"rank": rank, "n_init": 10, "n_refine": 0, **sized, **options, **VARIANTS[name]}
    return {key: value for key, value in chosen.items() if key not in sized or key in reads}


def _timed(fit: Callable[[], Result], traced: bool) -> tuple[Result, float, int]:
    """Return what a fit returns, its seconds, and its peak memory if asked."""
    if traced:
        tracemalloc.start()
    try:
        start = time.perf_counter()
        found = fit()
        seconds = time.perf_counter() - start
        return found, seconds, tracemalloc.get_traced_memory()[1] if traced else 0
    finally:
        if traced:
            tracemalloc.stop()


def _row(name: str, trials: list[_Trial]) -> dict[str, Any]:
    """Return the means over the trials of a method."""
    last = trials[-1]
    row: dict[str, Any] = {"method": name, "numbers a sample": last.width}
    for key in trials[0].values:
        values = [value for trial in trials if (value := trial.values[key]) is not None]
        row[key] = float(np.nanmean(values)) if values else None
    timed = trials[1:] or trials  # tracing slows a fit; the others are timed
    row["seconds"] = float(np.mean([trial.seconds for trial in timed]))
    row["kernel entries"] = last.entries
    row["peak MB"] = trials[0].peak / 1e6
    return row
