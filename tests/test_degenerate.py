"""One cluster, equal rows, no width: one clear sentence each, in Python and on the command line."""

import itertools
import json
import os
import threading
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import shell
from sketchmeans import FullKernelKMeans, KernelKMeans
from sketchmeans.centers import without_warnings_of_starts
from sketchmeans.kernels import ALIASES, KERNELS, kernel_class
from sketchmeans.lowrank import METHODS

EQUAL = np.full((60, 3), 2.5)
FEW = np.repeat([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], 30, axis=0)
SOME = np.random.default_rng(0).normal(size=(60, 3))

MODELS = {
    "neighbors": lambda k, **options: KernelKMeans(k, random_state=0, **options),
    **{
        f"{kernel}, {method}": lambda k, kernel=kernel, method=method, **options: KernelKMeans(
            k, kernel=kernel, method=method, random_state=0, **options
        )
        for kernel, method in itertools.product(KERNELS, ["auto", *METHODS])
    },
    **{
        f"full, {kernel}": lambda k, kernel=kernel, **options: FullKernelKMeans(
            k, kernel=kernel, random_state=0, **options
        )
        for kernel in KERNELS
    },
}
"""Every kernel with every method."""
WITH_A_WIDTH = [name for name in (*KERNELS, *ALIASES) if "gamma" in kernel_class(name).options()]
each_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)


def warned(model, X):
    """Return what a fit warned of; whether a kernel is indefinite is another matter."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", "the kernel matrix is not positive semidefinite")
        model.fit(X)
    assert all(one.filename == __file__ for one in caught)  # the line that called fit
    return [(one.category, str(one.message)) for one in caught]


@each_model
def test_equal_rows_are_one_warning(make):
    ((kind, said),) = warned(make(3), EQUAL)
    assert kind is ConvergenceWarning
    assert said.startswith("all 60 samples are equal: they are one cluster, and 3 cannot be told")


@each_model
def test_few_distinct_rows_are_one_warning(make):
    ((kind, said),) = warned(make(3), FEW)
    assert kind is ConvergenceWarning
    assert said.startswith("the 60 samples have 2 distinct rows, and n_clusters=3 was asked for:")
    assert said.endswith("Lower n_clusters.")


@each_model
def test_one_cluster_is_no_warning_and_one_sentence(make):
    for X in (SOME, EQUAL):
        model = make(1)
        assert warned(model, X) == []
        assert str(model.certificate_) == (
            "Certificate for 1 cluster: all samples are in one, and no other labels are possible."
        )


def test_samples_that_are_alike_to_a_kernel_without_rows_are_one_warning():
    K = np.kron(np.eye(2), np.ones((30, 30)))
    ((kind, said),) = warned(KernelKMeans(3, kernel="precomputed", random_state=0), K)
    assert kind is ConvergenceWarning
    assert said.startswith("n_clusters=3 was asked for, and 2 clusters found: to this kernel too")


@pytest.mark.parametrize("name", WITH_A_WIDTH)
@pytest.mark.parametrize("cls", [KernelKMeans, FullKernelKMeans])
def test_a_gamma_of_zero_is_refused_in_one_sentence(cls, name):
    for X in (SOME, EQUAL):
        with pytest.raises(ValueError, match=f"gamma=0 makes .* alike: kernel={name!r} would be"):
            cls(2, kernel=name, gamma=0).fit(X)


def test_fits_side_by_side_leave_the_filters_of_warnings_as_they_were():
    before, first, second = list(warnings.filters), threading.Event(), threading.Event()

    def other():
        with without_warnings_of_starts():
            first.set()
            second.wait(10)

    thread = threading.Thread(target=other)
    with without_warnings_of_starts():
        thread.start()
        assert first.wait(10)
    assert warnings.filters[0][:3:2] == ("ignore", ConvergenceWarning)  # the other is at work
    second.set()
    thread.join()
    assert warnings.filters == before


@pytest.fixture
def folder(tmp_path):
    for name, X in {"equal": EQUAL, "few": FEW, "some": SOME}.items():
        np.savetxt(tmp_path / f"{name}.csv", X, delimiter=",", header="a,b,c", comments="")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ("equal.csv -k 3", 0, "Warning: all 60 samples are equal: they are one cluster, and"),
        ("equal.csv -k 3 --kernel rbf --method exact", 0, "Warning: all 60 samples are equal"),
        ("few.csv -k 3 --kernel poly", 0, "Warning: the 60 samples have 2 distinct rows, and"),
        ("equal.csv -k 1", 0, ""),
        ("some.csv -k 1 --kernel laplacian", 0, ""),
        ("some.csv -k 2 --kernel gaussian --gamma 0", 1, "Error: gamma=0 makes any two samples"),
    ],
    ids=str,
)
def test_the_command_line_says_one_sentence(arguments, code, said, folder):
    result = shell.here(f"sketchmeans cluster {arguments}", folder)
    assert result.returncode == code
    lines = result.stderr.splitlines()
    assert len(lines) == bool(said)
    assert result.stderr.startswith(said)
    if "-k 1" in arguments:
        assert "all samples are in one, and no other labels are possible" in result.stdout


@pytest.mark.parametrize(
    "command",
    [
        "compare equal.csv -k 2 --seeds 2 --methods 'one-pass; exact'",
        "compare few.csv -k 3 --seeds 2 --methods 'one-pass; nystrom'",
        "choose equal.csv -k 2-4",
        "choose few.csv -k 2-4 --kernel rbf",
    ],
)
def test_commands_that_fit_often_say_it_once_at_most(command, folder):
    result = shell.here(f"sketchmeans {command}", folder)
    assert len(result.stderr.splitlines()) <= 1, result.stderr
    assert "Number of distinct clusters" not in result.stderr


@pytest.mark.parametrize("data", ["equal.csv -k 3", "few.csv -k 3", "some.csv -k 1"])
def test_a_degenerate_clustering_is_written_in_full(data, folder):
    outputs = "--json -o labels.csv --save model.skm --report report.html"
    result = shell.here(f"sketchmeans cluster {data} {outputs}", folder)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert sum(cluster["rows"] for cluster in found["clusters"]) == 60
    assert len((folder / "labels.csv").read_text().splitlines()) == 61
    again = shell.here("sketchmeans predict model.skm equal.csv -o - --quiet", folder)
    assert (again.returncode, again.stderr) == (0, "")


def test_a_child_forked_while_starts_run_has_the_warnings_that_there_were():
    before = list(warnings.filters)
    with without_warnings_of_starts():
        child = os.fork()
        if child == 0:
            with without_warnings_of_starts():
                quiet = warnings.filters != before
            os._exit(0 if quiet and warnings.filters == before else 1)
        assert os.waitpid(child, 0)[1] == 0
    assert warnings.filters == before


def test_a_cluster_without_members_gets_no_new_points():
    """Two directions for three clusters, in float32: a center is there twice, but for rounding."""
    X = 1e6 + np.array([[0.69, 0.06], [-0.25, 0.62], [-0.375, -0.625], [0.25, 1.38]])
    params = {"n_anchors": 7, "n_neighbors": 2, "n_graphs": 3, "metric": "cosine"}
    weights = [0.8070908, 1.34750902, 1.13547496, 2.31214514]
    for seed in range(690, 700):
        model = KernelKMeans(3, kernel_params=params, n_refine=0, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X.astype(np.float32), sample_weight=weights)
        assert set(model.predict(X.astype(np.float32))) <= set(model.labels_)
        np.testing.assert_array_equal(model.predict(X.astype(np.float32)), model.labels_)
