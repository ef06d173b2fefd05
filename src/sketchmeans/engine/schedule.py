"""Which tiles there are, and in what order they are computed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from sketchmeans.engine.threads import Crew, Signal


def tile_rows(n: int) -> int:
    """Return the side of a tile for n samples: a function of n alone, for it decides the bits.

    Large tiles are faster on any number of threads: a tile is a dozen NumPy calls, and below 256
    rows they are so short that threads spend their time handing each other the interpreter's lock
    (``python -m benchmarks.tile_parts``). But there must be enough for many threads: eight row
    blocks, at least. 640 is a multiple of 64, so that the thin products go in slabs, and no power
    of two, whose rows fight for the same cache lines.
    """
    return next((side for side in (640, 256, 128) if n > 7 * side), 64)


def native_tile_rows(n: int) -> int:
    """Return the side of a native tile for n samples: a function of n alone, as ``tile_rows``.

    A native tile is one short call, so the schedule's share of its time is larger than with NumPy
    tiles, and sides are larger too: with 64 rows two threads are slower than one
    (``python -m benchmarks.native_switches``).
    """
    for side, least in ((1280, 40_960), (960, 15_360), (640, 5120), (320, 1024)):
        if n >= least:
            return side
    return 192


def tournament(n_blocks: int) -> Iterator[list[tuple[int, int]]]:
    """Yield the rounds of a tournament in which every pair of blocks meets once.

    Within a round no block occurs twice, so the tiles of a round may run at the same time and
    write to W without locks. The circle method: one block stays, the others rotate. A block that
    has no partner in a round plays itself, its diagonal tile; with an even number of blocks all
    diagonal tiles make one more round.

    >>> for round_ in tournament(3):
    ...     print(round_)
    [(0, 0), (1, 2)]
    [(1, 1), (0, 2)]
    [(2, 2), (0, 1)]
    """
    odd = n_blocks % 2 == 1
    ring = n_blocks if odd else n_blocks - 1
    for turn in range(ring):
        pairs = [(turn, turn) if odd else (turn, n_blocks - 1)]
        for step in range(1, (ring + 1) // 2):
            one, other = (turn + step) % ring, (turn - step) % ring
            pairs.append((min(one, other), max(one, other)))
        yield pairs
    if not odd:
        yield [(block, block) for block in range(n_blocks)]


class Turns:
    """Lets the tiles of a tournament run as soon as both of their blocks have come to that round.

    Every block plays once per round, so "round r of block i" is "i has played r times". No barrier
    between rounds is needed to add to each block in the same order on any number of threads, and a
    slow core holds up only those who play against its block.

    Tiles must be taken in the order of the rounds: then whoever a tile waits for is running.

    Parameters
    ----------
    n_blocks : int
        Blocks that play.
    crew : Crew
        Who computes the tiles: when it stops, nobody waits for a turn any longer.
    played : iterable of pairs of int
        Pairs that have had their turn before.
    """

    def __init__(self, n_blocks: int, crew: Crew, played: Iterable[tuple[int, int]] = ()) -> None:
        self._played = [0] * n_blocks
        for pair in played:
            for block in set(pair):
                self._played[block] += 1
        self._signal = Signal(crew)

    @contextmanager
    def taken(self, round_: int, pair: tuple[int, int]) -> Iterator[None]:
        """Wait for the turn of this pair, and pass the turn on when its tile is done or failed."""
        played, blocks = self._played, set(pair)
        self._signal.wait_for(lambda: all(played[block] == round_ for block in blocks))
        try:
            yield
        finally:
            with self._signal.lock:
                for block in blocks:
                    played[block] += 1
                self._signal.announce()
