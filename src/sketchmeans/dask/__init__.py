"""The same fits on a Dask cluster: ``KernelKMeans`` and ``KernelEmbedding`` for Dask collections.

``inputs`` turns a Dask array or dataframe into rows on workers, ``placed`` sends work to them and
``meetings`` the pairs of strips of a pass; ``estimators`` and ``certifying`` are the outside. The
algorithm is that of the local estimators, to the bit: they are given rows that are elsewhere
(``sketchmeans.rows``).

>>> import dask.array as da
>>> from distributed import Client
>>> from sklearn.datasets import make_moons
>>> from sketchmeans.dask import KernelKMeans
>>> X, y = make_moons(1000, noise=0.05, random_state=0)
>>> with Client(processes=False, n_workers=1, dashboard_address=None) as client:
...     model = KernelKMeans(2, random_state=0).fit(da.from_array(X, chunks=(300, 2)))
...     labels = model.labels_.compute()
>>> bool(max((labels == y).mean(), (labels != y).mean()) > 0.99)
True

May import: engine, estimators.
"""

try:
    import dask.array  # noqa: F401
    import distributed  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"sketchmeans.dask needs Dask, and {error.name!r} is not installed: "
        'pip install "sketchmeans[dask]"'
    ) from error

from sketchmeans.dask.certifying import certify
from sketchmeans.dask.estimators import KernelEmbedding, KernelKMeans

__all__ = ["KernelEmbedding", "KernelKMeans", "certify"]
