"""Files that rows are read from: what becomes of them after a fit, chunks, batches, messages."""

import copy
import pickle

import numpy as np
import pytest

from sketchmeans import FullKernelKMeans, KernelEmbedding, KernelKMeans, save
from test_disk import Recorded, rows

KEEPING = {
    "one pass": KernelKMeans(3, kernel="rbf", method="one-pass", random_state=0),
    "refined": KernelKMeans(3, kernel="rbf", method="one-pass", n_refine=2, random_state=0),
    "exact": KernelKMeans(3, kernel="rbf", method="exact", random_state=0),
    "full": FullKernelKMeans(3, n_init=1, random_state=0),
    "embedding": KernelEmbedding(3, kernel="cosine", method="one-pass", random_state=0),
}


@pytest.mark.parametrize("name", KEEPING)
def test_a_model_whose_samples_lie_in_a_file_that_was_written_anew_says_so(name, tmp_path):
    X, path = rows(300), tmp_path / "rows.npy"
    np.save(path, X)
    model = copy.deepcopy(KEEPING[name]).fit(str(path))
    new = model.transform if name == "embedding" else model.predict
    before = new(X[:50])
    np.save(tmp_path / "other.npy", -X)
    (tmp_path / "other.npy").replace(path)  # another file with that name: ours is as it was
    assert np.array_equal(new(X[:50]), before)
    model.fit(str(path))
    new(X[:50])
    asked = [
        lambda: new(X[:50]),
        lambda: new(Recorded(X)) if name != "full" else new(X),
        lambda: pickle.dumps(model),
        lambda: save(model, tmp_path / "model.skm"),
    ]
    for changed in (2 * X, X[:40]):  # of the second, the map reaches beyond the end
        np.save(path, changed)
        for ask in asked:
            with pytest.raises(ValueError, match=r"rows\.npy' was written to since it was opened"):
                ask()
    assert model.fit(X) is model
    new(X[:50])


def test_a_model_of_a_file_is_pickled_with_its_samples(tmp_path):
    X, path = rows(300), tmp_path / "rows.npy"
    np.save(path, X)
    model = copy.deepcopy(KEEPING["one pass"]).fit(path)
    other = pickle.loads(pickle.dumps(model))
    np.save(path, X[:20])
    assert np.array_equal(other.predict(X), KEEPING["one pass"].fit(X).predict(X))


@pytest.mark.parametrize("method", ["one-pass", "nystrom", "exact"])
def test_a_file_that_is_written_to_while_a_fit_reads_it_is_refused(method, tmp_path):
    X, path = rows(400), tmp_path / "rows.npy"
    np.save(path, X)
    written = []

    def kernel(A, B):
        if not written:
            written.append(True)
            np.save(path, 2 * X)
        return A @ B.T

    model = KernelKMeans(3, kernel=kernel, method=method)
    with pytest.raises(ValueError, match="was written to since it was opened"):
        model.fit(path)
    assert not hasattr(model, "labels_")


def test_files_that_hold_no_rows_are_refused_by_what_is_wrong_with_them(tmp_path):
    X = rows(40)
    np.save(tmp_path / "good.npy", X)
    good = (tmp_path / "good.npy").read_bytes()
    np.save(tmp_path / "one.npy", X[:, 0])
    np.save(tmp_path / "three.npy", X[None])
    np.save(tmp_path / "object.npy", X.astype(object))
    np.save(tmp_path / "text.npy", X.astype("U5"))
    (tmp_path / "empty.npy").write_bytes(b"")
    (tmp_path / "words.npy").write_bytes(b"hello world" * 100)
    (tmp_path / "header.npy").write_bytes(good[:50])
    (tmp_path / "cut.npy").write_bytes(good[:-1000])
    for name, said in {
        "one": r"holds an array of 1 dimensions, \(40,\), where rows and columns are needed",
        "three": r"holds an array of 3 dimensions, \(1, 40, 6\)",
        "object": "holds values of dtype object, and kernels need real numbers",
        "text": "holds values of dtype <U5, and kernels need real numbers",
        "empty": "is empty. It is damaged or cut off: write it again with np.save",
        "words": "is no file of NumPy, whatever its name",
        "header": "begins as a file of NumPy, and has no header that can be read",
        "cut": r"declares 40 × 6 numbers, 1,920 bytes, and holds 920",
    }.items():
        for ask in (KernelKMeans(3).fit, KernelKMeans(3).fit(X).predict):
            with pytest.raises(ValueError, match=rf"{name}\.npy' {said}"):
                ask(tmp_path / f"{name}.npy")
