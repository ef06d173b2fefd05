"""Plain dense counterparts of what the library does in tiles, written from the paper."""

import numpy as np

from sketchmeans.certificate.certifying import Wanted, certificate_for
from sketchmeans.kernels import Cosine, Gaussian, Laplacian, Linear, Polynomial, Sigmoid

EXAMPLES = {
    "linear": Linear(),
    "polynomial": Polynomial(gamma=0.3, degree=3, coef0=1.0),
    "rbf": Gaussian(gamma=0.2),
    "laplacian": Laplacian(gamma=0.15),
    "cosine": Cosine(),
    "sigmoid": Sigmoid(gamma=0.05, coef0=0.2),
}


def dense_kernel(operator):
    n = operator.shape[0]
    return operator.tile(slice(0, n), slice(0, n))


def algorithm_1(K, Omega, *, rank=None):
    """QBQᵀ of the paper's Algorithm 1, with ``rank`` columns in Q (all of rank(W) if None)."""
    W = K @ Omega
    U, sizes, _ = np.linalg.svd(W, full_matrices=False)
    keep = sizes > 1e-10 * sizes[0]
    Q = U[:, keep] if rank is None else U[:, :rank]
    B = np.linalg.lstsq((Q.T @ Omega).T, (Q.T @ W).T, rcond=None)[0].T
    return Q @ ((B + B.T) / 2) @ Q.T


def objective(K, labels, weights=None):
    """L(C) = tr K − ⟨K, CᵀC⟩ for given labels."""
    d = np.ones(len(K)) if weights is None else weights
    total = float(np.diag(K) @ d)
    for cluster in np.unique(labels):
        member = d * (labels == cluster)
        if member.sum() > 0:
            total -= float(member @ K @ member) / member.sum()
    return total


def objectives(K, partitions, weights):
    """Return ``objective`` of many labels at once, a row each."""
    clusters = np.arange(partitions.max() + 1)[:, None]
    member = weights * (partitions[:, None, :] == clusters)
    mass = member.sum(axis=2)
    within = (member @ K * member).sum(axis=2)
    within = np.divide(within, mass, out=np.zeros_like(mass), where=mass > 0)
    return np.diag(K) @ weights - within.sum(axis=1)


def lloyd(K, labels, n_clusters, n_iter=100):
    """Kernel K-means by eq. (4), iteration by iteration, on the whole matrix."""
    n = len(K)
    for _ in range(n_iter):
        distances = np.full((n, n_clusters), np.inf)
        for cluster in range(n_clusters):
            inside = np.flatnonzero(labels == cluster)
            if len(inside):
                distances[:, cluster] = (
                    np.diag(K) - 2 * K[:, inside].mean(axis=1) + K[np.ix_(inside, inside)].mean()
                )
        new = distances.argmin(axis=1)
        if np.array_equal(new, labels):
            break
        labels = new
    return labels


def certificate_of(operator, labels, approximation, **wanted):
    """What is known of labels from an approximation, and from a pass if that is wanted."""
    return certificate_for(operator, labels, approximation, Wanted(**wanted))
