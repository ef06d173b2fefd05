"""The tile engine: W = KΩ for a kernel matrix K that is never stored.

One pass visits every pair of samples once and keeps only W::

                 J                     K is symmetric. Cut its rows into blocks of one fixed grid;
        ┌───┬───┬───┬───┐              the tile T = K[I, J], computed once, serves twice:
        │ ╲ │   │   │   │
        ├───┼───┼───┼───┤                  W[I] += T  Ω[J]
      I │   │ ╲ │ T │   │                  W[J] += Tᵀ Ω[I]
        ├───┼───┼───┼───┤
        │   │   │ ╲ │   │              so a pass evaluates n(n + 1)/2 entries, and half a tile per
        ├───┼───┼───┼───┤              row more on the diagonal.
        │   │   │   │ ╲ │
        └───┴───┴───┴───┘

**The order.** Tiles make up strips of rows (``strips``), and ``schedule.tournament`` pairs these as
in a round-robin tournament. What two strips give to each other is summed by itself, and added to W
when both have played the rounds before: no strip of W is touched twice in a round, threads need no
locks and no copies of W of their own, and memory stays at n × width and two strips per thread. So
every strip of W is summed in the same order whatever the number of threads, and on a cluster too,
where a pair of strips is a task. The grid depends on n alone. Hence the same bits for any number of
threads or workers and any memory limit.

**What else a pass carries.** A column of ones beside Ω gives the row sums K1, and the sum of
squares of each tile gives ‖K‖_F²: together they cost a twentieth of a pass, and bounds on the
best clustering come from them. A sum of squares that is not finite also finds the NaN that a
callable or an overflow made, and the tile where it did.

**Two implementations of one tile.** ``passes.NumpyTiles`` computes a tile, then multiplies it: a
dozen calls of NumPy and BLAS, the oracle of the tests and the fallback. The native tile (C, in
``native/``; ``native`` here says when it runs) makes 16 rows of a tile at a time, maps them and
multiplies them from both sides while they are in the first cache::

    panels of X ──▶ statistic ──▶ map ──▶ T, 16 × 320 ──▶ T Ω[J] ──▶ W[I]
    (packed once)   (registers)                      └──▶ Tᵀ Ω[I] ─▶ W[J]

It is compiled for several levels of the processor and the best one is chosen at run time. Its
grid is its own, and depends on n alone as well.

**Threads.** ``threads.Crew`` is a pool of Python threads; NumPy, SciPy and BLAS release the lock
of the interpreter. BLAS and OpenMP are held to one thread (``sketchmeans.blas``), so that their
sums do not depend on the machine. Ctrl-C is answered between tiles. A ``Run`` says how many
threads there are, and nothing of it changes a result.

**Three passes, one result.** ``tournament_pass`` takes tiles from data. ``strip_pass`` reads a
kernel that exists as an array, one strip of rows after another. ``rectangular_product`` serves
new points. ``hadamard.fwht`` is the transform for whole columns.

May import: kernels, checkpoints.
"""

from sketchmeans.engine.hadamard import fwht
from sketchmeans.engine.native import engine_name
from sketchmeans.engine.passes import (
    NumpyTiles,
    Pass,
    RightHandSide,
    rectangular_product,
    strip_pass,
    tournament_pass,
)
from sketchmeans.engine.run import ALONE, Progress, Run
from sketchmeans.engine.schedule import native_tile_rows, tile_rows, tournament
from sketchmeans.engine.threads import Crew

__all__ = [
    "ALONE",
    "Crew",
    "NumpyTiles",
    "Pass",
    "Progress",
    "RightHandSide",
    "Run",
    "engine_name",
    "fwht",
    "native_tile_rows",
    "rectangular_product",
    "strip_pass",
    "tile_rows",
    "tournament",
    "tournament_pass",
]
