"""Which features to look at: those in which clusters differ, and the pair that parts them best."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial import KDTree

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.blocks import dense

ALIKE = 2.25
"""Two features whose ranges differ by no more than this factor are drawn to one scale: those of two
moons differ by two."""
PAIR_ROWS = 1000
"""Rows by which pairs are judged."""
NEIGHBOURS = 10


def telling_features(X: Any, labels: IntArray, rows: IntArray, most: int) -> list[int]:
    """Return the features to show: all if they are few, else those that differ most by cluster.

    That is the share of a feature's variance that lies between clusters, on a sample of rows.
    """
    p = X.shape[1]
    if p <= most or (labels[rows] == labels[rows[0]]).all():
        return list(range(min(p, most)))
    share = between_share(X, labels, rows)
    return [int(feature) for feature in np.argsort(-share, kind="stable")[:most]]


def between_share(X: Any, labels: IntArray, rows: IntArray) -> FloatArray:
    """Return what part of the variance of each feature lies between clusters, on some rows."""
    p = X.shape[1]
    groups = np.unique(labels[rows], return_inverse=True)[1]
    member = sparse.csr_matrix((np.ones(len(rows)), (groups, np.arange(len(rows)))))
    sizes = np.asarray(member.sum(axis=1)).ravel()
    between, total = np.zeros(p), np.zeros(p)
    step = p if sparse.issparse(X) else max(1, (1 << 20) // len(rows))
    with np.errstate(over="ignore", invalid="ignore"):  # huge numbers: they rank last
        for start in range(0, p, step):
            columns = slice(start, start + step)
            if sparse.issparse(X):
                block = X[rows].astype(np.float64)
                scaled = sparse.diags_array(1 / np.sqrt(sizes)) @ (member @ block)
                within = np.asarray(scaled.multiply(scaled).sum(axis=0)).ravel()
                squares = np.asarray(block.multiply(block).sum(axis=0)).ravel()
                sums = np.asarray(block.sum(axis=0)).ravel()
            else:
                block = filled(np.asarray(X[rows, columns], np.float64))
                block = block - block[:1]  # keeps the digits of data far from zero
                within = (np.square(member @ block) / sizes[:, None]).sum(axis=0)
                squares, sums = np.square(block).sum(axis=0), block.sum(axis=0)
            about = np.square(sums) / len(rows)
            between[columns], total[columns] = within - about, squares - about
        return np.nan_to_num(between / np.maximum(total, 1e-300), nan=0.0, posinf=0.0)


def filled(block: FloatArray) -> FloatArray:
    """Return a block with the mean of its column in the place of each missing value."""
    gaps = np.isnan(block)
    if not gaps.any():
        return block
    known = np.maximum((~gaps).sum(axis=0), 1)
    return np.where(gaps, np.where(gaps, 0.0, block).sum(axis=0) / known, block)


def best_pair(
    X: Any, labels: IntArray | None, rows: IntArray, features: Sequence[int], seed: int = 0
) -> list[int]:
    """Return the two of these features in whose plane neighbours share a cluster most often.

    Clusters count alike, whatever their sizes. Among pairs that are as good, the one whose variance
    lies most between clusters, then the first. One feature where there is but one to draw.
    """
    rows = np.random.default_rng([seed, len(rows)]).permutation(rows)[:PAIR_ROWS]
    drawn = dense(X[rows][:, list(features)]).astype(np.float64)
    values = filled(np.where(np.isfinite(drawn), drawn, np.nan))
    with np.errstate(over="ignore"):
        ranges = np.ptp(values, axis=0)
    usable = [place for place in range(len(features)) if 0 < ranges[place] < np.inf]
    if len(usable) < 2:
        usable = [*usable, *(place for place in range(len(features)) if place not in usable)][:2]
    groups = None if labels is None else np.unique(labels[rows], return_inverse=True)[1]
    if groups is None or groups.max() == 0 or len(usable) <= 2:
        return [features[place] for place in usable[:2]]
    share = between_share(values, groups, np.arange(len(rows)))
    places = values / np.where(ranges > 0, ranges, 1.0)
    first, second = max(
        combinations(usable, 2),
        key=lambda pair: (
            round(_purity(places[:, pair] * _shape(*ranges[list(pair)]), groups), 3),
            round(share[list(pair)].sum(), 6),
        ),
    )
    return [features[first], features[second]]


def _purity(places: FloatArray, groups: IntArray) -> float:
    """Return the share of neighbours that are in one's own cluster; the mean over clusters."""
    near = min(NEIGHBOURS, len(places) - 1)
    _, found = KDTree(places).query(places, near + 1)
    same = (groups[found[:, 1:]] == groups[:, None]).mean(axis=1)
    return float((np.bincount(groups, same) / np.bincount(groups)).mean())


def _shape(across: float, up: float) -> FloatArray:
    """Return width and height of a picture of these ranges."""
    return np.array([across, up]) / max(across, up) if alike(across, up) else np.ones(2)


def alike(across: float, up: float) -> bool:
    """Whether two ranges are so near to each other that one unit may be as long up as across.

    >>> alike(3.0, 1.5), alike(60.0, 80_000.0)
    (True, False)
    """
    return max(across, up) <= ALIKE * min(across, up)
