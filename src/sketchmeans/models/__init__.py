"""Models."""

from sketchmeans.models.container import ModelFileError
from sketchmeans.models.files import load, read_description, save

__all__ = ["ModelFileError", "load", "read_description", "save"]
