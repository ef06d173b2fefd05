"""Graphs of nearest neighbours, and their kernels."""

import warnings

from sklearn.datasets import make_blobs
from sklearn.neighbors import kneighbors_graph

from sketchmeans.graphs import normalized


def neighbours(n, *, seed=0, k=8):
    """The graph of nearest neighbours of four blobs, symmetric."""
    X, _ = make_blobs(n, centers=4, cluster_std=1.5, random_state=seed)
    A = kneighbors_graph(X, k)
    return A.maximum(A.T)


def graph(n=400):
    """The normalized graph of such neighbours, whether or not it is connected."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return normalized(neighbours(n))


def changed(K, i, j, value, *, both=True):
    K = K.tolil()
    K[i, j] = value
    if both:
        K[j, i] = value
    return K.tocsr()
