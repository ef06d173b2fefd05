"""Names of kernels, methods, metrics: other names for the same, and the nearest to a wrong one."""

import numpy as np
import pytest
from sklearn.datasets import make_moons

import shell
from sketchmeans import FullKernelKMeans, KernelEmbedding, KernelKMeans, choose, load, save
from sketchmeans.kernels import ALIASES, kernel_class

X = make_moons(200, noise=0.05, random_state=0)[0]


def test_gaussian_is_understood_as_rbf():
    assert ALIASES["gaussian"] == "rbf"
    assert kernel_class("gaussian") is kernel_class("rbf")


@pytest.mark.parametrize("alias", ALIASES)
@pytest.mark.parametrize("cls", [KernelKMeans, FullKernelKMeans])
def test_a_kernel_by_its_other_name_gives_the_same_bits_also_from_a_file(alias, cls, tmp_path):
    ours, known = (cls(2, kernel=name, random_state=0).fit(X) for name in (alias, ALIASES[alias]))
    np.testing.assert_array_equal(ours.labels_, known.labels_)
    assert (ours.inertia_, ours.gamma_) == (known.inertia_, known.gamma_)
    save(ours, tmp_path / "model.skm")
    again = load(tmp_path / "model.skm")
    assert again.kernel == alias  # as it was given
    np.testing.assert_array_equal(again.predict(X), known.predict(X))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": "gausian"}, r"kernel='gausian' is not known. Did you mean 'gaussian'\? Known"),
        ({"kernel": "RBF"}, r"kernel='RBF' is not known. Did you mean 'rbf'\? Known values of "),
        ({"kernel": "neighbours"}, r"is not known. Did you mean 'neighbors'\?"),
        ({"kernel": "polinomial"}, r"is not known. Did you mean 'polynomial'\?"),
        ({"kernel": "xyz"}, r"kernel='xyz' is not known. Known values of kernel: 'linear', "),
        ({"kernel": 3}, r"kernel=3 is not known. Known values of kernel: 'linear', "),
        ({"kernel": "rbf", "method": "nystroem"}, r"Did you mean 'nystrom'\? Known values of meth"),
        ({"kernel": "rbf", "sketch": "k-means"}, r"Did you mean 'kmeans'\?"),
        ({"kernel": "rbf", "precision": "float"}, r"Did you mean 'float(32|64)'\?"),
        ({"kernel_params": {"metric": "cosin"}}, r"Did you mean 'cosine'\?"),
    ],
    ids=str,
)
def test_a_wrong_name_is_answered_with_the_nearest(options, message):
    for estimator in (KernelKMeans(2), KernelEmbedding(2, kernel="neighbors")):
        with pytest.raises(ValueError, match=message):
            estimator.set_params(**options).fit(X)


def test_a_wrong_kernel_is_answered_by_choose_too():
    with pytest.raises(ValueError, match=r"Did you mean 'gaussian'\?"):
        choose(X, kernel="gausian", n_clusters=[2])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--kernel gausian", "'sigmoid', 'precomputed'. Did you mean 'gaussian'?"),
        ("--kernel neighbours", "Did you mean 'neighbors'?"),
        ("--kernel rbf --method nystroem", "'exact'. Did you mean 'nystrom'?"),
        ("--metric Cosine", "Did you mean 'cosine'?"),
        ("--format cvs", "Did you mean 'csv'?"),
        ("--kernel xyz", "'precomputed'.\n"),
    ],
)
def test_the_command_line_suggests_the_nearest_name(arguments, said, tmp_path):
    result = shell.here(f"sketchmeans cluster data.csv -k 2 {arguments}", tmp_path)
    assert result.returncode == 2
    assert said in result.stderr
    assert ("Did you mean" in said) == ("Did you mean" in result.stderr)


def test_the_command_line_knows_the_gaussian_kernel(tmp_path):
    np.save(tmp_path / "data.npy", X)
    shown = [
        shell.here(f"sketchmeans cluster data.npy -k 2 --kernel {name} -o -", tmp_path).stdout
        for name in ("gaussian", "rbf")
    ]
    assert shown[0] == shown[1] != ""
