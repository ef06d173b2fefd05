import numpy as np
import pytest
from scipy.linalg import hadamard

from sketchmeans.blocks import multiply_columns
from sketchmeans.engine import engine_name, fwht
from sketchmeans.sketches import (
    FWHT_MIN_WIDTH,
    SKETCHES,
    HadamardSketch,
    IdentitySketch,
    SparseSketch,
    make_sketch,
)

SIZES = [511, 512, 513, 1000, 1025]


@pytest.mark.parametrize("name", SKETCHES)
def test_any_block_of_rows_can_be_made_alone(name):
    sketch = SKETCHES[name](5000, 30, seed=7)
    whole = sketch.matrix
    for start, stop in [(0, 1), (1000, 1030), (1023, 1025), (4999, 5000), (0, 5000)]:
        np.testing.assert_array_equal(
            SKETCHES[name](5000, 30, 7).rows(start, stop), whole[start:stop]
        )
    assert not np.array_equal(SKETCHES[name](5000, 30, seed=8).matrix, whole)


@pytest.mark.parametrize("n", SIZES)
def test_hadamard_sketches_are_well_conditioned(n, seeds):
    width = n // 20
    worst = max(np.linalg.cond(HadamardSketch(n, width, seed).matrix) for seed in seeds(100))
    assert worst < 3


def test_the_padding_trap_is_real(seeds):
    """Without the bijection some seeds give a singular Ω just above a power of two."""
    n, width = 513, 25
    conditions = []
    for seed in seeds(100):
        sketch = HadamardSketch(n, width, seed)
        sketch.positions = lambda start, stop: np.arange(start, stop, dtype=np.uint64)
        conditions.append(np.linalg.cond(sketch.matrix))
    assert max(conditions) > 10


@pytest.mark.parametrize("n", [1, 2, 3, 5, 64, 100, 513, 4097])
def test_positions_are_a_bijection(n):
    sketch = HadamardSketch(n, 1, seed=3)
    places = sketch.positions(0, sketch.order)
    assert sorted(places) == list(range(sketch.order))


def test_hadamard_columns_are_orthogonal_at_a_power_of_two():
    Omega = HadamardSketch(1024, 60, seed=1).matrix.astype(float)
    np.testing.assert_array_equal(Omega.T @ Omega, 1024 * np.eye(60))


def columns_of_the_transform(sketch):
    """Return the first four columns of H, in the order in which a Hadamard sketch has its rows."""
    order = HadamardSketch(sketch.n, sketch.width, sketch.seed).positions(0, sketch.n)
    return np.tile(hadamard(4), (sketch.n // 4, 1))[order]


@pytest.mark.parametrize("name", SKETCHES)
def test_the_distortion_of_a_subspace_keeps_to_theory(name, seeds):
    """Singular values of ΩᵀU/√width lie within 1 ± (√(k/s) + t), t from the failure probability.

    The bound is that of a Gaussian matrix (Davidson–Szarek) with failure probability 1e-6, which
    the others obey too at this width: Tropp (2011) needs s ≥ 4(√k + √(8 ln kn))² ln k = 648 for
    the Hadamard sketch, and promises [0.40, 1.48], which is wider. Without its random signs the
    sketch would see nothing of a subspace that columns of its own transform span.
    """
    n, k, width = 4096, 4, 648
    random = np.random.default_rng(0)
    bases = {
        "spread": lambda sketch: random.normal(size=(n, k)),
        "coherent": lambda sketch: np.eye(n)[:, :k],
        "of the transform": columns_of_the_transform,
    }
    scale = np.sqrt(min(SparseSketch.nonzeros, width) if name == "sparse" else width)
    slack = np.sqrt(k / width) + np.sqrt(2 * np.log(2 / 1e-6) / width)
    for seed in seeds(20):
        sketch = SKETCHES[name](n, width, seed)
        transposed = sketch.matrix.T.astype(float)  # takes longest: all subspaces share it
        for subspace, basis in bases.items():
            U, _ = np.linalg.qr(basis(sketch))
            sizes = np.linalg.svd(transposed @ U / scale, compute_uv=False)
            assert 1 - slack <= sizes.min(), subspace
            assert sizes.max() <= 1 + slack, subspace


@pytest.mark.parametrize("bits", range(11))
@pytest.mark.parametrize("columns", [1, 3, 64, 130])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_fast_transform_is_the_hadamard_matrix(bits, columns, dtype):
    n = 1 << bits
    A = np.random.default_rng(bits).normal(size=(n, columns)).astype(dtype)
    tolerance = 1e-12 if dtype == np.float64 else 1e-4
    expected = hadamard(n) @ A.astype(np.float64)
    result = fwht(A, n_threads=2)
    assert result.dtype == dtype
    np.testing.assert_allclose(result, expected, atol=tolerance * n)
    np.testing.assert_array_equal(fwht(A, n_threads=1), result)


def test_the_fast_transform_refuses_other_lengths():
    with pytest.raises(ValueError, match=r"power of two as the number of rows, not 6.*to 8"):
        fwht(np.ones((6, 2)))


@pytest.mark.parametrize("n", [*SIZES, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_transform_and_explicit_rows_give_the_same_sketch(n, dtype):
    columns = np.random.default_rng(0).normal(size=(n, 7)).astype(dtype)
    sketch = HadamardSketch(n, min(n, 40), seed=5)
    exact = columns.astype(np.float64).T @ sketch.matrix.astype(np.float64)
    tolerance = 1e-10 if dtype == np.float64 else 1e-3
    np.testing.assert_allclose(sketch.apply_by_transform(columns), exact, atol=tolerance)
    np.testing.assert_allclose(multiply_columns(columns, sketch.matrix), exact, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_wide_sketches_of_columns_take_the_fast_transform(dtype, monkeypatch):
    taken = []
    original = HadamardSketch.apply_by_transform

    def watched(self, columns, **options):
        taken.append(self.width)
        return original(self, columns, **options)

    monkeypatch.setattr(HadamardSketch, "apply_by_transform", watched)
    switch = FWHT_MIN_WIDTH[engine_name()][np.dtype(dtype).itemsize]
    columns = np.ones((2048, 2), dtype)
    for width in (switch - 1, switch):
        HadamardSketch(2048, width, 0).apply(columns)
    assert taken == [switch]


def test_sparse_rows_have_eight_signs():
    Omega = SparseSketch(3000, 30, seed=0).matrix
    assert (np.abs(Omega).sum(axis=1) == 8).all()
    assert set(np.unique(Omega)) == {-1, 0, 1}


def test_a_sketch_as_wide_as_the_kernel_is_the_identity():
    sketch = make_sketch("hadamard", 2100, 5000, seed=0)
    assert isinstance(sketch, IdentitySketch)
    np.testing.assert_array_equal(sketch.rows(1000, 1100), np.eye(2100)[1000:1100])


def test_sketches_refuse_impossible_shapes():
    with pytest.raises(ValueError, match="width=9 exceeds the 8 columns"):
        HadamardSketch(7, 9, 0)
    with pytest.raises(ValueError, match="at least one row and column"):
        HadamardSketch(7, 0, 0)
