"""Model files that are damaged or hostile: each ends in a clear error, and nothing is run."""

import io
import json
import os
import pickle
import re
import struct
import subprocess
import sys
import warnings
import zipfile
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from shell import sketchmeans
from sketchmeans import FullKernelKMeans, KernelEmbedding, KernelKMeans, load, save
from sketchmeans.models import ModelFileError

N_MUTATIONS = 400
N_FORGERIES = 300


def digest(*parts):
    return blake2b(b"".join(parts), digest_size=16)


def aligned(position):
    return position + -position % 64


def take_apart(content):
    """Read a file by the layout that the module documents, and no more."""
    length = struct.unpack("<I", content[12:16])[0]
    header = json.loads(content[32 : 32 + length])
    start = aligned(32 + length)
    parts = {
        row["name"]: content[start + row["offset"] : start + row["offset"] + row["bytes"]]
        for row in header["arrays"]
    }
    return header, parts


def put_together(header, parts, *, version=5, magic=b"\x89SKM\r\n\x1a\n", tidy=True):
    """Write a file whose checksums are all right, whatever it holds."""
    offset = 0
    for row, part in zip(header["arrays"], parts.values(), strict=True) if tidy else ():
        row |= {"offset": offset, "bytes": len(part), "checksum": digest(part).hexdigest()}
        offset = aligned(offset + len(part))
    return bare(json.dumps(header).encode(), parts.values(), version=version, magic=magic)


def bare(text, parts=(), *, version=5, magic=b"\x89SKM\r\n\x1a\n"):
    begin = struct.pack("<8sII", magic, version, len(text))
    content = begin + digest(begin, text).digest() + text
    content += bytes(aligned(len(content)) - len(content))
    for part in parts:
        content += bytes(-len(content) % 64) + part
    return content


def data():
    X = np.random.default_rng(3).normal(size=(60, 4))
    X[np.abs(X) < 0.3] = 0
    return X


OLD = Path(__file__).parent / "models"
"""Files that earlier versions wrote."""

MODELS = {
    "refined": lambda: KernelKMeans(3, rank=4, n_refine=1, random_state=0, kernel="rbf").fit(
        data(), sample_weight=np.arange(60.0) + 1
    ),
    "plain": lambda: KernelKMeans(3, rank=4, random_state=0, kernel="rbf").fit(data()),
    "sparse": lambda: KernelKMeans(3, rank=4, random_state=0, kernel="rbf").fit(
        sparse.csr_matrix(data())
    ),
    "features": lambda: KernelEmbedding(2, kernel="linear").fit(data()),
    "tiles": lambda: KernelEmbedding(2, kernel="poly", gamma=0.1).fit(data()[:, :4]),
    "full": lambda: FullKernelKMeans(3, n_init=1, random_state=0).fit(data()),
    # Landmarks, and all samples for exact distances, as fits left them before format 3.
    "given": lambda: load(OLD / "format-1-given.skm"),
    "landmarks": lambda: KernelKMeans(
        3, kernel="precomputed", method="nystrom", rank=4, n_refine=1, random_state=0
    ).fit(data() @ data().T),
    "neighbors": lambda: by_neighbors().fit(data(), sample_weight=np.arange(60.0) + 1),
    "rows": lambda: by_neighbors(n_anchors=60).fit(sparse.csr_matrix(data())),
    "named": lambda: KernelEmbedding(2).set_output(transform="pandas").fit(frame()),
}


def by_neighbors(**params):
    """Two sets of twelve anchors, or others."""
    params = {"n_anchors": 12, "n_neighbors": 3, "n_graphs": 2} | params
    return KernelKMeans(3, kernel="neighbors", kernel_params=params, random_state=0)


def frame():
    return pd.DataFrame(data(), columns=list("abcd"))


@pytest.fixture(scope="module")
def contents(tmp_path_factory):
    """The bytes of a good file of each kind."""
    folder = tmp_path_factory.mktemp("good")
    found = {}
    for name, make in MODELS.items():
        save(make(), folder / name)
        found[name] = (folder / name).read_bytes()
    return found


DELETE = object()
ANCHORS = {
    "kind": "neighbors",
    "dtype": "float64",
    "unit_rows": False,
    "centered": True,
    "exponent": 0,
    "n_neighbors": 3,
    "anchors": [12, 12],
    "sparse": [False, False],
}
"""What the header of the model "neighbors" says of its anchors."""


class Trap:
    """Creates a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


def apply(header, changes):
    """Change values at dotted paths of a header."""
    for path, value in changes.items():
        target = header
        *steps, last = path.split(".")
        for step in steps:
            target = target[step]
        if value is DELETE:
            del target[last]
        else:
            target[last] = value


HEADERS = [
    ("plain", "'os.system' is not one of KernelEmbedding", {"estimator": "os.system"}),
    ("plain", "is not one of KernelEmbedding", {"estimator": ["KernelKMeans"]}),
    ("plain", "lacks or has too much: stats_", {"stats_": DELETE}),
    ("plain", "lacks or has too much: extra", {"extra": 1}),
    ("plain", "its parameters are not those of KernelKMeans", {"parameters": []}),
    ("plain", "its parameters are not those", {"parameters.evil": 1}),
    ("plain", "n_init=-3 is too small", {"parameters.n_init": -3}),
    ("plain", "n_init='10' is not known", {"parameters.n_init": "10"}),
    ("plain", "is neither a number nor a short text", {"parameters.rank": [[1]]}),
    ("plain", "is neither a number nor a short text", {"parameters.gamma": "m" * 2000}),
    ("plain", "kernel='__import__' is not known", {"parameters.kernel": "__import__"}),
    ("plain", "random_state is neither", {"parameters.random_state": "0"}),
    ("plain", "is more than the 1024 threads", {"parameters.n_jobs": 10**6}),
    ("plain", "width_=-1 is too small", {"numbers.width_": -1}),
    ("plain", "rank_=4.0 must be a whole number", {"numbers.rank_": 4.0}),
    ("plain", "where 5 would agree with rank_", {"numbers.rank_": 5}),
    ("plain", "its numbers are not", {"numbers": {}}),
    ("plain", "inertia_=-1", {"numbers.inertia_": -1.0}),
    ("plain", "its stats_ are no object", {"stats_": 7}),
    ("plain", "neither a number nor a short text", {"stats_": {"a": {"b": {"c": 1}}}}),
    ("plain", "has not the fields of a certificate", {"certificate_": None}),
    ("plain", "of its certificate_ is no float", {"certificate_.trace_kernel": "1"}),
    ("plain", "without objective_lower", {"certificate_.objective_lower": None}),
    ("features", "has not the fields of a certificate", {"certificate_": {}}),
    ("plain", "output='html' is not one of", {"output": "html"}),
    ("plain", "weighted=1 is neither true nor false", {"weighted": 1}),
    ("plain", "imputed=1 is neither true nor false", {"imputed": 1}),
    ("plain", "lacks arrays or has too many: fill_values_", {"imputed": True}),
    ("plain", "it has weights, and no exact centroids", {"weighted": True}),
    ("plain", "n_features_in_=0 is too small", {"n_features_in_": 0}),
    ("plain", "would agree with n_features_in_", {"n_features_in_": 5}),
    ("plain", "description of new_points is none", {"new_points": None}),
    ("plain", "description of new_points is none", {"new_points.kind": "pickle"}),
    ("plain", "new_points has dtype 'object'", {"new_points.dtype": "object"}),
    ("plain", "is neither true nor false", {"new_points.sparse": "no"}),
    ("plain", "its kernel 'exec' is not one of", {"new_points.kernel.name": "exec"}),
    ("plain", "has other options than", {"new_points.kernel.degree": 3}),
    ("plain", "gamma=-1.0 must be a finite", {"new_points.kernel.gamma": -1.0}),
    ("plain", "lacks arrays or has too many: new_points", {"new_points.sparse": True}),
    ("plain", "lacks arrays or has too many: feature_names", {"named": True}),
    ("plain", "rbf kernel of 4 features has no feature map", {"new_points.kind": "features"}),
    (
        "tiles",
        "has no feature map of at most 2048",
        {"new_points.kind": "features", "new_points.kernel.degree": 10**9},
    ),
    ("full", "keeps no samples beside", {"samples": "new_points"}),
    ("given", "description of samples is none", {"samples": "labels_"}),
    ("given", "its exact distances need all samples", {"samples.chosen": True}),
    ("given", "lacks arrays or has too many: new_points_c", {"new_points.chosen": False}),
    ("given", "lacks arrays or has too many", {"samples": "new_points"}),
    ("given", "has centroids by landmarks, and more than", {"by_landmarks": True}),
    ("plain", "lacks arrays or has too many: centroids_c", {"by_landmarks": True}),
    ("landmarks", "lacks arrays or has too many: centroids_c", {"by_landmarks": False}),
    ("landmarks", "by_landmarks=1 is", {"by_landmarks": 1}),
    ("landmarks", "n_landmarks_=0 is too small", {"numbers.n_landmarks_": 0}),
    ("plain", "its parameters name no kernel", {"parameters.kernel": DELETE}),
    ("plain", "is not read with kernel='rbf'", {"parameters.kernel_params": {"n_anchors": 5}}),
    ("neighbors", "is not read with kernel='rbf'", {"parameters.kernel": "rbf"}),
    ("neighbors", "kernel_params has 'evil'", {"parameters.kernel_params.evil": 1}),
    ("neighbors", "neither a number nor a", {"parameters.kernel_params.metric": {"a": 1}}),
    ("neighbors", "neither a number nor a", {"parameters.kernel_params": ["n_anchors"]}),
    ("neighbors", "must be a dict of options", {"parameters.kernel_params": "metric"}),
    ("neighbors", "metric='x' is not known", {"parameters.kernel_params.metric": "x"}),
    ("neighbors", "n_graphs=0 is too small", {"parameters.kernel_params.n_graphs": 0}),
    ("neighbors", "is no name of a value", {"parameters.kernel_params": {"\x1b[2J": 1}}),
    ("neighbors", "description of new_points is none", {"new_points.kind": "data"}),
    ("neighbors", "description of new_points is none", {"new_points.pickle": 1}),
    ("neighbors", "description of new_points is none", {"new_points.exponent": DELETE}),
    ("neighbors", "anchors are float64, and these", {"new_points.dtype": "float32"}),
    ("neighbors", "unit_rows=1 is neither", {"new_points.unit_rows": 1}),
    ("neighbors", "that exclude each other", {"new_points.unit_rows": True}),
    ("neighbors", "lacks arrays .*: new_points_center", {"new_points.centered": False}),
    ("neighbors", "centered=None is neither", {"new_points.centered": None}),
    ("neighbors", "exponent=1.0 is not that of", {"new_points.exponent": 1.0}),
    ("neighbors", "exponent=True is not that of", {"new_points.exponent": True}),
    ("neighbors", "exponent=-1101 is not that", {"new_points.exponent": -1101}),
    ("neighbors", "n_neighbors=0 is too small", {"new_points.n_neighbors": 0}),
    ("neighbors", "n_neighbors=13 are more than the 12", {"new_points.n_neighbors": 13}),
    ("neighbors", "n_neighbors='3' must be a whole", {"new_points.n_neighbors": "3"}),
    ("neighbors", "its anchors are no list of 1 to 1,000", {"new_points.anchors": []}),
    ("neighbors", "its anchors are no list of 1 to 1,000", {"new_points.anchors": 24}),
    ("neighbors", "its anchors are no list of 1 to", {"new_points.anchors": [1] * 1001}),
    ("neighbors", "its sparse are no list of 1 to", {"new_points.sparse": False}),
    ("neighbors", "it has 3 sets of anchors, and not 2", {"new_points.anchors": [8, 8, 8]}),
    ("neighbors", "anchors=0 is too small", {"new_points.anchors": [24, 0]}),
    ("neighbors", "anchors=-12 is too small", {"new_points.anchors": [36, -12]}),
    ("neighbors", "anchors=True must be a whole", {"new_points.anchors": [23, True]}),
    ("neighbors", "25 would agree with the sets", {"new_points.anchors": [12, 13]}),
    ("neighbors", "would agree with the sets", {"new_points.anchors": [12, 10**30]}),
    ("neighbors", "sparse=0 is neither", {"new_points.sparse": [0, False]}),
    ("neighbors", "exclude each other", {"new_points.sparse": [False, True]}),
    ("rows", "lacks arrays .*: new_points_X, new", {"new_points.sparse": [False]}),
    (
        "rows",
        "lacks arrays .*: new_points_X",
        {"new_points.anchors": [30, 30]} | {"new_points.sparse": [True, False]},
    ),
    ("neighbors", "it has anchors, and its exact distances", {"samples": "new_points"}),
    ("full", "it has anchors, and its exact distances", {"new_points": ANCHORS}),
    ("refined", "its exact distances need all samples", {"samples": ANCHORS}),
    ("neighbors", "lacks arrays or has too many: centroids_c", {"by_landmarks": False}),
    ("neighbors", "it has centroids by landmarks, and more", {"weighted": True}),
    ("neighbors", "cut_lower without normalized_cut", {"certificate_.normalized_cut": None}),
    ("neighbors", "cut without normalized_cut_l", {"certificate_.normalized_cut_lower": DELETE}),
    ("neighbors", "='0' of its certificate_ is no", {"certificate_.normalized_cut": "0"}),
    ("plain", "level='magic' is not known", {"certificate_.level": "magic"}),
    ("plain", "a level without n_blocks and block_size", {"certificate_.level": "lifted"}),
    ("plain", "of its certificate_ is no bool", {"certificate_.interrupted": None}),
]


TABLES = [
    ("has dtype '|O', not one of", {"dtype": "|O"}),
    ("has dtype 'V8', not one of", {"dtype": "V8"}),
    ("has dtype \\['<f8'\\], not one of", {"dtype": ["<f8"]}),
    ("needs 8,000,000,000,000,000 bytes, and its table says", {"shape": [10**9, 10**6]}),
    ("not one or two sizes", {"shape": [-1, -4]}),
    ("not one or two sizes", {"shape": [2**64, 2**64]}),
    ("not one or two sizes", {"shape": [60, 2, 2]}),
    ("not one or two sizes", {"shape": [True, 4]}),
    ("not one or two sizes", {"shape": [60.0, 4]}),
    ("not one or two sizes", {"shape": "604"}),
    ("ends at byte 8,000,0.*and the file has", {"shape": [10**9, 10**6], "bytes": 8 * 10**15}),
    ("lies at 64, where 0 comes next: arrays overlap", {"offset": 64}),
    ("are no sizes", {"offset": -64}),
    ("are no sizes", {"bytes": 1e300}),
    ("has order 'K', not C or F", {"order": "K"}),
    ("is no name of an array", {"name": "../../etc/passwd"}),
    ("is no name of an array", {"name": ""}),
    ("lacks arrays or has too many: __class__", {"name": "__class__"}),
    ("names an array twice", {"name": "eigenvalues_"}),
    ("checksum of its array embedding_ is wrong", {"checksum": "0" * 32}),
    ("checksum of its array embedding_ is no text", {"checksum": 7}),
    ("has other entries than", {"pickle": True}),
]

NUMBERS = [
    ("plain", "_dual", "<f8", 0, np.nan, "_dual holds nan, and no finite number"),
    ("plain", "cluster_centers_", "<f8", 2, np.inf, "cluster_centers_ holds inf"),
    ("plain", "labels_", "<i4", 5, 3, "labels_ holds 3, and no finite number from 0 to below 3"),
    ("plain", "labels_", "<i4", 5, -1, "labels_ holds -1"),
    ("plain", "new_points_X", "<f8", 7, -np.inf, "new_points_X holds -inf"),
    ("plain", "new_points_norms", "<f8", 7, -1, "new_points_norms holds -1"),
    ("sparse", "new_points_indices", "<i4", 3, 4, "indices holds 4, and no .* to below 4"),
    ("sparse", "new_points_indices", "<i4", 3, -1, "indices holds -1"),
    ("sparse", "new_points_indices", "<i4", slice(None), 1, "do not rise within each row"),
    ("sparse", "new_points_indptr", "<i4", 0, 1, "indptr does not rise from 0 to the"),
    ("sparse", "new_points_indptr", "<i4", 3, 0, "indptr does not rise from 0 to the"),
    ("sparse", "new_points_indptr", "<i4", 3, 2**30, "indptr holds"),
    ("refined", "centroids_labels", "<i4", 0, 9, "centroids_labels holds 9"),
    ("refined", "centroids_weights", "<f8", 0, -1, "centroids_weights holds -1"),
    ("refined", "centroids_sizes", "<f8", slice(None), 0, "its centroids have no members"),
    ("given", "new_points_chosen", "<i8", 0, 60, "new_points_chosen holds 60"),
    ("landmarks", "centroids_coefficients", "<f8", 0, np.nan, "centroids_coefficients holds nan"),
    ("landmarks", "centroids_sizes", "<f8", slice(None), 0, "its centroids have no members"),
    ("neighbors", "new_points_held", "<f8", 0, 0, "held holds 0, and no finite number from 2.2"),
    ("neighbors", "new_points_held", "<f8", 23, -1, "new_points_held holds -1"),
    ("neighbors", "new_points_held", "<f8", 5, np.nan, "new_points_held holds nan"),
    ("neighbors", "new_points_held", "<f8", 5, 1e300, "new_points_held holds 1e.300"),
    ("neighbors", "new_points_X", "<f8", 7, np.nan, "new_points_X holds nan"),
    ("neighbors", "new_points_X", "<f8", 7, -1e13, "new_points_X holds -1e.13, and no finite"),
    ("neighbors", "new_points_center", "<f8", 1, np.inf, "new_points_center holds inf"),
    ("neighbors", "new_points_center", "<f8", 1, 1e13, "new_points_center holds 1e.13"),
    ("neighbors", "centroids_coefficients", "<f8", 0, np.inf, "coefficients holds inf"),
    ("rows", "new_points_data", "<f8", 0, np.nan, "new_points_data holds nan"),
    ("rows", "new_points_data", "<f8", 0, 1e300, "new_points_data holds 1e.300, and no fin"),
    ("rows", "new_points_indices", "<i4", 3, 4, "indices holds 4, and no .* to below 4"),
    ("rows", "new_points_indices", "<i4", slice(None), 1, "do not rise within each row"),
    ("rows", "new_points_indptr", "<i4", 3, 0, "indptr does not rise from 0 to the"),
    ("rows", "new_points_held", "<f8", 0, 0, "new_points_held holds 0"),
    ("named", "feature_names_ends", "<i8", 0, 3, "do not end one after the other"),
    ("named", "feature_names_ends", "<i8", 3, 5, "do not end one after the other"),
    ("named", "feature_names_text", "|u1", 0, 255, "can't decode byte 0xff"),
]


def forged(contents, trap):
    """Yield every hostile file: a name, its bytes, and what the error must say."""
    good = contents["plain"]
    header_end = 32 + struct.unpack("<I", good[12:16])[0]
    yield "empty", b"", "it is empty"
    for length in (1, 8, 20, 31, 32, 200, header_end, aligned(header_end), len(good) - 1):
        message = "it begins with" if length < 8 else "ends after|declares|ends at byte"
        yield f"truncated to {length}", good[:length], message
    yield "one byte too long", good + b"\0", "where its table of arrays ends at"
    yield "wrong magic", b"PNG" + good[3:], "it begins with b'PNG"
    yield "newer", put_together(*take_apart(good), version=6), "has format 6.*a newer sketchmeans"
    yield "version 0", put_together(*take_apart(good), version=0), "format 0 does not exist"
    yield "pickle", pickle.dumps(Trap(trap)), "it begins with"
    yield "pickle behind our magic", good[:32] + pickle.dumps(Trap(trap)), "declares"
    yield "numpy of objects", b"\x93NUMPY" + pickle.dumps(Trap(trap)), "it begins with"
    yield "zip bomb", zip_bomb(), "it begins with b'PK"
    huge = struct.pack("<8sII", good[:8], 1, 2**32 - 1) + good[16:]
    yield "huge header declared", huge, "declares 4,294,967,295 bytes, where at most 1,048,576"
    yield "long header", bare(b" " * (2**20 + 1)), "where at most 1,048,576 are allowed"
    yield "deep header", bare(b"[" * 2**20), "its header has 1,048,576 lists and objects"
    yield "deep but short header", bare(b"[" * 500), "is no JSON that save writes"
    yield "wide header", bare(b"[" + b"{}," * 300_000 + b"0]"), "lists and objects"
    yield "list", bare(b"[]"), "its header is a list"
    yield "no JSON", bare(b"import os"), "is no JSON that save writes"
    yield "no text", bare(b"\xff\xfe\x00"), "is no JSON that save writes"
    yield "UTF-16", bare('{"a": 1}'.encode("utf-16")), "is no JSON that save writes"
    yield "long number", bare(b'{"a": ' + b"9" * 10**5 + b"}"), "is no JSON that save writes"
    yield "no table", bare(b"{}"), "its table of arrays is no list"
    many = json.dumps({"arrays": [0] * 200}).encode()
    yield "many arrays", bare(many), "its table of arrays is no list of at most 128"
    text = good[32:header_end]
    twice = text.replace(b'"named": false', b'"named": false, "named": false')
    yield "name given twice", bare(twice), "a name is given twice"
    for constant, message in ((b"NaN", "NaN is no number"), (b"1e999", "inertia_=inf")):
        start = text.index(b'"inertia_": ') + 12
        changed = text[:start] + constant + text[text.index(b",", start) :]
        parts = take_apart(good)[1].values()
        yield constant.decode(), bare(changed, parts), message
    padding = bytearray(good)
    padding[aligned(header_end) - 1] = 1
    if header_end % 64:
        yield "padding", bytes(padding), "are not zero"
    for index, (model, message, changes) in enumerate(HEADERS):
        header, parts = take_apart(contents[model])
        apply(header, changes)
        yield f"header {index} {list(changes)}", put_together(header, parts), message
    for message, changes in TABLES:
        header, parts = take_apart(good)
        header["arrays"][0] |= changes
        yield f"table {changes}", put_together(header, parts, tidy=False), message
    for model, name, dtype, index, value, message in NUMBERS:
        header, parts = take_apart(contents[model])
        array = np.frombuffer(parts[name], dtype).copy()
        array[index] = value
        parts[name] = array.tobytes()
        yield f"{model} {name}[{index}] = {value}", put_together(header, parts), message
    for names in (["labels_"], ["_dual"], ["new_points_X"], ["new_points_center"]):
        yield f"shorter {names}", shortened(good, names), "would agree with"
    for name in ("_dual", "new_points_X", "new_points_held", "centroids_coefficients"):
        shorter = shortened(contents["neighbors"], [name])
        yield f"shorter {name} of anchors", shorter, "24 would agree with the sets of anchors"
    every = ["_dual", "new_points_X", "new_points_held", "centroids_coefficients"]
    fewer = shortened(contents["neighbors"], every)
    yield "fewer anchors", fewer, "24 would agree with the sets of anchors"
    shorter = shortened(contents["rows"], ["new_points_indptr"])
    yield "shorter pointers", shorter, "would agree with the sets of anchors"
    all_points = ["_dual", "new_points_X", "new_points_norms"]
    message = "its kernel is not one of all its 60 samples"
    yield "shorter samples", shortened(contents["refined"], all_points), message
    full = ["new_points_X", "new_points_norms"]
    yield "shorter samples of full", shortened(contents["full"], full), message
    header, parts = take_apart(
        shortened(contents["given"], ["samples_diagonal", "new_points_diagonal"])
    )
    header["n_features_in_"] = 59
    yield "fewer columns than samples", put_together(header, parts), message
    yield "shorter diagonal", shortened(contents["given"], ["samples_diagonal"]), "would agree"


def shortened(content, names):
    """Take the last row of these arrays away."""
    header, parts = take_apart(content)
    for row in header["arrays"]:
        if row["name"] in names:
            array = np.frombuffer(parts[row["name"]], row["dtype"])
            array = array.reshape(row["shape"], order=row["order"])[:-1]
            row["shape"][0] -= 1
            parts[row["name"]] = array.tobytes(order=row["order"])
    return put_together(header, parts)


def zip_bomb():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.npy", bytes(200_000_000))
    return file.getvalue()


def test_a_file_forged_by_the_documented_layout_loads_so_that_the_forgeries_test_the_checks(
    contents, tmp_path
):
    for name, content in contents.items():
        assert put_together(*take_apart(content)) == content
        (tmp_path / name).write_bytes(content)
        assert type(load(tmp_path / name)) is type(MODELS[name]())


def test_a_file_of_the_first_format_loads_and_predicts(tmp_path):
    path = OLD / "format-1.skm"
    (tmp_path / "new.csv").write_text("weight,height\n93,1.93\n49,1.5\n88,1.9\n")
    assert path.read_bytes()[8] == 1
    model = load(path)
    assert model.labels_.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert model.feature_names_in_.tolist() == ["height", "weight"]
    assert not hasattr(model, "fill_values_")
    shown = sketchmeans("predict", path, tmp_path / "new.csv").stdout
    assert shown == "row,cluster\n1,1\n2,0\n3,1\n"
    save(model, tmp_path / "again.skm")
    np.testing.assert_array_equal(load(tmp_path / "again.skm").labels_, model.labels_)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("format-1-nystrom", {"n_landmarks": 6, "sketch": "uniform", "n_refine": 0}),
        ("format-1-rpcholesky-refined", {"n_landmarks": 5, "n_refine": 2}),
        ("format-2-embedding", {"n_landmarks": 6, "sketch": "kmeans"}),
    ],
)
def test_a_file_from_before_landmarks_had_a_number_of_their_own_loads(name, options, tmp_path):
    """Their number is what the sketch kept; the same options mean the same fit as then."""
    model = load(OLD / f"{name}.skm")
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 2)).round(3)
    X[:20] += 3
    assert model.n_landmarks_ == options["n_landmarks"]
    assert {key: model.get_params()[key] for key in options} == options
    if hasattr(model, "labels_"):
        np.testing.assert_array_equal(model.predict(X), model.labels_)
    else:
        np.testing.assert_allclose(model.transform(X), model.embedding_, atol=1e-12)
    save(model, tmp_path / "again.skm")
    assert load(tmp_path / "again.skm").get_params() == model.get_params()
    model.fit(X)


def test_a_file_of_the_third_format_loads_and_keeps_its_kernel(tmp_path):
    """Whatever the default kernel is today: it was rbf then, should a file not name one."""
    path, again = OLD / "format-3.skm", tmp_path / "again.skm"
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 2)).round(3)
    X[:20] += 3
    content = path.read_bytes()
    assert content[8] == 3
    header, parts = take_apart(content)
    assert "normalized_cut" not in header["certificate_"]
    del header["parameters"]["kernel"]
    (tmp_path / "silent.skm").write_bytes(put_together(header, parts, version=3))
    for file in (path, tmp_path / "silent.skm"):
        model = load(file)
        assert model.kernel == "rbf"
        assert model.kernel_params is None
        assert model.certificate_.normalized_cut is None
        np.testing.assert_array_equal(model.predict(X), model.labels_)
        save(model, again, overwrite=True)
        assert again.read_bytes()[8] == 5
        assert load(again).get_params() == model.get_params()


@pytest.mark.parametrize("name", ["format-1", "format-1-nystrom", "format-2-embedding"])
def test_files_of_the_first_formats_keep_the_kernel_that_was_the_default(name, tmp_path):
    content = (OLD / f"{name}.skm").read_bytes()
    header, parts = take_apart(content)
    del header["parameters"]["kernel"]
    (tmp_path / "silent.skm").write_bytes(put_together(header, parts, version=content[8]))
    assert load(tmp_path / "silent.skm").get_params() == load(OLD / f"{name}.skm").get_params()


def test_every_parameter_is_stored_the_kernel_included(contents):
    for name, content in contents.items():
        stored = set(MODELS[name]().get_params()) - {"checkpoint"}  # a folder of one machine
        assert set(take_apart(content)[0]["parameters"]) == stored
    assert take_apart(contents["neighbors"])[0]["new_points"] == ANCHORS


def test_hostile_files_end_in_clear_errors_and_nothing_is_run(contents, tmp_path):
    trap, path = tmp_path / "trap", tmp_path / "hostile.skm"
    said = {}
    for name, content, message in forged(contents, str(trap)):
        assert name not in said
        path.write_bytes(content)
        try:
            load(path)
        except ModelFileError as error:
            said[name] = str(error), message
        else:
            said[name] = "it was loaded", message
    wrong = {
        name: (error, message)
        for name, (error, message) in said.items()
        if not re.search(message, error)
        or not error.startswith(f"{path} cannot be loaded: ")
        or len(error) > 600
    }
    assert wrong == {}
    assert len(said) > 100
    assert not trap.exists()


def test_every_mutated_file_is_refused(contents, tmp_path):
    """Checksums cover every byte, and zeros are checked between arrays: no flip goes unseen."""
    random = np.random.default_rng(0)
    path = tmp_path / "mutated.skm"
    names = list(contents)
    for index in range(N_MUTATIONS):
        content = bytearray(contents[names[index % len(names)]])
        kind = index % 5
        at = int(random.integers(len(content)))
        if kind < 3:
            content[at] ^= 1 << int(random.integers(8))
        elif kind == 3:
            content = content[:at] + content[at + int(random.integers(1, 100)) :]
        else:
            content[at:at] = random.bytes(int(random.integers(1, 100)))
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match="cannot be loaded: "):
            load(path)


JUNK = [None, True, 0, -1, 2, 59, 61, 1e300, "", "x", "rbf", "linear", "float32", "rows", "data"]
JUNK += [
    "features",
    "neighbors",
    "new_points",
    [1, 23],
    [True, False],
    [],
    {},
    [1],
    2**63,
    10**30,
    "<f4",
    "<i4",
    "F",
]


def places(value):
    """Yield every container of a header with each of its keys."""
    for key in value if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from places(value[key])


def test_a_forgery_with_right_checksums_is_refused_or_can_be_used(contents, tmp_path):
    """No obscure error later: what loads predicts, or says in a ValueError why it cannot."""
    random = np.random.default_rng(1)
    path = tmp_path / "forged.skm"
    loaded = 0
    for index in range(N_FORGERIES):
        name = list(contents)[index % len(contents)]
        header, parts = take_apart(contents[name])
        if index % 2:
            chosen = list(places(header))
            value, key = chosen[random.integers(len(chosen))]
            value[key] = JUNK[random.integers(len(JUNK))]
        else:
            array = list(parts)[random.integers(len(parts))]
            changed = bytearray(parts[array])
            changed[random.integers(len(changed))] = random.integers(256)
            parts[array] = bytes(changed)
        try:
            path.write_bytes(put_together(header, parts))
        except (AttributeError, TypeError, ValueError):
            continue  # the table itself is gone
        try:
            model = load(path)
        except ModelFileError:
            continue
        loaded += 1
        X = {"given": data() @ data().T, "named": frame()}.get(name, data())
        with warnings.catch_warnings(), suppress(ValueError):
            warnings.simplefilter("ignore")
            for method in {"predict", "transform", "score"} & set(dir(model)):
                getattr(model, method)(X)
        str(getattr(model, "certificate_", None))
    assert 50 < loaded < N_FORGERIES - 50


def test_every_bit_before_the_arrays_is_covered(contents, tmp_path):
    path = tmp_path / "mutated.skm"
    content = contents["features"]
    for at in [*range(32), *range(32, len(content), 41)]:
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        with pytest.raises(ModelFileError):
            load(path)


def test_paths_that_are_no_files_are_refused(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path, "/dev/zero"):
        with pytest.raises(ModelFileError, match="it is no ordinary file"):
            load(path)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "missing.skm")
    with pytest.raises(ModelFileError, match="embedded null byte"):
        load("model\0.skm")


BATCH = """
import glob, sys
from sketchmeans import KernelKMeans, load
from sketchmeans.models import ModelFileError
def peak():  # ru_maxrss would begin at the peak of the process that started this one
    lines = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return 1024 * int(lines["VmHWM"].split()[0])
sys.addaudithook(lambda event, args: event in WATCHED and events.append((event, args)))
WATCHED = {"exec", "compile", "import", "os.system", "subprocess.Popen", "pickle.find_class"}
events, refused = [], 0
load(sys.argv[2])
events.clear()
before = peak()
for path in glob.glob(sys.argv[1] + "/*.hostile"):
    try:
        load(path)
    except ModelFileError:
        refused += 1
print(refused, peak() - before, len(events))
"""


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the peak is read from Linux's /proc"
)
def test_hostile_files_take_little_memory_and_run_nothing(contents, tmp_path):
    count = 0
    for _, content, _ in forged(contents, str(tmp_path / "trap")):
        (tmp_path / f"{count}.hostile").write_bytes(content)
        count += 1
    (tmp_path / "good").write_bytes(contents["plain"])
    out = subprocess.run(
        [sys.executable, "-c", BATCH, str(tmp_path), str(tmp_path / "good")],
        capture_output=True,
        text=True,
        check=True,
    )
    refused, used, events = map(int, out.stdout.split())
    assert refused == count
    assert used < 100e6
    assert events == 0
    assert not (tmp_path / "trap").exists()
