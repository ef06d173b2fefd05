"""The outside that scikit-learn knows: ``fit``, ``predict`` and attributes with an underscore.

``base`` turns data and options into an operator, ``sketched`` an operator into an embedding;
``embedding``, ``cluster`` and ``full`` are the three estimators. ``checks`` refuses what cannot be
fitted, ``sizing`` and ``memory`` decide how wide and with how many threads, ``progress`` tells of
it; ``kmeans``, ``starts`` and ``lloyd`` cluster. ``documents`` describes shared parameters once.
``certifying`` is for anybody's labels. ``fitted`` and ``parts`` are for other rooms, which do not
touch private names.

May import: kernels, checkpoints, engine, sketches, operators, disk, lowrank, certificate.
"""

from sketchmeans.estimators.certifying import certify
from sketchmeans.estimators.cluster import KernelKMeans
from sketchmeans.estimators.embedding import KernelEmbedding
from sketchmeans.estimators.full import FullKernelKMeans

__all__ = ["FullKernelKMeans", "KernelEmbedding", "KernelKMeans", "certify"]
