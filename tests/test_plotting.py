"""Plots: what is drawn is the data, and matplotlib is imported only where something is drawn."""

import itertools
import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_moons

from oracles import certificate_of
from sketchmeans import FullKernelKMeans, KernelEmbedding, KernelKMeans, compare
from sketchmeans.advice.plain import plain_kmeans
from sketchmeans.certificate import Certificate
from sketchmeans.certificate.intervals import intervals, verdict
from sketchmeans.datasets import make_rings
from sketchmeans.estimators.sketched import embed
from sketchmeans.plotting import (
    CertificateDisplay,
    ComparisonDisplay,
    EmbeddingDisplay,
    SpectrumDisplay,
)
from sketchmeans.plotting.comparison import MEASURES
from sketchmeans.plotting.palette import CLUSTER_COLOURS, COLOURS, best_axes, colour_and_mark

mpl.use("agg")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(240, 5, centers=4, random_state=1)


@pytest.fixture(scope="module")
def model(blobs):
    return KernelKMeans(4, kernel="rbf", n_passes=2, random_state=0).fit(blobs[0])


def offsets(display):
    return np.concatenate([scatter.get_offsets() for scatter in display.scatters_])


def test_points_are_drawn_where_the_embedding_has_them(model):
    display = EmbeddingDisplay.from_estimator(model, axes=(1, 2))
    assert len(display.scatters_) == 4
    for cluster, scatter in enumerate(display.scatters_):
        inside = model.labels_ == cluster
        np.testing.assert_array_equal(scatter.get_offsets(), model.embedding_[inside][:, [1, 2]])
        assert mpl.colors.same_color(scatter.get_facecolor()[0], COLOURS[cluster])
    texts = [text.get_text() for text in display.legend_.get_texts()]
    assert texts == [f"{k}  ({np.sum(model.labels_ == k)})" for k in range(4)]
    assert display.ax_.get_xlabel() == "embedding, column 1"
    assert display.ax_.get_ylabel() == "embedding, column 2"
    assert display.ax_.get_title() == "240 samples in 4 clusters"


def test_auto_axes_are_those_in_which_clusters_differ_most():
    labels = np.repeat([0, 1], 50)
    Y = np.random.default_rng(0).normal(size=(100, 4)) * [9, 0.1, 0.1, 1]
    Y[:, 2] += labels * 3  # apart, and by far
    Y[:, 0] -= np.where(labels, Y[50:, 0].mean(), Y[:50, 0].mean())  # wide, but not apart
    assert best_axes(Y, labels, 1) == [2]
    assert best_axes(Y, None, 2) == [0, 2]
    display = EmbeddingDisplay(Y, labels).plot()
    assert display.ax_.get_xlabel() == "embedding, column 2"


def test_new_points_are_embedded_and_assigned(model, blobs):
    X = blobs[0][:50] + 0.1
    display = EmbeddingDisplay.from_estimator(model, X, axes=(0, 3))
    labels, Y = model.predict(X), model.transform(X)
    expected = np.concatenate([Y[labels == k][:, [0, 3]] for k in np.unique(labels)])
    np.testing.assert_array_equal(offsets(display), expected)


def test_full_kernel_k_means_is_shown_by_an_embedding_of_its_own_kernel(blobs):
    X = blobs[0]
    full = FullKernelKMeans(4, n_init=2, random_state=0).fit(X)
    with pytest.raises(ValueError, match=r"works without an embedding.*training samples as X"):
        EmbeddingDisplay.from_estimator(full)
    with pytest.raises(ValueError, match="X has 7 rows, but the model was fitted to 240 samples"):
        EmbeddingDisplay.from_estimator(full, X[:7])
    own = KernelEmbedding(14, gamma=full.gamma_, random_state=0).fit(X)
    display = EmbeddingDisplay.from_estimator(full, X, axes=(1, 2))
    expected = [own.embedding_[full.labels_ == k][:, [1, 2]] for k in range(4)]
    np.testing.assert_array_equal(offsets(display), np.concatenate(expected))
    spectrum = SpectrumDisplay.from_estimator(full, X)
    np.testing.assert_array_equal(spectrum.kept_.get_ydata(), own.eigenvalues_)


def test_of_many_samples_a_seeded_choice_is_drawn_and_the_title_says_so(model):
    one, same, other = (
        EmbeddingDisplay.from_estimator(model, max_points=60, random_state=seed, axes=(0, 1))
        for seed in (0, 0, 1)
    )
    assert one.ax_.get_title() == "240 samples in 4 clusters; 60 of them drawn"
    assert len(offsets(one)) == 60
    np.testing.assert_array_equal(offsets(one), offsets(same))
    assert not np.array_equal(one.embedding, other.embedding)
    rows = {tuple(row) for row in model.embedding_[:, :2]}
    assert all(tuple(row) in rows for row in offsets(one).data)
    # The legend counts all samples.
    sizes = [text.get_text().split("(")[1] for text in one.legend_.get_texts()]
    assert sum(int(size.rstrip(")")) for size in sizes) == 240


def test_thirty_clusters_differ_in_colour_or_mark():
    assert len({colour_and_mark(cluster) for cluster in range(64)}) == 64
    X, _ = make_blobs(600, 6, centers=30, random_state=0)
    display = EmbeddingDisplay.from_estimator(KernelKMeans(30, random_state=0).fit(X))
    looks = {
        (tuple(s.get_facecolor()[0]), s.get_paths()[0].vertices.tobytes())
        for s in display.scatters_
    }
    assert len(looks) == 30
    display.figure_.canvas.draw()
    legend = display.legend_.get_window_extent()
    assert legend.y0 >= 0
    assert legend.x1 <= display.figure_.bbox.x1
    boxes = [text.get_window_extent() for text in display.legend_.get_texts()]
    assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))


def test_more_clusters_than_can_be_told_apart_have_no_legend_and_the_title_says_why():
    Y = np.random.default_rng(0).normal(size=(200, 2))
    display = EmbeddingDisplay(Y, np.arange(200) % 65).plot()
    assert display.legend_ is None
    assert display.ax_.get_title().endswith("65 clusters; colours and marks repeat")


def test_an_embedding_of_one_column_is_a_strip_a_cluster(blobs):
    model = KernelKMeans(3, kernel="rbf", rank=1, random_state=0).fit(blobs[0])
    display = EmbeddingDisplay.from_estimator(model)
    for cluster, scatter in enumerate(display.scatters_):
        places = scatter.get_offsets()
        inside = model.embedding_[model.labels_ == cluster]
        np.testing.assert_array_equal(places[:, 0], inside[:, 0])
        assert np.abs(places[:, 1] - cluster).max() < 0.31
    assert display.ax_.get_ylabel() == "cluster"


def test_an_embedding_without_clusters_is_drawn_in_one_colour(blobs):
    model = KernelEmbedding(3, random_state=0).fit(blobs[0])
    display = EmbeddingDisplay.from_estimator(model, axes=(0, 1))
    assert len(display.scatters_) == 1
    assert display.legend_ is None
    assert display.ax_.get_title() == "240 samples"
    np.testing.assert_array_equal(offsets(display), model.embedding_[:, :2])


@pytest.mark.parametrize("axes", [(0, 14), (0,), (-1, 0), "first"])
def test_columns_that_are_not_there_are_refused(model, axes):
    with pytest.raises(ValueError, match=r"axes=.*(from 0 to 13|give two columns)"):
        EmbeddingDisplay(model.embedding_, model.labels_, axes=axes).plot()


def test_the_spectrum_shows_every_eigenvalue_and_the_rank(model):
    display = SpectrumDisplay.from_estimator(model)
    np.testing.assert_array_equal(display.kept_.get_ydata(), model.eigenvalues_)
    np.testing.assert_array_equal(display.kept_.get_xdata(), np.arange(1, 15))
    # Width 28: the sketch sees 14 more, and they go on falling.
    further = display.beyond_.get_ydata()
    assert len(further) == 14
    assert np.all(np.diff(np.concatenate([model.eigenvalues_, further])) <= 0)
    assert list(display.rank_line_.get_xdata()) == [14.5, 14.5]
    share = model.eigenvalues_.sum() / 240  # rbf: the trace is n
    assert f"rank 14: {share:.1%} of the trace" in display.ax_.get_title()


def test_a_spectrum_with_zeros_or_of_zeros_can_be_drawn():
    display = SpectrumDisplay(np.array([2.0, 1.0, 0.0]), trace=3.0).plot()
    np.testing.assert_array_equal(display.kept_.get_ydata(), [2.0, 1.0, np.nan])
    assert display.ax_.get_yscale() == "log"
    nothing = SpectrumDisplay(np.zeros(1), trace=0.0).plot()
    np.testing.assert_array_equal(nothing.kept_.get_ydata(), [0.0])
    nothing.figure_.canvas.draw()


def test_the_certificate_is_drawn_as_its_intervals(model):
    display = CertificateDisplay.from_estimator(model)
    known = model.certificate_
    found, best = (line.get_xdata() for line in display.lines_)
    low = max(known.objective_lower, known.optimum_lower)
    assert list(found) == [low, known.objective_upper]
    assert list(best) == [known.optimum_lower, known.objective_upper]
    title = display.ax_.get_title(loc="left").replace("\n", " ")
    assert f"{known.relative_gap:.1%} above the least" in title


def test_beside_the_objective_found_stands_that_of_plain_k_means_under_the_kernel(model, blobs):
    X = blobs[0]
    display = CertificateDisplay.from_estimator(model, X)
    assert [one.name for one in display.intervals_] == ["found", "plain K-means", "best possible"]
    labels = plain_kmeans(model, X).labels
    K = np.exp(-model.gamma_ * np.square(X[:, None] - X[None]).sum(axis=2))
    within = sum(K[np.ix_(labels == k, labels == k)].sum() / np.sum(labels == k) for k in range(4))
    found, plain, best = (list(line.get_xdata()) for line in display.lines_)
    np.testing.assert_allclose(plain, [240 - within] * 2)
    assert best == [model.certificate_.optimum_lower, min(found[1], plain[1])]
    assert intervals(model.certificate_, 1e9, at_most=True)[1].told == "at most 1e+09"


def test_an_exact_objective_is_a_point(blobs):
    X = blobs[0]
    model = KernelKMeans(4, kernel="rbf", random_state=0)
    embedded = embed(model, X)
    labels = np.arange(240) % 4
    certificate = certificate_of(
        embedded.operator, labels, embedded.low_rank, exact=True, failure_probability=0.01
    )
    found, best = intervals(certificate)
    assert found.low == found.high == certificate.objective
    assert (best.low, best.high) == (certificate.optimum_lower, certificate.objective)
    assert CertificateDisplay(certificate).plot().lines_[0].get_marker() == "o"


@pytest.fixture(scope="module")
def moons():
    X, _ = make_moons(400, noise=0.08, random_state=0)
    return X, KernelKMeans(2, kernel="neighbors", random_state=0).fit(X)


def test_a_cut_is_drawn_on_a_line_from_nothing_to_labels_at_random(moons):
    X, two = moons
    four = KernelKMeans(4, kernel="neighbors", random_state=0).fit(X)
    for model, chance in ((two, 1), (four, 3)):
        known = model.certificate_
        display = CertificateDisplay.from_estimator(model)
        found, best, random = (list(line.get_xdata()) for line in display.lines_)
        assert found == [known.normalized_cut] * 2
        assert best == [known.normalized_cut_lower, known.normalized_cut]
        assert random == [chance] * 2
        low, high = display.ax_.get_xlim()
        assert -0.03 * chance < low < 0
        assert chance < high < 1.03 * chance
        assert display.ax_.get_xlabel() == "normalized cut"
        names = [label.get_text().replace("\n", " ") for label in display.ax_.get_yticklabels()]
        assert names == [
            f"found: {known.normalized_cut:.6g}",
            f"best possible: at least {known.normalized_cut_lower:.6g}",
            f"labels at random: {chance}",
        ]
        words = display.ax_.get_title(loc="left").replace("\n", " ")
        assert words == verdict(known)
        assert f"{known.normalized_cut / chance:.2%} of what labels at random have" in words
        display.figure_.canvas.draw()
        assert display.ax_.get_tightbbox().x1 <= display.figure_.bbox.x1  # the title, too


def test_clusters_that_share_no_neighbour_cut_nothing(blobs):
    model = KernelKMeans(4, kernel="neighbors", random_state=0).fit(blobs[0])
    found, best, _ = intervals(model.certificate_)
    assert (found.low, found.high, best.low, best.high) == (0, 0, 0, 0)
    assert [found.words, best.words] == ["found: 0", "best possible: at least 0"]
    assert verdict(model.certificate_).startswith("No two clusters share a neighbour")
    one = KernelKMeans(1, kernel="neighbors", random_state=0).fit(blobs[0])
    display = CertificateDisplay.from_estimator(one)
    assert display.lines_ == []
    assert display.ax_.get_title(loc="left") == (
        "All samples are in one cluster: no other labels are\npossible."
    )


def test_the_spectrum_of_neighbours_is_exact_and_linear(moons):
    X, model = moons
    display = SpectrumDisplay.from_estimator(model)
    assert display.ax_.get_yscale() == "linear"
    further = display.beyond_.get_ydata()
    assert len(further) == 20
    exact = KernelKMeans(22, kernel="neighbors", random_state=0).fit(X).eigenvalues_
    np.testing.assert_allclose(np.append(display.kept_.get_ydata(), further), exact, atol=1e-12)
    title = f"Spectrum of the kernel: eigenvalue 2 is {exact[1]:.4f}, the next {exact[2]:.4f}"
    assert display.ax_.get_title() == title
    assert display.beyond_.get_label() == "beyond the rank"
    alone = KernelEmbedding(3, kernel="neighbors", random_state=0).fit(X)
    assert SpectrumDisplay.from_estimator(alone).ax_.get_yscale() == "linear"


def test_two_clusters_of_neighbours_are_strips_for_the_first_column_is_constant(moons):
    X, model = moons
    for display in (
        EmbeddingDisplay.from_estimator(model),
        EmbeddingDisplay.from_estimator(model, X),
        EmbeddingDisplay.from_estimator(model, max_points=100),
        EmbeddingDisplay(model.embedding_, model.labels_).plot(),
    ):
        assert display.ax_.get_xlabel() == "embedding, column 1"
        assert display.ax_.get_ylabel() == "cluster"
    both = EmbeddingDisplay.from_estimator(model, axes=(0, 1))
    assert both.ax_.get_ylabel() == "embedding, column 1"


def test_there_are_no_methods_to_compare_with_neighbours(moons):
    X, model = moons
    with pytest.raises(ValueError, match="nothing to compare"):
        ComparisonDisplay.from_estimator(model, X, n_seeds=1)


def test_where_there_is_no_bound_the_reason_is_drawn():
    certificate = Certificate(3, 1.0, 0.1, reason="Negative eigenvalues were seen.")
    display = CertificateDisplay(certificate).plot()
    assert display.lines_ == []
    assert display.ax_.get_title(loc="left") == "No bound. Negative eigenvalues were seen."
    useless = Certificate(
        3, 1.0, 0.1, None, 0.2, 0.3, None, 0.01, 29.0, reason="The spectrum falls too fast."
    )
    assert verdict(useless).startswith("No useful bound on the distance to the best. The spectrum")


def test_an_estimator_without_a_certificate_is_refused(blobs):
    with pytest.raises(ValueError, match="KernelEmbedding has no certificate: it does not cluster"):
        CertificateDisplay.from_estimator(KernelEmbedding(3).fit(blobs[0]))


def test_bars_are_the_column_of_the_table_and_the_best_is_dark(blobs):
    X, y = blobs
    table = compare(X, 4, y=y, variants=["exact", "one-pass", "nystrom"], n_seeds=1, random_state=0)
    for measure in MEASURES.keys() - {"neighbor agreement"}:  # of several kernels
        display = ComparisonDisplay.from_table(table, measure=measure)
        widths = [bar.get_width() for bar in display.bars_]
        assert widths == table[measure]
        best = max(widths) if measure in ("accuracy", "ARI", "NMI") else min(widths)
        dark = [mpl.colors.same_color(bar.get_facecolor(), COLOURS[0]) for bar in display.bars_]
        assert dark == [width == best for width in widths]
        names = [label.get_text() for label in display.ax_.get_yticklabels()]
        assert names == table["method"]
    with pytest.raises(ValueError, match=r"measure='speed' is not in this table. It has: above"):
        ComparisonDisplay.from_table(table, measure="speed")


def test_a_comparison_from_an_estimator_takes_its_kernel_and_width(model, blobs):
    display = ComparisonDisplay.from_estimator(
        model, blobs[0], variants=["one-pass", "nystrom"], n_seeds=1, measure="trace error"
    )
    same = compare(
        blobs[0], 4, gamma=model.gamma_, rank=14, width=28, variants=["one-pass", "nystrom"],
        n_seeds=1, random_state=0,
    )  # fmt: skip
    assert [bar.get_width() for bar in display.bars_] == same["trace error"]


def test_displays_draw_on_the_axes_that_are_given(model, blobs):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3)
    for display, ax in zip(
        [EmbeddingDisplay, SpectrumDisplay, CertificateDisplay], axes, strict=True
    ):
        drawn = display.from_estimator(model, ax=ax)
        assert drawn.ax_ is ax
        assert drawn.figure_ is figure


@pytest.mark.parametrize("refine", [0, 1])
def test_scikit_learns_decision_boundaries_are_our_predictions(refine):
    from sklearn.inspection import DecisionBoundaryDisplay

    X, _ = make_rings(1000, random_state=0)
    model = KernelKMeans(
        2, kernel="polynomial", degree=2, coef0=0, rank=2, n_refine=refine, random_state=0
    ).fit(X)
    display = DecisionBoundaryDisplay.from_estimator(
        model, X, response_method="predict", grid_resolution=30
    )
    grid = np.column_stack([display.xx0.ravel(), display.xx1.ravel()])
    np.testing.assert_array_equal(display.response.ravel(), model.predict(grid))
    radius = np.linalg.norm(grid, axis=1)
    inner, outer = model.predict([[0.0, 0.1], [0.0, 1.2]])
    assert inner != outer  # rings, not halves
    assert (display.response.ravel()[radius < 0.3] == inner).all()


@pytest.mark.parametrize("module", ["sketchmeans", "sketchmeans.plotting"])
def test_importing_plots_does_not_import_matplotlib(module):
    code = f"import sys, {module}; print('matplotlib' in sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "False"


def test_without_matplotlib_the_error_names_the_extra():
    code = (
        "import sys; sys.modules['matplotlib'] = sys.modules['matplotlib.pyplot'] = None\n"
        "import numpy as np\n"
        "from sketchmeans.plotting import SpectrumDisplay\n"
        "try: SpectrumDisplay(np.ones(2)).plot()\n"
        "except ImportError as error: print(error)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert 'pip install "sketchmeans[plots]"' in result.stdout


# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB.
SIGHT = {
    "normal": np.eye(3),
    "no red cones": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "no green cones": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "no blue cones": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


def lab(colour, sight):
    """CIE Lab of a colour as somebody sees it."""
    seen = np.array(mpl.colors.to_rgb(colour))
    linear = np.where(seen <= 0.04045, seen / 12.92, ((seen + 0.055) / 1.055) ** 2.4)
    linear = np.clip(np.array(sight) @ linear, 0, 1)
    to_xyz = [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
    t = np.array(to_xyz) @ linear / [0.95047, 1, 1.08883]
    f = np.where(t > 0.008856, np.cbrt(t), 7.787 * t + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("sight", SIGHT)
def test_any_two_colours_differ_for_readers_who_lack_a_kind_of_cone(sight):
    for first in (0, 8, 16):  # clusters after the first eight have another mark as well
        eight = CLUSTER_COLOURS[first : first + 8]
        seen = [lab(colour, SIGHT[sight]) for colour in eight]
        apart = [np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)]
        assert len(apart) == 28
        assert min(apart) > 15  # 2.3 is the least that is noticed side by side


def test_twenty_four_clusters_have_a_colour_each_and_no_two_are_near():
    assert [colour_and_mark(cluster)[0] for cluster in range(24)] == list(range(24))
    seen = [lab(colour, SIGHT["normal"]) for colour in CLUSTER_COLOURS]
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)) > 20
