"""The time left of a fit that ends with a proof, whose time nobody knows before."""

import io
import sys

import pytest

from sketchmeans import KernelKMeans
from sketchmeans.estimators.progress import FitProgress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("certificate", ["free", "blocks", "lifted", "triangles"])
def test_the_time_left_is_called_that_of_all_where_no_proof_follows(certificate, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.setattr(sys, "stderr", Terminal())
    with FitProgress(KernelKMeans(3, verbose=1, certificate=certificate), 2) as progress:
        progress.expect({"kernel passes": (10.0, 1), "K-means": (30.0, 1)})
        with progress.stage("kernel passes") as tick:
            tick(1, 2)
    shown = sys.stderr.getvalue()
    assert "s left" in shown
    assert ("left in all" in shown) == (certificate == "free")
