"""Real clusters of worker processes, and what fits on them are held against."""

from contextlib import contextmanager

import numpy as np
from distributed import Client, LocalCluster


@contextmanager
def opened(n_workers, **options):
    """Yield the client of a cluster of processes with a thread each."""
    options = {"threads_per_worker": 1, "dashboard_address": None, **options}
    with (
        LocalCluster(n_workers=n_workers, processes=True, **options) as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(n_workers)
        yield client


def same_fits(local, model):
    """Hold a fit on a cluster against a local one: every bit of what it found."""
    found = {"embedding_": model.embedding_.compute()}
    if hasattr(local, "labels_"):
        found["labels_"] = model.labels_.compute()
        assert model.certificate_ == local.certificate_
        assert model.inertia_ == local.inertia_
        assert model.n_iter_ == local.n_iter_
        found["cluster_centers_"] = model.cluster_centers_
    found["eigenvalues_"] = model.eigenvalues_
    for name, value in found.items():
        truth = np.asarray(getattr(local, name))
        assert value.dtype == truth.dtype, name
        np.testing.assert_array_equal(value, truth, err_msg=name)
        assert value.tobytes() == truth.tobytes(), name
