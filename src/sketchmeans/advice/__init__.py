"""Advice."""

from sketchmeans.advice.choosing import choose
from sketchmeans.advice.comparing import compare

__all__ = ["choose", "compare"]
