"""What to do next after a fit: at most three lines that are true for this run.

The most important comes first: columns that drown the others, then what the clusters themselves
show, then what the kernel changed, then what to run. All of it is seen in the fit itself and in
some of the rows, in a small part of the time of the fit (``python -m benchmarks.guidance``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.advice.comparing import accuracy
from sketchmeans.advice.follow_up import CLUSTERS, FITTING, FollowUp
from sketchmeans.advice.plain import PlainKMeans, check_training_rows, plain_labels
from sketchmeans.blocks import first_distinct
from sketchmeans.centers import subsample
from sketchmeans.estimators.fitted import embedding_of, has_neighbors
from sketchmeans.text import counted, printable

LINES = 3
"""Lines, at most."""
ROWS, NUMBERS = 5_000, 1 << 20
"""Rows that are looked at, and numbers of them, at most: a seeded choice."""
EACH = 20
"""Rows for a cluster, at the least."""
WIDER = 10.0
"""A column so many times wider than half of the others counts a hundred times as much in squared
distances."""
NO_DIFFERENCE = 0.95
"""Share of rows in the clusters of plain K-means from which the kernel made no difference."""
TINY, HUGE = 0.05, 0.95
"""A cluster is tiny below this part of an even share, and huge above this share of all rows."""
GAP, GAPS, NO_GAP = 5.0, 2.0, 1.3
"""How many times farther from one the eigenvalue behind a number of clusters is: from where on that
speaks for it clearly, or at all, and up to where it does not. Samples without clusters have up to
4.1 (``python -m benchmarks.guidance``)."""
AGAIN = 3.0
"""How many times the gap behind a larger number must be that of the one that was asked for."""
ROUNDING = 1e-12
"""A column that varies by less than this part of its numbers is constant."""
LEAST = 1e-4
"""What eigenvalues lack of one is not told apart below this."""


@dataclass(frozen=True)
class _Seen:
    """A run, as far as advice looks at it."""

    model: Any
    X: Any
    names: Sequence[Any] | None
    standardized: bool
    follow_up: FollowUp
    plain: PlainKMeans | None

    @property
    def k(self) -> int:
        """Clusters that were asked for."""
        return int(self.model.n_clusters)

    @property
    def sizes(self) -> IntArray:
        """Rows in each cluster."""
        return np.bincount(self.model.labels_, minlength=self.k)

    @property
    def precomputed(self) -> bool:
        """Whether there are no rows, but the kernel of them."""
        return isinstance(self.model.kernel, str) and self.model.kernel == "precomputed"

    @property
    def some(self) -> IntArray:
        """The rows that are looked at."""
        n, p = self.X.shape
        most = max(min(ROWS, NUMBERS // max(p, 1)), EACH * self.k)
        return subsample(np.arange(n), most, 0)


def guidance(
    model: Any,
    X: Any,
    *,
    feature_names: Sequence[Any] | None = None,
    standardized: bool = False,
    command: str | Sequence[str] | None = None,
    plain: PlainKMeans | None = None,
) -> tuple[str, ...]:
    """Return what to do next, in at most three lines, the most important first.

    Parameters
    ----------
    model : KernelKMeans or FullKernelKMeans
        Fitted.
    X : array or CSR matrix of shape (n_samples, n_features)
        Its training samples, as the model saw them.
    feature_names : sequence, optional
        Names of the columns; their numbers, from 1, if left out.
    standardized : bool
        Whether the columns were given one scale: then nothing is said of it.
    command : str or sequence of str, optional
        The ``sketchmeans cluster`` that ran: further commands are built from it, and stand at the
        end of their line behind a colon. Without one the words are those of Python.
    plain : PlainKMeans, optional
        What plain K-means found, where it is known; else some of the rows are clustered.
    """
    X = X.tocsr() if sparse.issparse(X) else np.asarray(X)
    check_training_rows(model, X.shape[0])
    follow_up = FollowUp.of(command)
    seen = _Seen(model, X, feature_names, standardized, follow_up, plain)
    return tuple(line for line, _ in zip(_lines(seen), range(LINES), strict=False))


def _lines(seen: _Seen) -> Iterator[str]:
    """Yield all that there is to say, the most important first."""
    if not seen.precomputed:
        widths = _widths(seen)
        if widths is not None and not widths.any() and len(first_distinct(seen.X, 2)) < 2:
            yield "All rows are equal: there is nothing to cluster."
            return
        if widths is not None and not seen.standardized and (wide := _scales(seen, widths)):
            yield wide
    if seen.k == 1:
        yield _choose(seen, "One cluster is all rows. How many the data have")
        return
    gaps = gaps_of(seen.model)
    if better := better_numbers(seen.k, gaps):
        yield _number(seen, better)
    if uneven := _sizes(seen):
        yield uneven
    if not seen.precomputed and np.count_nonzero(seen.sizes) > 1:
        yield _agreement(seen)
    if gaps.get(seen.k, 0.0) >= GAP and not better:
        yield _supported(seen, gaps)
    elif not better and seen.sizes.all():
        yield _choose(seen, f"Whether this kernel and {seen.k} clusters suit the data")


def _rows(X: Any, some: IntArray) -> Any:
    """Return some rows as numbers, dense or sparse as X is."""
    rows = X if len(some) == X.shape[0] else X[some]
    return rows if rows.dtype.kind == "f" else rows.astype(np.float64)


def _widths(seen: _Seen) -> FloatArray | None:
    """Return the standard deviation of every column; 0 where rounding alone makes one.

    None where most numbers are zero, as of words: columns are rare or common there, not wide.
    """
    rows = _rows(seen.X, seen.some)
    if sparse.issparse(rows):
        if 2 * rows.nnz < rows.shape[0] * rows.shape[1]:
            return None
        rows = rows.toarray()
    largest = np.abs(rows).max(axis=0, initial=0.0).astype(np.float64)
    largest[largest == 0] = 1.0
    widths = (rows / largest).std(axis=0)  # of numbers up to one, whose squares do not overflow
    return np.where(widths > ROUNDING, widths, 0.0) * largest


def _scales(seen: _Seen, widths: FloatArray) -> str | None:
    """Say which column is much wider than half of the others; None where none is."""
    order = np.argsort(-widths, kind="stable")[: np.count_nonzero(widths)]
    if len(order) < 2 or widths[order[0]] < WIDER * widths[order[len(order) // 2]]:
        return None
    variances = np.square(widths / widths[order[0]])
    wide = variances >= WIDER**-2
    share, typical = variances[wide].sum() / variances.sum(), order[len(order) // 2]
    among = "" if len(seen.some) == seen.X.shape[0] else f", among {len(seen.some):,} rows drawn"
    said = (
        f"{_name(seen.names, int(order[0]))} is {_times(widths[order[0]] / widths[typical])} × "
        f"wider than {_name(seen.names, int(typical))}: {_share(share)} of the squared distances "
        f"come from {wide.sum()} of {counted(len(order), 'column')}{among}."
    )
    again = seen.follow_up.cluster("--standardize")
    option = "--standardize" if seen.follow_up.on_the_command_line else "StandardScaler()"
    return f"{said} Unless all are in one unit, scale them: {again or option}"


def _times(ratio: float) -> str:
    """Return a ratio with two digits.

    >>> _times(1283.7), _times(12.34)
    ('1,300', '12')
    """
    digits = max(int(np.floor(np.log10(ratio))) - 1, 0)
    return f"{round(ratio, -digits):,.0f}"


def _share(share: float) -> str:
    """Return a share as people say it; what is not all is not rounded to it.

    >>> _share(0.974), _share(0.9981), _share(0.99999)
    ('97 %', '99.8 %', 'over 99.9 %')
    """
    if 0.9995 < share < 1:
        return "over 99.9 %"
    return f"{100 * share:.1f} %" if 0.99 < share < 1 else f"{100 * share:.0f} %"


def _name(names: Sequence[Any] | None, column: int) -> str:
    return f"column {column + 1}" if names is None else printable(str(names[column]), 40)


def _sizes(seen: _Seen) -> str | None:
    """Say which clusters are empty or very small, or hold nearly all rows; None where none do."""
    sizes, n, k = seen.sizes, len(seen.model.labels_), seen.k
    tiny = np.flatnonzero(sizes < TINY * n / k)
    if not sizes.all():
        said = f"{np.count_nonzero(sizes == 0)} of {k} clusters are empty: fewer were found."
        return f"{said} {_try(seen, int(np.count_nonzero(sizes)))}"
    if len(tiny):
        most = counted(int(sizes[tiny].max()), "row")
        said = f"Cluster {tiny[0]} has {most}" if len(tiny) == 1 else (
            f"{len(tiny)} of {k} clusters have at most {most} each"
        )  # fmt: skip
        return f"{said}, of {n:,}: outliers, or more clusters than there are."
    if sizes.max() > HUGE * n:
        said = f"Cluster {sizes.argmax()} holds {_share(sizes.max() / n)} of the rows"
        return f"{said}: the others may be outliers."
    return None


def _try(seen: _Seen, n_clusters: int) -> str:
    """Say how to ask for another number of clusters."""
    again = seen.follow_up.cluster("-k", str(n_clusters), instead=CLUSTERS)
    return f"Try: {again or seen.follow_up.option('-k', 'n_clusters', n_clusters)}"


def _agreement(seen: _Seen) -> str:
    """Say what the kernel changed, from the share of rows in the clusters of plain K-means."""
    if seen.plain is not None:
        labels, some = seen.plain.labels, seen.plain.rows
        ours = seen.model.labels_ if some is None else seen.model.labels_[some]
    else:
        some = seen.some
        ours = seen.model.labels_[some]
        labels = plain_labels(_rows(seen.X, some), ours, seen.k, 0)
    all_rows = some is None or len(some) == len(seen.model.labels_)
    among = "the rows" if all_rows else f"{len(labels):,} rows drawn"
    share = accuracy(labels, ours)
    if share < NO_DIFFERENCE:
        elsewhere = _share(1 - share)
        return (
            f"The kernel made a difference: plain K-means puts {elsewhere} of {among} into other "
            "clusters."
        )
    said = (
        f"The kernel made no difference: {_share(share)} of {among} are in the same clusters as "
        "with plain K-means."
    )
    if has_neighbors(seen.model):
        return f"{said} That would have done, and is faster."
    again = seen.follow_up.cluster("--kernel", "neighbors", instead=FITTING)
    by_name = seen.follow_up.on_the_command_line
    option = "--kernel neighbors" if by_name else 'KernelKMeans(…, kernel="neighbors")'
    return f"{said} A kernel that follows curved clusters: {again or option}"


def gaps_of(model: Any) -> dict[int, float]:
    """Return how many times farther from one the eigenvalue behind each number of clusters is.

    Of the neighbours kernel, whose spectrum is exact and goes on beyond the rank; else nothing.
    """
    if not has_neighbors(model):
        return {}
    spectrum = embedding_of(model)
    missing = np.maximum(1 - np.concatenate([spectrum.eigenvalues, spectrum.beyond]), LEAST)
    return dict(enumerate((missing[2:] / missing[1:-1]).tolist(), start=2))


def better_numbers(k: int, gaps: dict[int, float]) -> list[int]:
    """Return numbers of clusters that the eigenvalues speak for much more clearly than for k."""
    if k not in gaps:
        return []
    best = max(gaps, key=lambda number: gaps[number])
    if gaps[best] < GAP:
        return []
    if best > k:
        return [best] if gaps[best] >= AGAIN * gaps[k] else []
    if gaps[k] > NO_GAP:
        return []
    return [number for number in range(2, k) if gaps[number] >= GAPS]


def _number(seen: _Seen, better: list[int]) -> str:
    """Say which numbers of clusters have more for them."""
    said = (
        f"{' or '.join(map(str, better))} clusters are better supported than {seen.k}: behind them "
        f"the eigenvalues have a {'larger ' if better[0] > seen.k else ''}gap."
    )
    if len(better) > 1:
        return _choose(seen, f"{said} To compare")
    return f"{said} {_try(seen, better[0])}"


def _supported(seen: _Seen, gaps: dict[int, float]) -> str:
    """Say that the number is a good one, which larger ones are too, and how to look at clusters."""
    said = f"Behind {seen.k} clusters the eigenvalues have a clear gap: that number is a good one."
    if more := [str(number) for number in gaps if number > seen.k and gaps[number] >= GAPS]:
        return _choose(seen, f"{said} Behind {' and '.join(more)} there is a gap, too. To compare")
    look = seen.follow_up.cluster("--report", "report.html")
    return said if look is None or seen.follow_up.has_report else f"{said} To look at them: {look}"


def _choose(seen: _Seen, question: str) -> str:
    """Return a question, and the command or the function that looks for an answer."""
    command = seen.follow_up.choose(precomputed=seen.precomputed)
    kernel = ', kernel="precomputed"' if seen.precomputed else ""
    asked = "sketchmeans choose" if seen.follow_up.on_the_command_line else ""
    return f"{question}: {command or asked or f'sketchmeans.choose(X{kernel})'}"
