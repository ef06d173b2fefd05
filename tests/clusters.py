"""Real clusters of worker processes, and what fits on them are held against."""

from soak.clusters import opened, same_fits

__all__ = ["opened", "same_fits"]
