"""Which labels a proof takes, and what it takes from the model that brings them."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

from sketchmeans import KernelKMeans, certify
from sketchmeans.certificate import Certificate, blockwise
from sketchmeans.certificate.joining import with_best_of
from sketchmeans.cli.cluster import _proven

X, _ = make_blobs(60, random_state=0)
NUMBERS = KMeans(3, n_init=3, random_state=0).fit_predict(X)
FEW = {"kernel": "linear", "random_state": 0, "effort": "blocks"}


@pytest.mark.parametrize(
    "same",
    [
        NUMBERS.astype(object),
        NUMBERS.astype(float).astype(object),
        NUMBERS.astype(np.uint8),
        NUMBERS.astype("U"),
        NUMBERS.astype("S"),
        np.array([f"cluster {number}" for number in NUMBERS], dtype=object),
        pd.Series(NUMBERS, dtype="Int64"),
        pd.Categorical(NUMBERS),
        np.ma.array(NUMBERS),
        np.array([f"{number}.0" for number in NUMBERS]),
        [("a", "b", "c")[number] for number in NUMBERS],
    ],
    ids=lambda same: f"{type(same).__name__} {getattr(same, 'dtype', '')}",
)
def test_labels_of_any_kind_say_the_same(same):
    assert certify(X, same, **FEW) == certify(X, NUMBERS, **FEW)


def test_numbers_that_are_text_are_not_taken_for_each_other():
    both = np.where(NUMBERS == 0, "1", np.where(NUMBERS == 1, "01", "2"))
    assert certify(X, both, **FEW) == certify(X, NUMBERS, **FEW)


@pytest.mark.parametrize("kind", [int, float, object, "U", "S", str])
def test_noise_is_refused_whatever_it_is_written_as(kind):
    noisy = np.where(np.arange(60) < 4, -1, NUMBERS)
    labels = [str(label) for label in noisy] if kind is str else noisy.astype(kind)
    with pytest.raises(ValueError, match=r"hold -1 for 4 of 60 samples.*X\[labels >= 0\]"):
        certify(X, labels, **FEW)


def test_noise_among_names_is_refused_and_so_is_its_text_as_a_fraction():
    names = np.array(["ant", "bee", "cat"])[NUMBERS]
    for labels in ([-1, -1, *names[2:]], ["-1.0", "-1.0", *map(str, NUMBERS[2:])]):
        with pytest.raises(ValueError, match="hold -1 for 2 of 60 samples"):
            certify(X, labels, **FEW)
    with pytest.raises(ValueError, match="missing for 1 of 60 samples, first for sample 0"):
        certify(X, ["nan", *map(str, NUMBERS[1:])], **FEW)


def _with(value):
    labels = NUMBERS.astype(object)
    labels[[7, 9]] = value
    return labels


@pytest.mark.parametrize(
    "labels",
    [
        _with(None),
        _with(np.nan),
        _with(pd.NA),
        _with(pd.NaT),
        _with(np.nan).astype(float),
        np.where(np.isin(np.arange(60), [7, 9]), "", NUMBERS.astype("U")),
        pd.Series(_with(pd.NA), dtype="Int64"),
        np.ma.array(NUMBERS, mask=np.isin(np.arange(60), [7, 9])),
    ],
    ids=["None", "NaN", "NA", "NaT", "float NaN", "empty text", "nullable", "masked"],
)
def test_a_label_that_is_missing_is_no_cluster_of_its_own(labels):
    with pytest.raises(ValueError, match="missing for 2 of 60 samples, first for sample 7"):
        certify(X, labels, **FEW)


def test_labels_that_are_no_whole_numbers_are_refused():
    with pytest.raises(ValueError, match=r"the label of sample 3 is 1\.5"):
        certify(X, np.where(np.arange(60) == 3, 1.5, NUMBERS), **FEW)
    with pytest.raises(ValueError, match="the label of sample 3 is inf"):
        certify(X, np.where(np.arange(60) == 3, np.inf, NUMBERS), **FEW)


def _many():
    rows, _ = make_blobs(3200, centers=4, n_features=5, random_state=1)
    options = {"kernel": "rbf", "method": "one-pass", "n_passes": 3, "random_state": 0}
    return rows, KernelKMeans(4, n_init=2, **options).fit(rows)


def test_what_a_fit_has_proved_is_not_lost_where_time_is_too_short_for_more():
    rows, model = _many()
    known = model.certificate_
    assert known.relative_gap is not None
    soon = _proven(model, SimpleNamespace(X=rows), 0.001)
    assert soon.optimum_lower == known.optimum_lower
    assert soon.relative_gap <= known.relative_gap
    # Anybody who brings rows and a model may have other weights: what a fit knew is not theirs.
    assert certify(rows, model, seconds=0.001).optimum_lower < known.optimum_lower


def test_a_fit_that_proves_knows_no_less_than_one_that_does_not():
    rows, model = _many()
    options = model.get_params() | {"certificate": "blocks"}
    proved = KernelKMeans(**options).fit(rows).certificate_
    assert proved.optimum_lower >= model.certificate_.optimum_lower
    assert proved.objective_upper <= model.certificate_.objective_upper
    assert proved.relative_gap == proved.objective_upper / proved.optimum_lower - 1


def _certificate(**fields):
    return Certificate(n_clusters=3, trace_kernel=100.0, trace_error=1.0, **fields)


def test_of_two_certificates_the_best_of_each_counts():
    one = _certificate(objective_lower=8.0, objective_upper=11.0, optimum_lower=5.0, reason="weak")
    two = _certificate(
        objective_lower=9.0, objective_upper=12.0, optimum_lower=8.5, level="lifted", n_blocks=2,
        block_size=7,
    )  # fmt: skip
    for joined in (with_best_of(one, two), with_best_of(two, one)):
        assert (joined.objective_lower, joined.objective_upper) == (9.0, 11.0)
        assert (joined.optimum_lower, joined.level, joined.block_size) == (8.5, "lifted", 7)
        assert joined.relative_gap == 11 / 8.5 - 1
        assert joined.reason is None
    apart = with_best_of(one, two, same_labels=False)
    assert (apart.objective_lower, apart.objective_upper, apart.optimum_lower) == (8.5, 11.0, 8.5)


def test_certificates_that_contradict_each_other_are_not_joined():
    one = _certificate(objective_lower=8.0, objective_upper=11.0, optimum_lower=5.0)
    other = _certificate(objective_lower=12.0, objective_upper=13.0, optimum_lower=9.0)
    assert with_best_of(one, other) == one
    assert with_best_of(one, _certificate(reason="none")) == one
    assumed = _certificate(
        objective_lower=8.0, objective_upper=9.0, optimum_lower=7.0, assumes_psd=True
    )
    assert with_best_of(one, assumed) == one


def test_ctrl_c_while_blocks_are_dealt_returns_what_is_known(monkeypatch):
    rows, _ = make_blobs(3200, centers=4, random_state=1)
    labels = KMeans(4, n_init=1, random_state=0).fit_predict(rows)
    dealt = []

    def deal(*args, **options):
        dealt.append(None)
        if len(dealt) == last:
            raise KeyboardInterrupt
        return alike(*args, **options)

    alike = blockwise.blocks_alike
    monkeypatch.setattr(blockwise, "blocks_alike", deal)
    monkeypatch.setattr(blockwise, "size_for", lambda *args: 100)
    asked = {"kernel": "rbf", "effort": "blocks", "random_state": 0}
    for last, blocks in ((1, None), (2, 32)):  # noqa: B007 - ``deal`` reads it
        dealt.clear()
        found = certify(rows, labels, seconds=60, **asked)
        assert found.interrupted
        assert found.n_blocks == blocks
        assert found.objective_upper is not None
    dealt.clear()
    last = 1
    with pytest.raises(KeyboardInterrupt):  # without a time nobody asked for what there is
        certify(rows, labels, **asked)
