import numpy as np
import pytest

from sketchmeans import ColumnStream, KernelEmbedding, KernelKMeans


@pytest.fixture
def K():
    X = np.random.default_rng(3).normal(size=(400, 3))
    return np.exp(-0.2 * np.square(X[:, None] - X[None]).sum(axis=2))


def pushed(K, width=40, batch=70, order=1, **options):
    stream = ColumnStream(len(K), width=width, random_state=0, **options)
    for start in list(range(0, len(K), batch))[::order]:
        stream.add_columns(start, K[:, start : start + batch])
    return stream


@pytest.mark.parametrize("sketch", ["auto", "gaussian", "rademacher", "sparse"])
@pytest.mark.parametrize("order", [1, -1])
def test_a_stream_embeds_what_the_matrix_embeds(K, sketch, order):
    model = KernelEmbedding(rank=10).fit(pushed(K, sketch=sketch, order=order))
    Y = model.embedding_
    values = np.linalg.eigvalsh(K)
    best = np.sqrt(np.square(values[:-10]).sum())
    assert np.linalg.norm(K - Y @ Y.T) < 1.5 * best
    assert model.width_ == 40
    assert model.stats_["passes"] == 1
    assert model.stats_["kernel_entries"] == K.size
    assert model.n_features_in_ == 400


def test_batches_of_any_size_give_the_same_embedding(K):
    one = KernelEmbedding(rank=10).fit(pushed(K, batch=400)).embedding_
    other = KernelEmbedding(rank=10).fit(pushed(K, batch=1)).embedding_
    np.testing.assert_allclose(one @ one.T, other @ other.T, atol=1e-9)


def test_float32_columns_give_a_float32_embedding_of_measured_error(K):
    model = KernelEmbedding(rank=10).fit(pushed(K.astype(np.float32), width=100))
    assert model.embedding_.dtype == np.float32
    assert 4e-7 < model.stats_["eta"] < 1e-5


def test_a_stream_can_be_clustered_and_new_points_predicted(K):
    model = KernelKMeans(3, random_state=0).fit(pushed(K))
    np.testing.assert_array_equal(model.predict(K), model.labels_)
    np.testing.assert_allclose(model.transform(K), model.embedding_, atol=1e-8)
    np.testing.assert_allclose(model.score(K), -model.inertia_, rtol=1e-8)


def test_a_stream_can_be_fitted_twice(K):
    stream = pushed(K)
    one = KernelEmbedding(rank=5).fit(stream).embedding_
    np.testing.assert_array_equal(KernelEmbedding(rank=5).fit(stream).embedding_, one)


def test_a_fraction_of_the_trace_is_taken_from_the_width(K):
    model = KernelEmbedding(rank=0.9).fit(pushed(K, width=120))
    held = np.cumsum(model.eigenvalues_) / np.trace(K)
    assert held[-2] < 0.9 <= held[-1]
    with pytest.raises(ValueError, match=r"rank=0.999.*stream's 6 columns hold"):
        KernelEmbedding(rank=0.999).fit(pushed(K, width=6))


def test_what_is_wrong_with_a_block_is_said_and_leaves_the_stream_as_it_was(K):
    stream = ColumnStream(400, width=10, random_state=0)
    stream.add_columns(0, K[:, :100])
    bad = K[:, 100:110].copy()
    bad[3, 4] = np.nan
    negative = K[:, 100:110].copy()
    negative[104, 4] = -1
    for start, block, message in [
        (100, K[:50, :10], r"shape \(400, m\), not \(50, 10\)"),
        (100, K[:, 0], r"shape \(400, m\)"),
        (395, K[:, :10], "columns 395:405 do not lie within 0:400"),
        (-1, K[:, :10], "do not lie within"),
        (95, K[:, 95:105], "column 95 came twice"),
        (100, bad, "gave NaN among rows 0:400 and columns 100:110"),
        (100, negative, r"K\[104, 104\] = -1 is negative"),
        (100, K[:, 100:110].astype(complex), "real numbers"),
    ]:
        with pytest.raises(ValueError, match=message):
            stream.add_columns(start, block)
        assert stream.n_seen == 100
    with pytest.raises(ValueError, match=r"300 of 400 columns have not been pushed.*first: 100"):
        KernelEmbedding(rank=3).fit(stream)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_passes": 2}, "n_passes=2 is not read with a ColumnStream"),
        ({"gamma": 2.0}, "gamma=2.0 is not read"),
        ({"kernel": "laplacian"}, "kernel='laplacian' is not read"),
        ({"sketch": "gaussian"}, "sketch='gaussian' is not read"),
        ({"precision": "float32"}, "precision='float32' is not read"),
        ({"rank": 41}, "at least 41 columns, but the stream has width=40"),
        ({"rank": 30, "oversampling": 20}, "at least 50 columns"),
    ],
)
def test_options_that_a_stream_cannot_honour_are_refused(K, options, message):
    with pytest.raises(ValueError, match=message):
        KernelEmbedding(**options).fit(pushed(K))


def test_refinement_and_weights_are_refused_with_a_stream(K):
    with pytest.raises(ValueError, match="n_refine=1 needs more passes"):
        KernelKMeans(3, n_refine=1).fit(pushed(K))
    with pytest.raises(ValueError, match="sample_weight cannot be used with a ColumnStream"):
        KernelKMeans(3).fit(pushed(K), sample_weight=np.ones(400))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_samples": 0}, "n_samples=0"),
        ({"width": 0}, "width=0"),
        ({"width": 0}, "too small"),
        ({"sketch": "fourier"}, "sketch='fourier' is not known.*'hadamard'"),
    ],
)
def test_a_stream_refuses_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        ColumnStream(**{"n_samples": 10, **options})
