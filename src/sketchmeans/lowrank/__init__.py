"""Low-rank approximations K̂ = FFᵀ of a kernel matrix: one file per method, one result type.

=================  ======================  ===========================  =========================
method             meets                   kernel entries               K̂ ≼ K
=================  ======================  ===========================  =========================
one_pass           all of K, q passes      q · n(n + 1)/2               late: yes; early: no
exact              all of K                n², or tens of passes        yes
filtered           a sparse K, hundreds    stored ones · passes         yes
sparse_features    sparse features         none                         K itself
nystrom            m columns               n · m                        yes
greedy_cholesky    m columns               n · m                        yes
rp_cholesky        m columns               n · m                        yes
=================  ======================  ===========================  =========================

``filtered`` is how ``exact`` goes about a sparse kernel, ``sparse_features`` about neighbours.
``approximate(operator, name, request)`` calls any of them by name. ``core`` has what they share,
``needs`` the memory that each takes, ``landmarks`` where columns are chosen, and ``streams`` the
sketch of a kernel whose columns are pushed.

A new method is a file here, its memory in ``needs`` and a line in ``methods``. Methods know nothing
of estimators. May import: engine, sketches, operators.
"""

from sketchmeans.lowrank.cholesky import greedy_cholesky, rp_cholesky
from sketchmeans.lowrank.exact import exact
from sketchmeans.lowrank.methods import METHODS, approximate
from sketchmeans.lowrank.nystrom import nystrom
from sketchmeans.lowrank.one_pass import one_pass, recover
from sketchmeans.lowrank.request import Request
from sketchmeans.lowrank.result import Cost, Facts, IndefiniteKernelWarning, LowRank
from sketchmeans.lowrank.streams import ColumnStream

__all__ = [
    "METHODS",
    "ColumnStream",
    "Cost",
    "Facts",
    "IndefiniteKernelWarning",
    "LowRank",
    "Request",
    "approximate",
    "exact",
    "greedy_cholesky",
    "nystrom",
    "one_pass",
    "recover",
    "rp_cholesky",
]
