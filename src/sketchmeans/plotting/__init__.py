"""Plots as scikit-learn's Displays: ``from_estimator``, ``plot(ax=…)``, ``ax_`` and ``figure_``.

>>> from sketchmeans import KernelKMeans
>>> from sketchmeans.datasets import make_rings
>>> from sketchmeans.plotting import EmbeddingDisplay
>>> X, _ = make_rings(500, random_state=0)
>>> model = KernelKMeans(2, kernel="polynomial", degree=2, coef0=0, random_state=0).fit(X)
>>> EmbeddingDisplay.from_estimator(model).ax_.get_title()
'500 samples in 2 clusters'

A Display holds data; matplotlib is imported when something is drawn:
``pip install "sketchmeans[plots]"``. Each Display has a file of its own; ``axes`` gives it a place
to draw, and ``scattering`` what Displays of samples share. ``palette``, ``telling`` (which features
to look at) and ``given`` (Pipelines, tables with text) need no matplotlib; reports use them too.

May import: certificate, estimators, advice.
"""

from typing import TYPE_CHECKING

from sketchmeans._package import lazy_names

if TYPE_CHECKING:
    from sketchmeans.plotting.certificate import CertificateDisplay
    from sketchmeans.plotting.comparison import ComparisonDisplay
    from sketchmeans.plotting.embedding import EmbeddingDisplay
    from sketchmeans.plotting.features import FeaturesDisplay
    from sketchmeans.plotting.spectrum import SpectrumDisplay

__all__ = [
    "CertificateDisplay",
    "ComparisonDisplay",
    "EmbeddingDisplay",
    "FeaturesDisplay",
    "SpectrumDisplay",
]

__getattr__ = lazy_names(__name__, {name: name.removesuffix("Display").lower() for name in __all__})
