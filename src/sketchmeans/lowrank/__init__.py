"""Low-rank approximations K̂ = FFᵀ of a kernel matrix: one file a method, one result type."""

from sketchmeans.lowrank.one_pass import one_pass, recover
from sketchmeans.lowrank.result import IndefiniteKernelWarning, LowRank

__all__ = ["IndefiniteKernelWarning", "LowRank", "one_pass", "recover"]
