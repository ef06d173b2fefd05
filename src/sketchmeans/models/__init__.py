"""Fitted models in files that are safe to open.

``sketchmeans.container`` has the bytes of a file, ``schema`` what the file of each estimator holds
and the checks of its header, ``points`` the kernel of new points as arrays, ``pipelines`` and
``steps`` what scikit-learn does before our estimator, ``preparation`` what the command line did;
``saving`` and ``loading`` take a model from memory to the file and back. May import: kernels,
operators, lowrank, certificate, estimators.
"""

from sketchmeans.container import ModelFileError
from sketchmeans.models.loading import load, read_description
from sketchmeans.models.saving import save

__all__ = ["ModelFileError", "load", "read_description", "save"]
