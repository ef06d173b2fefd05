"""Data files that are damaged or hostile: every class of failure once, and seeded mutations."""

import gzip
import io
import os
import pickle
import struct
import zipfile

import numpy as np
import pyarrow as pa
from pyarrow import feather, parquet

X = np.random.default_rng(5).normal(size=(40, 3))
CSV = "a,b,c\n" + "".join(",".join(map(repr, row)) + "\n" for row in X.tolist())
LIBSVM = "".join(f"1 1:{a!r} 2:{b!r} 3:{c!r}\n" for a, b, c in X.tolist())
MUTATIONS = 8
"""Mutations of each format."""


class Payload:
    """Unpickling it runs a command that leaves a file behind."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.system, (f"touch {self.marker}",)


def npy_bytes(array, **options):
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


def npy_header(text, version=1):
    text = text.encode("latin1") + b"\n"
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text


def npy_shape(shape, dtype="<f8"):
    return npy_header(f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}")


def npz_bytes(members, compression=zipfile.ZIP_DEFLATED):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return stream.getvalue()


def zeros_npz(megabytes):
    """An archive whose one array is zeros: packed a thousandfold."""
    stream = io.BytesIO()
    with (
        zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("X.npy", "w", force_zip64=True) as member,
    ):
        member.write(npy_shape((megabytes * 125_000, 1)))
        for _ in range(megabytes):
            member.write(bytes(1_000_000))
    return stream.getvalue()


def table(columns=None):
    return pa.table(columns or {name: X[:, index] for index, name in enumerate("abc")})


def parquet_bytes(data=None, **options):
    stream = io.BytesIO()
    parquet.write_table(table() if data is None else data, stream, **options)
    return stream.getvalue()


def feather_bytes(data=None, **options):
    stream = io.BytesIO()
    feather.write_feather(table() if data is None else data, stream, **options)
    return stream.getvalue()


def repeated_parquet():
    """Forty million rows of one number, in a few kilobytes."""
    stream = io.BytesIO()
    rows = pa.table({"a": np.zeros(1_000_000)})
    with parquet.ParquetWriter(stream, rows.schema, compression="zstd") as writer:
        for _ in range(40):
            writer.write_table(rows)
    return stream.getvalue()


def long_texts():
    """A hundred thousand times the same text of a megabyte, which is stored once."""
    texts = pa.DictionaryArray.from_arrays(np.zeros(100_000, np.int32), ["x" * 1_000_000])
    return parquet_bytes(pa.table({"a": texts, "b": np.arange(100_000.0)}))


def lying_feather():
    """A compressed buffer that claims to unpack to a terabyte."""
    content = bytearray(feather_bytes(table({"a": np.zeros(1000)}), compression="zstd"))
    place = content.index(struct.pack("<q", 8000))
    content[place : place + 8] = struct.pack("<q", 1 << 40)
    return bytes(content)


def packed(text, megabytes):
    """A text repeated, packed by gzip in members of a megabyte each."""
    return gzip.compress(text * (1_000_000 // len(text))) * megabytes


def sparse_npz(shape, indices, indptr):
    return npz_bytes(
        [
            ("data.npy", npy_bytes(np.ones(len(indices)))),
            ("indices.npy", npy_bytes(np.array(indices, np.int32))),
            ("indptr.npy", npy_bytes(np.array(indptr, np.int32))),
            ("shape.npy", npy_bytes(np.array(shape))),
            ("format.npy", npy_bytes(np.array(b"csr"))),
        ]
    )


def lying_zip():
    """An archive whose directory claims that its member has one byte more than it has."""
    content = bytearray(npz_bytes([("X.npy", npy_bytes(X))], zipfile.ZIP_STORED))
    place = content.rindex(b"PK\x01\x02") + 24
    size = struct.unpack_from("<I", content, place)[0]
    struct.pack_into("<I", content, place, size + 8_000_000)
    return bytes(content)


def encrypted_zip():
    content = bytearray(npz_bytes([("X.npy", npy_bytes(X))]))
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(mark) + offset] |= 1
    return bytes(content)


def damaged(marker):
    """Return content (or what makes it) and what the message says, for each class of failure."""
    payload = pickle.dumps(Payload(marker))
    objects = np.array([[Payload(marker)]], dtype=object)
    good_gz = gzip.compress(CSV.encode())
    return {
        # Text
        "empty.csv": (b"", "is empty"),
        "header.csv": (b"a,b,c\n", "holds no rows"),
        "ragged.csv": (b"a,b\n1,2\n3,4,5\n", "row 2 has 3 fields where 2 are expected"),
        "nul.csv": (b"a,b\n1,\x002\n", "which is no number"),
        "nuls.csv": (bytes(2_000_000), "no number|holds no rows|cannot be read"),
        "long-line.csv": (b"1," * 8_000_000, "longer than 4,000,000 characters"),
        "long-field.csv": (b'a,b\n"' + b"1" * 1_000_000 + b'",2\n', "field larger|infinite"),
        "open-quote.csv": (b'a,b\n"1,2\n3,4\n', "row 1 has 1 field |no number"),
        "mixed.csv": (b"a,b\n1,2\n3,4\n5,six\n7,8\n", "column 'b' holds 'six' in row 3"),
        "missing.csv": (b"a,b\n1,2\n3,\n", "column 'b' has no value in row 2"),
        "infinite.csv": (b"a,b\n1,2\n3,1e999\n", "infinite value in row 2"),
        "latin.csv": ("größe,b\n1,\x01\n".encode("latin1"), "is not UTF-8 text: byte 0xf6"),
        "undefined.csv": (CSV.encode() + b"\x81,1,2\n", "is not UTF-8 text: byte 0x81"),
        "late-bytes.csv": (CSV.encode() + b"\xff\xfe,1,2\n", "'ÿþ' in row 41, which is no number"),
        "cut.utf-16.csv": (CSV.encode("utf-16")[:-1], "cut.utf-16.csv is not utf-16 text"),
        "page.csv": (b"<!doctype html>\n<p>Not found</p>\n", "no number"),
        "pickle.csv": (payload, "not UTF-8|no rows"),
        "parquet.csv": (parquet_bytes(), "not UTF-8|no rows"),
        # Packed text
        "cut.csv.gz": (good_gz[: len(good_gz) // 2], "ended before|cannot be read"),
        "checksum.csv.gz": (good_gz[:-8] + bytes(8), "CRC check failed"),
        "twice.csv.gz": (gzip.compress(good_gz), "not UTF-8"),
        "bomb.csv.gz": (lambda: packed(bytes(6), 200), "longer than 4,000,000 characters"),
        "numbers.csv.gz": (lambda: packed(b"0,0,0\n", 60), "taken for damaged or host"),
        "lines.libsvm.gz": (lambda: packed(b"1 1:0\n", 60), "taken for damaged or ho"),
        "packed.npy": (gzip.compress(npy_bytes(X)), "packed by gzip, which npy files are not"),
        # Parquet
        "cut.parquet": (parquet_bytes()[:-20], "cannot be read as parquet"),
        "magic.parquet": (b"PAR2" + parquet_bytes()[4:-4] + b"PAR2", "cannot be read as parquet"),
        "footer.parquet": (
            parquet_bytes()[:-8] + struct.pack("<I", 2**31 - 1) + b"PAR1",
            "cannot be read as parquet",
        ),
        "bomb.parquet": (repeated_parquet, "taken for damaged or hostile"),
        "texts.parquet": (long_texts, "column 'a' holds 'xxx"),
        "text.parquet": (CSV.encode(), "cannot be read as parquet"),
        "nested.parquet": (parquet_bytes(pa.table({"a": [[1, 2], [3]]})), "which is no number"),
        # Arrow
        "cut.feather": (feather_bytes()[:-30], "cannot be read as feather"),
        "head.feather": (feather_bytes()[:300], "cannot be read|holds no rows|damaged"),
        "old.feather": (b"FEA1" + bytes(100), "Feather of version 1"),
        "bomb.feather": (
            lambda: feather_bytes(table({"a": np.zeros(8_000_000)}), compression="zstd"),
            "taken for damaged or hostile",
        ),
        "liar.feather": (lying_feather(), "taken for damaged or hostile"),
        "length.feather": (
            b"ARROW1\0\0\xff\xff\xff\xff" + struct.pack("<i", 2**31 - 1) + bytes(64),
            "cannot be read as feather",
        ),
        "text.arrow": (CSV.encode(), "cannot be read as arrow"),
        # NPY
        "cut.npy": (npy_bytes(X)[:-8], "damaged or cut off"),
        "more.npy": (npy_bytes(X) + bytes(8), "damaged or cut off"),
        "huge.npy": (npy_shape((10**12, 3)) + bytes(64), "declares an array of 1000000000000 × 3"),
        "overflow.npy": (npy_shape((2**63, 2**63)) + bytes(64), "declares an array"),
        "negative.npy": (npy_shape((-1, 3)) + bytes(64), "declares the shape"),
        "no-shape.npy": (npy_header("{'descr': '<f8'}") + bytes(64), "cannot be read as npy"),
        "code.npy": (npy_header(f"__import__('os').system('touch {marker}')"), "cannot be read as"),
        "deep.npy": (npy_header("(" * 9000), "cannot be read as npy"),
        "header.npy": (npy_header(" " * 200_000, version=2), "cannot be read as npy"),
        "objects.npy": (npy_bytes(objects), "Python objects.*unpickled"),
        "pickle.npy": (payload, "cannot be read as npy"),
        "records.npy": (npy_bytes(np.zeros(3, [("a", "f8")])), "holds records"),
        "complex.npy": (npy_bytes(X + 1j), "complex128 values: kernels need real numbers"),
        "text.npy": (npy_bytes(np.array([["a", "b"]])), "kernels need real numbers"),
        "flat.npy": (npy_bytes(X[:, 0]), r"array of shape \(40,\): rows and columns are needed"),
        "nan.npy": (npy_bytes(np.full((3, 2), np.nan)), "has no value in row 1"),
        # NPZ
        "no-zip.npz": (CSV.encode(), "cannot be read as npz"),
        "cut.npz": (npz_bytes([("X.npy", npy_bytes(X))])[:-30], "cannot be read as npz"),
        "bomb.npz": (lambda: zeros_npz(100), "taken for damaged or hostile"),
        "huge.npz": (npz_bytes([("X.npy", npy_shape((10**12, 3)))]), "bytes of numbers and holds"),
        "liar.npz": (lying_zip(), "cannot be read as npz|damaged|hostile"),
        "objects.npz": (npz_bytes([("X.npy", npy_bytes(objects))]), "Python objects.*unpickled"),
        "pickle.npz": (npz_bytes([("X.npy", payload)]), "cannot be read as npz"),
        "labels.npz": (
            npz_bytes([("X.npy", npy_bytes(X)), ("y.npy", npy_bytes(objects[0]))]),
            "Python objects",
        ),
        "many.npz": (npz_bytes([(f"{i}.npy", npy_bytes(X)) for i in "pq"]), "none is called X"),
        "encrypted.npz": (encrypted_zip(), "encrypted"),
        "outside.npz": (sparse_npz((2, 3), [0, 7], [0, 1, 2]), "cannot be read as npz"),
        "pointers.npz": (sparse_npz((2, 3), [0, 1], [0, 9, 2]), "cannot be read as npz"),
        "columns.npz": (sparse_npz((2, 10**12), [0, 1], [0, 1, 2]), "1,000,000,000,000 columns"),
        # LIBSVM
        "index.libsvm": (b"1 1:1\n1 2000000000:1\n", "largest index is 2,000,000,000"),
        "overflow.libsvm": (b"1 1:1\n1 99999999999999999999:1\n", "index is far too large"),
        "minus.libsvm": (b"1 -5:1\n", "holds '-5:1' where index:value is expected"),
        "order.libsvm": (b"1 3:1 2:1\n", "out of order: indices must rise"),
        "word.libsvm": (b"1 1:1\nyes 1:2\n", "line 2 holds 'yes' where a label is expected"),
        "pair.libsvm": (b"1 1:1\n1 2:x\n", "line 2 holds '2:x' where index:value is expected"),
        "binary.libsvm": (bytes(range(256)) * 40, "where a label is expected"),
    }


def good():
    """One good file of each format, to mutate."""
    return {
        "csv": CSV.encode(),
        "csv.gz": gzip.compress(CSV.encode()),
        "parquet": parquet_bytes(),
        "feather": feather_bytes(),
        "npy": npy_bytes(X),
        "npz": npz_bytes([("X.npy", npy_bytes(X))]),
        "libsvm": LIBSVM.encode(),
    }


def mutations():
    """Good files with a few bytes changed, cut out or put in, by a seed each."""
    found = {}
    for kind, content in good().items():
        for seed in range(MUTATIONS):
            random = np.random.default_rng([seed, len(content)])
            mutated = bytearray(content)
            # Half of them are hit where formats say what follows: at either end.
            ends = np.r_[0 : min(200, len(mutated)), max(len(mutated) - 400, 0) : len(mutated)]
            for _ in range(int(random.integers(1, 6))):
                place = int(random.choice(ends) if seed % 2 else random.integers(len(mutated)))
                place = min(place, len(mutated) - 1)
                action = random.integers(3)
                if action == 0:
                    mutated[place] = int(random.integers(256))
                elif action == 1:
                    del mutated[place : place + int(random.integers(1, 9))]
                else:
                    mutated[place:place] = random.bytes(int(random.integers(1, 9)))
            found[f"mutated-{seed}.{kind}"] = bytes(mutated)
    return found
