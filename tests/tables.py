"""A table and the files that hold it, in every format."""

import bz2
import gzip
import io
import json
import lzma
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import feather, parquet

RANDOM = np.random.default_rng(3)
X = RANDOM.normal(size=(60, 4)) * [1, 10, 1e-3, 1e6]
X.flags.writeable = False  # every test of these files shares it
NAMES = ["a", "b", "c", "d"]
IDS = [f"r{index}" for index in range(60)]
CLASSES = ["left", "right"] * 30


def frame():
    return pd.DataFrame(X, columns=NAMES, copy=True)  # pandas before 3 would write into X


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


def pack(kind, content, name="plain.csv"):
    """Return content as a program packs it that makes files of this extension."""
    if kind == "zip":
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(name, content)
        return stream.getvalue()
    if kind == "zst":
        return pa.compress(content, "zstd", asbytes=True)
    return {"gz": gzip, "bz2": bz2, "xz": lzma}[kind].compress(content)


def write_numbers(path, X, names=None):
    """Write the numbers of X in the format of the path's extension."""
    names = names or [f"x{index}" for index in range(X.shape[1])]
    table = pd.DataFrame(X, columns=names)
    kind = path.name.split(".", 1)[1]
    text, _, packing = kind.partition(".")
    if text in ("csv", "tsv", "txt", "jsonl", "libsvm") and packing:
        plain = write_numbers(path.with_name(f"plain.{text}"), X, names)
        path.write_bytes(pack(packing, plain.read_bytes(), plain.name))
    elif kind in ("csv", "tsv", "txt"):
        table.to_csv(path, index=False, sep={"csv": ",", "tsv": "\t", "txt": " "}[kind])
    elif kind == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_dict("records")))
    elif kind == "xlsx":
        table.to_excel(path, index=False)
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
    else:
        raise AssertionError(kind)
    return path


KINDS = [
    "csv",
    "csv.gz",
    "csv.bz2",
    "csv.xz",
    "csv.zst",
    "csv.zip",
    "tsv",
    "tsv.gz",
    "txt",
    "txt.xz",
    "jsonl",
    "jsonl.bz2",
    "xlsx",
    "parquet",
    "feather",
    "arrow",
    "npy",
    "npz",
    "libsvm",
    "libsvm.gz",
]
