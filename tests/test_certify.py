"""Proofs as they are asked for, of labels, of models and in fits: levels, starts, time, memory."""

import time
import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_blobs
from sklearn.preprocessing import scale

from oracles import objective
from sketchmeans import FullKernelKMeans, KernelKMeans, certify
from sketchmeans.certificate import proving
from sketchmeans.certificate.blockwise import block_bytes
from sketchmeans.certificate.lift import Lifting


@pytest.mark.parametrize(
    ("load", "k"),
    [(load_iris, 3), (load_wine, 3), (load_breast_cancer, 2)],
    ids=["iris", "wine", "breast cancer"],
)
def test_plain_kmeans_of_small_tables_is_proved_to_half_a_per_cent(load, k):
    X = scale(load().data)
    labels = KMeans(k, n_init=10, random_state=0).fit_predict(X)
    tries = (certify(X, labels, kernel="linear", seconds=limit).relative_gap for limit in (5, 60))
    assert any(gap < 0.005 for gap in tries)  # the second one only where the machine is busy


def test_the_bits_do_not_depend_on_threads():
    X, _ = make_blobs(200, 6, centers=5, cluster_std=3.0, random_state=1)  # two strips of tiles
    labels = KMeans(5, n_init=1, random_state=0).fit_predict(X)
    for options in ({"effort": "triangles"}, {"block_size": 40}):
        one, two, five = (
            certify(X, labels, kernel="rbf", n_jobs=jobs, random_state=0, **options)
            for jobs in (1, 2, 5)
        )
        assert one == two == five


def test_labels_may_be_text_and_noise_is_refused_with_the_way_out():
    X, _ = make_blobs(60, random_state=0)
    numbers = KMeans(3, n_init=3, random_state=0).fit_predict(X)
    names = np.array(["ant", "bee", "cat"])[numbers]
    plain = certify(X, numbers, kernel="linear", random_state=0)
    assert certify(X, names, kernel="linear", random_state=0) == plain
    assert certify(X, list(names), kernel="linear", random_state=0) == plain
    assert certify(X, numbers + 10.0, kernel="linear", random_state=0) == plain
    noisy = np.where(np.arange(60) < 4, -1, numbers)
    with pytest.raises(ValueError, match=r"-1 for 4 of 60 samples.*X\[labels >= 0\]"):
        certify(X, noisy, kernel="linear")
    with pytest.raises(ValueError, match="give the kernel to judge them by, such as kernel='linea"):
        certify(X, numbers)
    with pytest.raises(ValueError, match="one per sample: there are 60 samples"):
        certify(X, numbers[:50], kernel="linear")
    with pytest.raises(ValueError, match="n_clusters=2 is less than the 3 clusters"):
        certify(X, numbers, kernel="linear", n_clusters=2)
    with pytest.raises(ValueError, match="effort='lift' is not known"):
        certify(X, numbers, kernel="linear", effort="lift")


def test_a_model_brings_its_kernel_and_takes_no_other():
    X, _ = make_blobs(90, centers=3, cluster_std=2.0, random_state=0)
    model = KernelKMeans(3, kernel="rbf", gamma="2*median", random_state=0).fit(X)
    found = certify(X, model)
    same = certify(X, model.labels_, kernel="rbf", gamma=model.gamma_, effort="blocks")
    assert found.objective == same.objective
    assert found.relative_gap < 0.02
    full = FullKernelKMeans(3, gamma=model.gamma_, random_state=0).fit(X)
    proved = certify(X, full)
    assert proved.objective == pytest.approx(full.certificate_.objective)
    assert proved.optimum_lower >= full.certificate_.optimum_lower
    with pytest.raises(ValueError, match="kernel cannot be given with a model"):
        certify(X, model, kernel="linear")


def test_sparse_data_precomputed_matrices_and_memory_maps_give_what_dense_data_give(tmp_path):
    random = np.random.default_rng(0)
    X = random.normal(size=(80, 6)) * (random.random((80, 6)) < 0.4)
    labels = np.arange(80) % 3
    plain = certify(X, labels, kernel="rbf", gamma=0.3)
    thin = certify(sparse.csr_matrix(X), labels, kernel="rbf", gamma=0.3)
    K = np.exp(-0.3 * np.square(X[:, None] - X[None]).sum(axis=2))
    np.save(tmp_path / "K.npy", K)
    stored = np.load(tmp_path / "K.npy", mmap_mode="r")
    for other in (thin, *(certify(M, labels, kernel="precomputed") for M in (K, stored))):
        assert other.objective == pytest.approx(plain.objective)
        assert other.optimum_lower == pytest.approx(plain.optimum_lower, rel=1e-3)
    assert certify(K, labels, kernel="precomputed").assumes_psd is False


def test_the_cut_of_the_neighbours_kernel_is_proved_far_beyond_its_eigenvalues():
    X, _ = make_blobs(120, centers=4, cluster_std=3.0, random_state=2)
    model = KernelKMeans(4, random_state=0).fit(X)
    found = certify(X, model)
    plain = model.certificate_
    assert found.normalized_cut == pytest.approx(plain.normalized_cut, abs=1e-9)
    assert found.normalized_cut_lower > plain.normalized_cut_lower
    assert found.normalized_cut_lower <= found.normalized_cut
    with pytest.raises(ValueError, match="not what the model was fitted to"):
        certify(X + np.arange(120)[:, None], model)


def test_ctrl_c_returns_the_best_so_far_with_a_time_limit(monkeypatch):
    X, _ = make_blobs(400, 5, centers=4, cluster_std=4.0, random_state=0)
    labels = KMeans(4, n_init=3, random_state=0).fit_predict(X)
    steps, step = iter(range(100)), Lifting.step

    def tired(self):
        if next(steps) == 45:
            raise KeyboardInterrupt
        step(self)

    monkeypatch.setattr(Lifting, "step", tired)
    with pytest.raises(KeyboardInterrupt):  # without one, and in a fit, it raises as always
        KernelKMeans(4, kernel="rbf", certificate="lifted", random_state=0).fit(X)
    steps = iter(range(100))
    found = certify(X, labels, kernel="linear", seconds=60)
    assert found.interrupted
    assert found.level == "lifted"
    assert found.relative_gap < 0.1
    assert "This was interrupted" in str(found)


def test_a_time_limit_is_kept_and_gives_valid_bounds():
    X, _ = make_blobs(1500, 8, centers=6, cluster_std=4.0, random_state=0)
    labels = KMeans(6, n_init=2, random_state=0).fit_predict(X)
    start = time.perf_counter()
    found = certify(X, labels, kernel="rbf", seconds=2)
    assert time.perf_counter() - start < 12  # a quiet machine takes little more than two
    assert found.optimum_lower <= found.objective_upper


def test_a_memory_limit_is_kept_or_refused_with_the_way_out():
    X, _ = make_blobs(1200, random_state=0)
    labels = np.arange(1200) % 3
    with pytest.raises(MemoryError, match=r"blocks of 1,200 samples need .* lower block_size"):
        certify(X, labels, kernel="rbf", memory_limit="30MB", effort="lifted")
    found = certify(X, labels, kernel="rbf", memory_limit="50MB", effort="lifted", block_size=100)
    assert found.n_blocks == 12


@pytest.mark.parametrize("level", ["lifted", "triangles"])
def test_a_block_takes_no_more_memory_than_is_reckoned(level):
    n = 250
    X, _ = make_blobs(n, 5, centers=4, cluster_std=4.0, random_state=0)
    labels = KMeans(4, n_init=1, random_state=0).fit_predict(X)
    certify(X[:50], labels[:50], kernel="rbf", effort=level)  # what is imported late
    tracemalloc.start()
    certify(X, labels, kernel="rbf", effort=level)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.1 * block_bytes(n, level) < peak < block_bytes(n, level)


def test_levels_are_in_order():
    assert proving.LEVELS == ("free", "blocks", "lifted", "triangles")
    X, _ = make_blobs(200, 5, centers=4, cluster_std=4.0, random_state=0)
    labels = KMeans(4, n_init=5, random_state=0).fit_predict(X)
    found = [certify(X, labels, kernel="rbf", effort=effort) for effort in proving.LEVELS]
    assert [one.level for one in found] == list(proving.LEVELS)
    values = [one.optimum_lower for one in found]
    assert values == sorted(values)


def test_a_fit_proves_what_it_is_asked_to():
    X, _ = make_blobs(200, 5, centers=4, cluster_std=4.0, random_state=0)
    levels = {}
    for level in ("free", "blocks", "lifted", "triangles"):
        model = KernelKMeans(4, kernel="rbf", certificate=level, random_state=0).fit(X)
        levels[level] = model.certificate_
        assert model.certificate_.level == level
    gaps = [found.relative_gap for found in levels.values()]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 0.01
    assert levels["lifted"].gap_bound == levels["free"].gap_bound
    none = KernelKMeans(4, kernel="rbf", certificate=None, random_state=0).fit(X).certificate_
    assert none.objective_upper is None
    assert "None was asked for" in str(none)


def test_labels_that_the_proof_leads_to_are_taken_where_they_are_better(seeds):
    """From a single start of one iteration, K-means ends badly as a rule."""
    X, _ = make_blobs(240, 2, centers=8, cluster_std=0.6, random_state=3)
    options = {"kernel": "rbf", "gamma": 0.05, "n_init": 1, "max_iter": 1, "n_refine": 0}
    improved = 0
    for seed in (*range(4), *seeds(2)):
        plain = KernelKMeans(8, random_state=seed, **options).fit(X)
        proved = KernelKMeans(8, random_state=seed, certificate="lifted", **options).fit(X)
        before = certify(X, plain, effort="lifted")
        assert proved.certificate_.objective <= before.objective * (1 + 1e-12)
        K = np.exp(-0.05 * np.square(X[:, None] - X[None]).sum(axis=2))
        assert proved.certificate_.objective == pytest.approx(objective(K, proved.labels_))
        np.testing.assert_array_equal(proved.predict(X), proved.labels_)
        improved += seed < 4 and proved.certificate_.objective < 0.999 * before.objective
    assert improved >= 2  # of the four that are the same in every draw


def test_starts_end_once_the_proof_is_near_enough():
    X, _ = make_blobs(150, 3, centers=3, cluster_std=0.5, random_state=0)
    options = {"kernel": "rbf", "n_init": 7, "random_state": 0, "certificate": "triangles"}
    near = KernelKMeans(3, tol_certified=0.01, **options).fit(X)
    assert near.certificate_.relative_gap <= 0.01
    assert near.stats_["starts"] == 1
    strict = KernelKMeans(3, tol_certified=1e-12, **options).fit(X)
    assert strict.stats_["starts"] == 7
    assert strict.certificate_.objective == pytest.approx(near.certificate_.objective)
    with pytest.raises(ValueError, match=r"tol_certified=0\.1 needs a proof"):
        KernelKMeans(3, tol_certified=0.1).fit(X)
    with pytest.raises(ValueError, match="certificate='lift' is not known"):
        KernelKMeans(3, certificate="lift").fit(X)


def test_the_best_possible_is_bounded_once_and_starts_end_as_soon_as_one_is_near(monkeypatch):
    """Bad starts come first here: single iterations of K-means from one center each."""
    from sketchmeans.estimators import proofs

    bounds = []
    proven = proofs.proven_certificate

    def counted(*args):
        bounds.append(args)
        return proven(*args)

    monkeypatch.setattr(proofs, "proven_certificate", counted)
    monkeypatch.setattr(proofs, "rounded", lambda *args: None)  # it would mend the first start
    X, _ = make_blobs(240, 2, centers=8, cluster_std=0.3, random_state=3)
    options = {"kernel": "rbf", "gamma": 0.05, "max_iter": 2, "n_refine": 0, "n_init": 30}
    options |= {"certificate": "lifted", "random_state": 1}
    made = {}
    for tolerance in (0.05, 1.0):
        model = KernelKMeans(8, tol_certified=tolerance, **options).fit(X)
        assert model.certificate_.relative_gap <= tolerance
        made[tolerance] = model.stats_["starts"]
    assert made[1.0] == 1 < made[0.05] < 30
    assert len(bounds) == 2


def test_beyond_one_block_looks_are_fewer_and_a_block_gives_a_start(monkeypatch):
    for name in ("proven.ONE_BLOCK", "blockwise.ONE_BLOCK"):
        monkeypatch.setattr(f"sketchmeans.certificate.{name}", 150)
    monkeypatch.setattr("sketchmeans.certificate.blockwise.BLOCK_SIZE", 120)
    monkeypatch.setattr("sketchmeans.estimators.proofs.ONE_BLOCK", 150)
    X, _ = make_blobs(240, 2, centers=8, cluster_std=0.6, random_state=3)
    weights = np.random.default_rng(0).integers(0, 3, 240)
    options = {"kernel": "rbf", "gamma": 0.05, "n_init": 1, "max_iter": 1, "n_refine": 0}
    improved = 0
    for seed in range(3):
        plain = KernelKMeans(8, random_state=seed, **options).fit(X, sample_weight=weights)
        before = certify(X, plain, sample_weight=weights, effort="blocks").objective
        proved = KernelKMeans(8, random_state=seed, certificate="lifted", **options)
        found = proved.fit(X, sample_weight=weights).certificate_
        assert found.n_blocks == 2
        assert found.objective <= before * (1 + 1e-12)
        K = np.exp(-0.05 * np.square(X[:, None] - X[None]).sum(axis=2))
        assert found.objective == pytest.approx(objective(K, proved.labels_, weights))
        improved += found.objective < 0.999 * before
    assert improved >= 1
    several = options | {"n_init": 9, "certificate": "blocks", "tol_certified": 1e-9}
    assert KernelKMeans(8, random_state=0, **several).fit(X).stats_["starts"] == 9


def test_progress_shows_the_bound_so_far(capsys):
    X, _ = make_blobs(60, random_state=0)
    certify(X, np.arange(60) % 3, kernel="rbf", effort="lifted", verbose=1)
    assert "proof: done" in capsys.readouterr().err


def test_where_time_is_short_blocks_are_drawn_if_that_is_allowed(monkeypatch):
    from sketchmeans.certificate import proven

    X, _ = make_blobs(4000, 6, centers=5, cluster_std=3.0, random_state=0)
    labels = KMeans(5, n_init=2, random_state=0).fit_predict(X)
    monkeypatch.setattr(proven, "SMALL_BLOCKS", 10**9)  # whatever the time, it is too short
    monkeypatch.setattr(proven, "DRAWN_SIZE", 200)
    options = {"kernel": "rbf", "gamma": 0.02, "effort": "blocks", "random_state": 0}
    drawn = certify(X, labels, seconds=3, failure_probability=0.1, **options)
    assert drawn.n_blocks > 1
    assert drawn.block_size == 200
    assert 0 < drawn.optimum_lower_probabilistic <= drawn.objective_upper
    assert drawn.relative_gap_probabilistic < 1
    assert "except with probability 0.1" in str(drawn)
    never = certify(X, labels, seconds=3, **options)
    assert never.relative_gap_probabilistic is None
    assert never.level == "blocks"
