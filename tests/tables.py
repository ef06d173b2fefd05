"""A table and the files that hold it, in every format."""

import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import feather, parquet

RANDOM = np.random.default_rng(3)
X = RANDOM.normal(size=(60, 4)) * [1, 10, 1e-3, 1e6]
NAMES = ["a", "b", "c", "d"]
IDS = [f"r{index}" for index in range(60)]
CLASSES = ["left", "right"] * 30


def frame():
    return pd.DataFrame(X, columns=NAMES)


def full_frame():
    data = frame()
    data.insert(0, "id", IDS)
    data["side"] = CLASSES
    return data


def libsvm_text(X, y=None):
    y = np.zeros(len(X), int) if y is None else y
    return "".join(
        f"{label} " + " ".join(f"{j}:{value!r}" for j, value in enumerate(row.tolist(), 1)) + "\n"
        for row, label in zip(X, y, strict=True)
    )


def write_numbers(path, X, names=None):
    """Write the numbers of X in the format of the path's extension."""
    names = names or [f"x{index}" for index in range(X.shape[1])]
    table = pd.DataFrame(X, columns=names)
    kind = path.name.split(".", 1)[1]
    if kind in ("csv", "csv.gz", "tsv", "tsv.gz"):
        table.to_csv(path, index=False, sep="\t" if "tsv" in kind else ",")
    elif kind == "parquet":
        parquet.write_table(pa.Table.from_pandas(table), path)
    elif kind == "feather":
        feather.write_feather(pa.Table.from_pandas(table), path)
    elif kind == "arrow":
        with pa.ipc.new_stream(path, pa.Table.from_pandas(table).schema) as writer:
            writer.write_table(pa.Table.from_pandas(table))
    elif kind == "npy":
        np.save(path, X)
    elif kind == "npz":
        np.savez_compressed(path, X=X)
    elif kind == "libsvm":
        path.write_text(libsvm_text(X))
    elif kind == "libsvm.gz":
        path.write_bytes(gzip.compress(libsvm_text(X).encode()))
    else:
        raise AssertionError(kind)
    return path


KINDS = [
    "csv",
    "csv.gz",
    "tsv",
    "tsv.gz",
    "parquet",
    "feather",
    "arrow",
    "npy",
    "npz",
    "libsvm",
    "libsvm.gz",
]
