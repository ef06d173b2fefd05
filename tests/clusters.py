"""Real clusters of worker processes, and what fits on them are held against."""

from contextlib import contextmanager

import dask
from distributed.utils import get_mp_context
from soak import clusters
from soak.clusters import same_fits

import forked

__all__ = ["opened", "same_fits"]


@contextmanager
def opened(n_workers):
    """Yield the client of a cluster whose processes are forked from one that has all imported.

    A worker that began from nothing would import it, and so would each that replaces a lost one:
    ``tests/test_dask_memory.py`` and ``docs/scale.md`` have such.
    """
    settings = {
        "distributed.worker.multiprocessing-method": "forkserver",
        "distributed.worker.profile.enabled": False,  # it looks at workers a hundred times a second
    }
    with dask.config.set(settings):
        assert get_mp_context() is forked.context()  # in this order: Dask has a list of its own
        with clusters.opened(n_workers) as client:
            yield client
