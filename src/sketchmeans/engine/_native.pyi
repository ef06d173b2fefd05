from sketchmeans._arrays import Array, FloatArray, IntArray

DOT: int
MANHATTAN: int
GIVEN: int
IDENTITY: int
POWER: int
EXP2: int
TANH: int
PANEL_BYTES: int

def tile(
    statistic: int,
    left: FloatArray,
    left_shift: FloatArray,
    right_shift: FloatArray,
    right_omega: FloatArray,
    left_W: FloatArray,
    *,
    right: Array | None = None,
    features: int = 0,
    map: int = ...,
    degree: int = 1,
    scale: float = 1.0,
    left_weight: FloatArray | None = None,
    right_weight: FloatArray | None = None,
    left_omega: FloatArray | None = None,
    right_W: FloatArray | None = None,
    diagonal: FloatArray | None = None,
    zero_distance: bool = False,
) -> float: ...
def pack(rows: IntArray, panels: FloatArray, /) -> None: ...
def apply_map(map: int, degree: int, numbers: FloatArray, /) -> None: ...
def transform(matrix: Array, progress: FloatArray | None = None, /) -> None: ...
def sparse_dots(
    left_starts: FloatArray,
    left_places: FloatArray,
    left_values: FloatArray,
    right_starts: FloatArray,
    right_places: FloatArray,
    right_values: FloatArray,
    out: FloatArray,
    /,
) -> None: ...
def nearest(
    rows: FloatArray,
    panels: FloatArray,
    halves: FloatArray,
    points: FloatArray,
    looked_at: int,
    out: IntArray,
    /,
) -> None: ...
def add_gram(
    columns: IntArray, values: FloatArray, first: int, last: int, G: FloatArray, /
) -> None: ...
def levels() -> tuple[str, ...]: ...
def use(level: str, /) -> str: ...
