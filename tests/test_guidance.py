"""What to do next after a fit: true for the run, few lines, and commands that work."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, load_wine, make_blobs, make_circles, make_moons
from sklearn.preprocessing import StandardScaler

import shell
from sketchmeans import FullKernelKMeans, KernelKMeans
from sketchmeans.advice import guidance as module
from sketchmeans.advice.follow_up import FollowUp, without
from sketchmeans.advice.guidance import better_numbers, gaps_of, guidance
from sketchmeans.advice.plain import plain_kmeans


def same_clusters(one, other):
    """Return the share of rows in the same clusters, under the best matching."""
    table = pd.crosstab(one, other).to_numpy()
    rows, columns = linear_sum_assignment(-table)
    return table[rows, columns].sum() / len(one)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    wine = load_wine(as_frame=True)
    table = wine.data.assign(kind=wine.target_names[wine.target])
    table.to_csv(folder / "wine.csv", index=False)
    table.to_csv(folder / "my wine's.tsv", index=False, sep="\t")
    circles, ring = make_circles(600, factor=0.5, noise=0.05, random_state=0)
    pd.DataFrame(circles, columns=["x", "y"]).assign(ring=ring).to_csv(
        folder / "circles.csv", index=False
    )
    return folder


@pytest.fixture(scope="module")
def ran():
    """Commands to copy that have run: several fits lead to the same ones, on the same files."""
    return set()


def next_lines(shown):
    """Return the lines of advice at the end of what was printed."""
    before, _, after = shown.partition("\n\nWhat to do next\n")
    assert before
    lines = after.splitlines()
    assert all(line.startswith("- ") for line in lines)
    return [line.removeprefix("- ") for line in lines]


def commands(lines):
    """Return the commands to copy."""
    found = [re.fullmatch(r".*: (sketchmeans .*)", line) for line in lines]
    return [match[1] for match in found if match]


def nmi(shown):
    return float(re.search(r"NMI ([\d.]+)", shown)[1])


def test_wine_is_told_to_be_standardized_and_the_command_to_copy_mends_it(folder):
    first = shell.here("sketchmeans cluster wine.csv -k 3 --label-column kind", folder)
    lines = next_lines(first.stdout)
    assert 2 <= len(lines) <= 3
    wine = load_wine(as_frame=True).data
    widths = wine.std(ddof=0).sort_values(ascending=False)
    times, typical = round(widths.iloc[0] / widths.iloc[6], -1), widths.index[6]
    assert lines[0].startswith(f"proline is {times:.0f} × wider than {typical}: 99.8 % of the ")
    assert wine["proline"].var() / wine.var().sum() == pytest.approx(0.998, abs=5e-4)
    again = commands(lines)[0]
    assert again == "sketchmeans cluster wine.csv -k 3 --label-column kind --standardize"
    second = shell.here(again, folder)
    assert nmi(second.stdout) > nmi(first.stdout) + 0.3
    assert not any("wider" in line or "scale" in line for line in next_lines(second.stdout))


@pytest.mark.parametrize(
    "arguments",
    [
        "wine.csv -k 3 --label-column kind",
        "'my wine'\\''s.tsv' -k3 --label-column=kind --kernel rbf --gamma '2*median' --seed 1",
        "wine.csv -k 2 --columns 1-4 --kernel polynomial --degree 2 --rank 2 -o l.csv --save m.skm",
        "circles.csv -k 2 --label-column ring --kernel gaussian --report r.html -v",
        "circles.csv -k 2 --label-column ring",
        "circles.csv --clusters 3 --columns x,y --neighbors 6 --graphs 2",
        "circles.csv -k 7 --label-column ring --drop-missing",
        "circles.csv -k 1 --label-column ring",
    ],
)
def test_every_command_to_copy_runs_as_it_stands(arguments, folder, ran):
    result = shell.here(f"sketchmeans cluster {arguments}", folder)
    assert result.returncode == 0, result.stderr
    for command in commands(next_lines(result.stdout)):
        assert not re.search(r" (-o|--output|--save|--json|--force|-v)( |$)", command)
        if command not in ran:
            again = shell.here(command + " --seed 0" * ("--seed" not in command), folder)
            assert again.returncode == 0, (command, again.stderr)
            (folder / "report.html").unlink(missing_ok=True)
            ran.add(command)


def test_a_kernel_that_made_no_difference_is_told_and_the_next_command_finds_the_circles(folder):
    first = shell.here(
        "sketchmeans cluster circles.csv -k 2 --label-column ring --kernel rbf", folder
    )
    lines = next_lines(first.stdout)
    assert nmi(first.stdout) < 0.01
    assert lines[0].startswith("The kernel made no difference: ")
    again = commands(lines)[0]
    assert again == "sketchmeans cluster circles.csv -k 2 --label-column ring --kernel neighbors"
    second = shell.here(again, folder)
    assert nmi(second.stdout) == 1
    assert next_lines(second.stdout)[0].startswith(
        "The kernel made a difference: plain K-means puts "
    )


def test_what_was_found_comes_before_what_the_certificate_bounds_and_what_it_does_not(folder):
    for options, bounded in (("--kernel rbf", "the objective"), ("", "the cut")):
        command = f"sketchmeans cluster circles.csv -k 2 --label-column ring {options}"
        shown = shell.here(command, folder).stdout
        places = [
            shown.index(words)
            for words in (
                "600 rows of 2 columns in 2 clusters",
                "| cluster | rows",
                "Agreement with 'ring': accuracy ",
                f"Certificate for 2 clusters: it bounds {bounded} of this kernel, not how well "
                "kernel and number of clusters suit the data\n",
                " of these labels: ",
                "What to do next",
            )
        ]
        assert places == sorted(places)
        assert "best possible\n" not in shown
    assert "so the objective is at most" in shell.here(f"{command} --kernel rbf", folder).stdout


def test_json_has_the_same_lines_and_quiet_none(folder):
    command = "sketchmeans cluster wine.csv -k 3 --label-column kind"
    found = json.loads(shell.here(f"{command} --json", folder).stdout)
    assert found["guidance"] == next_lines(shell.here(command, folder).stdout)
    assert shell.here(f"{command} --quiet", folder).stdout == ""


def test_advice_goes_to_standard_error_where_labels_go_to_standard_output(folder):
    result = shell.here("sketchmeans cluster wine.csv -k 3 --label-column kind -o -", folder)
    assert result.stdout.splitlines()[0] == "row,cluster"
    assert "wider than" in next_lines(result.stderr)[0]


def test_data_from_standard_input_get_options_and_no_command(folder):
    result = shell.run("sketchmeans cluster - -k 3 --label-column kind < wine.csv", folder)
    lines = next_lines(result.stdout)
    assert lines[0].endswith("Unless all are in one unit, scale them: --standardize")
    assert commands(lines) == ["sketchmeans choose"]


@pytest.mark.parametrize("make", [np.asarray, pd.DataFrame, sparse.csr_matrix, list], ids=str)
def test_python_gets_names_of_python(make):
    X = load_wine().data
    lines = guidance(KernelKMeans(3, random_state=0).fit(X), make(X))
    assert lines[0].startswith("column 13 is 390 × wider than column 1: 99.8 % of the squared")
    assert lines[0].endswith("Unless all are in one unit, scale them: StandardScaler()")
    assert not any("--" in line for line in lines)
    scaled = StandardScaler().fit_transform(X)
    lines = guidance(KernelKMeans(3, random_state=0).fit(scaled), scaled)
    assert lines[-1] == ("Whether this kernel and 3 clusters suit the data: sketchmeans.choose(X)")
    assert not any("wider" in line for line in lines)


def test_the_words_of_the_issue():
    random = np.random.default_rng(0)
    age = random.normal(size=500)
    X = np.column_stack([age / age.std(), 1000 * age[::-1] / age.std()])
    model = KernelKMeans(2, random_state=0).fit(X)
    lines = guidance(
        model, X, feature_names=["age", "income"], command="sketchmeans cluster p.csv -k 2"
    )
    assert lines[0].startswith("income is 1,000 × wider than age: over 99.9 % of the squared ")
    assert lines[0].endswith(": sketchmeans cluster p.csv -k 2 --standardize")


@pytest.mark.parametrize(
    ("X", "is_told"),
    [
        (load_digits().data, False),  # pixels: some hardly vary, most do
        (make_blobs(300, 5, random_state=0)[0], False),
        (np.column_stack([make_blobs(300, 3, random_state=0)[0], np.ones(300)]), False),
        (make_blobs(300, 4, random_state=0)[0] * [100, 100, 1, 1], True),
        (make_blobs(300, 4, random_state=0)[0] * [1e200, 1, 1, 1], True),
        (make_blobs(300, 1, random_state=0)[0], False),
        (sparse.random(300, 50, density=0.05, format="csr", random_state=0) * 100, False),
    ],
    ids=["digits", "blobs", "a constant", "scales", "huge", "one column", "sparse"],
)
def test_scales_are_told_where_few_columns_drown_the_others(X, is_told):
    model = KernelKMeans(3, random_state=0).fit(X)
    assert any("wider than" in line for line in guidance(model, X)) is is_told
    assert not any("wider than" in line for line in guidance(model, X, standardized=True))


@pytest.mark.parametrize("kernel", ["neighbors", "rbf", "linear"])
def test_the_agreement_is_that_of_plain_k_means(kernel):
    X = make_moons(600, noise=0.05, random_state=0)[0]
    model = KernelKMeans(2, kernel=kernel, random_state=0).fit(X)
    share = same_clusters(KMeans(2, n_init=10, random_state=1).fit_predict(X), model.labels_)
    (line,) = [line for line in guidance(model, X) if line.startswith("The kernel made")]
    if share < 0.95:
        told = re.fullmatch(r".* a difference: plain K-means puts (\d+) % of the rows .*", line)
        assert float(told[1]) / 100 == pytest.approx(1 - share, abs=0.02)
    else:
        told = re.fullmatch(r".* no difference: (?:over )?([\d.]+) % of the rows are .*", line)
        assert float(told[1]) / 100 == pytest.approx(share, abs=0.02)
    assert guidance(model, X, plain=plain_kmeans(model, X)) == guidance(model, X)


def test_of_many_rows_some_are_looked_at_and_that_is_told():
    X = make_blobs(20_000, 3, centers=3, random_state=0)[0]
    model = KernelKMeans(3, random_state=0).fit(X)
    assert "% of 5,000 rows drawn are in the same" in guidance(model, X)[0]
    X[7, 0] += 1e-3
    alike = np.repeat(X[:1], len(X), axis=0)
    alike[-1, 0] = 8.0  # hardly ever drawn
    lines = guidance(model, alike)
    assert not any("equal" in line for line in lines)


def test_a_small_cluster_and_a_huge_one_are_told():
    X = np.concatenate(
        [make_blobs(995, 2, centers=[[0, 0]], random_state=0)[0], np.full((5, 2), 99)]
    )
    model = KernelKMeans(2, kernel="linear", random_state=0).fit(X)
    small = int(np.bincount(model.labels_).argmin())
    assert f"Cluster {small} has 5 rows, of 1,000: outliers, or more clusters than there are." in (
        guidance(model, X)
    )
    model.labels_ = (np.arange(1000) < 30).astype(np.int32)
    assert "Cluster 0 holds 97 % of the rows: the others may be outliers." in guidance(model, X)
    model.labels_ = np.arange(1000, dtype=np.int32) % 2
    assert not any("outliers" in line for line in guidance(model, X))


def test_the_number_that_the_eigenvalues_speak_for_is_told():
    X = make_blobs(900, 5, centers=5, center_box=(-30, 30), random_state=0)[0]
    command = "sketchmeans cluster b.csv -k 8 --columns 1-5"
    for k in (3, 8):
        model = KernelKMeans(k, random_state=0).fit(X)
        (line, *_) = guidance(model, X, command=command)
        assert line.startswith(f"5 clusters are better supported than {k}: behind them the eigen")
        assert line.endswith(" Try: sketchmeans cluster b.csv --columns 1-5 -k 5")
    model = KernelKMeans(5, random_state=0).fit(X)
    lines = guidance(model, X)
    assert lines[-1].startswith("Behind 5 clusters the eigenvalues have a clear gap: that number")
    assert not any("better" in line or "choose" in line for line in lines)


def test_the_gaps_are_those_of_the_eigenvalues():
    X = make_blobs(300, 5, centers=4, random_state=0)[0]
    model = KernelKMeans(3, random_state=0).fit(X)
    values = KernelKMeans(8, random_state=0).fit(X).eigenvalues_
    for number in range(2, 8):
        lacking = np.maximum(1 - values[number - 1 : number + 1], 1e-4)
        assert gaps_of(model)[number] == pytest.approx(lacking[1] / lacking[0])
    assert gaps_of(KernelKMeans(3, kernel="rbf", random_state=0).fit(X)) == {}


@pytest.mark.parametrize(
    ("gaps", "better"),
    [
        ({2: 9.0, 3: 1.0, 4: 1.1}, [2]),
        ({2: 9.0, 3: 1.5, 4: 1.1}, []),  # the one that was asked for has one, too
        ({2: 4.0, 3: 1.0, 4: 1.1}, []),  # as large by chance
        ({2: 1.1, 3: 1.5, 4: 9.0}, [4]),
        ({2: 1.1, 3: 4.0, 4: 9.0}, []),
        ({2: 1.1, 4: 9.0}, []),  # of three nothing is known
    ],
)
def test_another_number_is_told_only_where_it_is_clear(gaps, better):
    assert better_numbers(3, gaps) == better
    assert better_numbers(6, {2: 30.0, 3: 1.2, 4: 2.5, 5: 1.1, 6: 1.0}) == [2, 4]


@pytest.mark.parametrize("cls", [KernelKMeans, FullKernelKMeans])
def test_without_rows_there_is_advice_on_the_clusters_alone(cls):
    X = make_blobs(200, 3, random_state=0)[0]
    model = cls(3, kernel="precomputed", random_state=0).fit(X @ X.T)
    (line,) = guidance(model, X @ X.T)
    assert line.endswith(' suit the data: sketchmeans.choose(X, kernel="precomputed")')
    with pytest.raises(ValueError, match="X has 150 rows, but the model was fitted to 200 samples"):
        guidance(model, X[:150] @ X[:150].T)


def test_there_are_never_more_than_three_lines(monkeypatch):
    X = make_moons(400, noise=0.05, random_state=0)[0] * [1, 1000]
    model = KernelKMeans(3, random_state=0).fit(X)
    monkeypatch.setattr(module, "TINY", 5.0)
    assert len(guidance(model, X)) == 3


@pytest.mark.parametrize(
    ("command", "left"),
    [
        ("sketchmeans cluster a.csv -k 3 -o l.csv --save=m.skm --json -q", ["a.csv", "-k", "3"]),
        (
            "sketchmeans cluster a.csv -k 3 --new-option x",
            ["a.csv", "-k", "3", "--new-option", "x"],
        ),
        ("sketchmeans cluster 'a b.csv' -k3", ["a b.csv", "-k3"]),
        ("sketchmeans cluster a.csv -qv -k 3", None),
        ("sketchmeans cluster -k 3 -- -a.csv", None),
        ("sketchmeans choose a.csv", None),
        ("python fit.py", None),
        ("sketchmeans cluster 'a", None),
        (["sketchmeans", "cluster", "a b.csv", "-k", "3", "--report", "r"], ["a b.csv", "-k", "3"]),
        (None, None),
    ],
)
def test_a_command_is_taken_apart_or_left_alone(command, left):
    if left is not None and "-k3" in left:
        assert without(left, {"-k": True}) == ["a b.csv"]
    assert FollowUp.of(command).arguments == left
