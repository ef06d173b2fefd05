"""Data files that are damaged or hostile: every class of failure once, and seeded mutations."""

import bz2
import gzip
import io
import json
import lzma
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


def lying_zip(name="X.npy", member=None):
    """An archive whose directory claims that its member has more bytes than it has."""
    member = npy_bytes(X) if member is None else member
    content = bytearray(npz_bytes([(name, member)], zipfile.ZIP_STORED))
    place = content.rindex(b"PK\x01\x02") + 24
    size = struct.unpack_from("<I", content, place)[0]
    struct.pack_into("<I", content, place, size + 8_000_000)
    return bytes(content)


def encrypted_zip(name="X.npy", member=None):
    content = bytearray(npz_bytes([(name, npy_bytes(X) if member is None else member)]))
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(mark) + offset] |= 1
    return bytes(content)


def endless_zip():
    """An archive whose one file unpacks to a thousand times its size."""
    return npz_bytes([("data.csv", b"0,0,0\n" * 3_000_000)])


def greedy_xz():
    """A file that asks for half a gigabyte before it unpacks anything."""
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 29}]
    return lzma.compress(CSV.encode(), filters=filters)


def packed_files():
    """Return files that are packed in a wrong or hostile way."""
    text = CSV.encode()
    zst = pa.compress(text, "zstd", asbytes=True)
    zeros = b"0,0,0\n" * 3_000_000
    return {
        "cut.csv.xz": (lzma.compress(text)[:-20], "ends before its last byte|cannot be read"),
        "damaged.csv.xz": (lzma.compress(text)[:60] + bytes(200), "cannot be read as csv"),
        "greedy.csv.xz": (greedy_xz, "takes more than 100 MB to unpack"),
        "bomb.csv.xz": (lambda: lzma.compress(zeros), "taken for damaged or hostile.*unxz"),
        "cut.csv.bz2": (bz2.compress(text)[:-20], "cannot be read as csv"),
        "bomb.csv.bz2": (lambda: bz2.compress(zeros), "taken for damaged or hostile.*bunzip2"),
        "cut.csv.zst": (zst[:-20], "cannot be read as csv: Truncated"),
        "more.csv.zst": (zst + b"more", "cannot be read as csv"),
        "bomb.csv.zst": (
            lambda: pa.compress(zeros, "zstd", asbytes=True),
            "taken for damaged or hostile.*unzstd",
        ),
        "bomb.csv.zip": (endless_zip, "taken for damaged or hostile.*unzip"),
        "two.zip": (npz_bytes([("a.csv", CSV), ("b.csv", CSV)]), "holds 2 files .'a.csv', 'b.csv'"),
        "none.zip": (npz_bytes([]), "holds no file|cannot be told"),
        "names.zip": (
            npz_bytes([("\x1b[2J" * 99, CSV), ("../../b.csv", CSV)]),
            r"holds 2 files .'\\x1b.*'\.\./\.\./b\.csv'",
        ),
        "again.zip": (npz_bytes([("a.zip", npz_bytes([("a.csv", CSV)]))]), "cannot be told from"),
        "encrypted.zip": (encrypted_zip("data.csv", CSV), "encrypted"),
        "liar.csv.zip": (lying_zip("data.csv", CSV), "cannot be read as csv|damaged|hostile"),
        "cut.csv.zip": (npz_bytes([("a.csv", CSV)])[:-30], "cannot be read as csv"),
        "pickle.zip": (npz_bytes([("data.pkl", b"x")]), "a pickle can run any program"),
        "packed.xlsx": (gzip.compress(b"PK"), "packed by gzip, which xlsx files are not"),
    }


def json_lines():
    """Return JSON lines that are damaged or hostile."""
    wide = json.dumps({f"x{index}": 0 for index in range(20_000)})
    return {
        "cut.jsonl": (b'{"a": 1}\n{"a": ', "line 2 is no JSON"),
        "array.jsonl": (b'[\n{"a": 1}\n]', "line 1 is no JSON.*jq -c"),
        "number.jsonl": (b"1\n2\n", "line 1 is neither an object nor an array"),
        "mixed.jsonl": (b'{"a": 1}\n[1]\n', "line 2 is not as the lines before"),
        "ragged.jsonl": (b"[1, 2]\n[1]\n", "line 2 is not as the lines before"),
        "deep.jsonl": (b"[" * 100_000, "line 1 is no JSON"),
        "digits.jsonl": (b'{"a": ' + b"9" * 10_000 + b"}", "line 1 is no JSON"),
        "nested.jsonl": (b'{"a": 1}\n{"a": {"b": 2}}\n', "'a' holds .'b': 2. in row 2"),
        "infinite.jsonl": (b'{"a": 1}\n{"a": -Infinity}\n', "infinite value in row 2"),
        "wide.jsonl": (wide.encode() + b"\n{}" * 100_000, "taken for damaged or hostile"),
        "empty.jsonl": (b"{}\n{}\n", "no column left"),
        "bytes.jsonl": (b'{"a": "\xff\x00"}\n', "is not UTF-8 text"),
    }


def xlsx_bytes(sheet=None, changed=()):
    """A workbook of one sheet; ``changed`` replaces parts, or leaves them out if None."""
    rows = "".join(
        f'<row r="{number}">'
        + "".join(
            f'<c r="{name}{number}"><v>{value!r}</v></c>'
            for name, value in zip("ABC", row, strict=True)
        )
        + "</row>"
        for number, row in enumerate(X.tolist(), start=1)
    )
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    relation = f'<Relationship Id="r1" Type="{office}/worksheet" Target="worksheets/sheet1.xml"/>'
    sheets = f'<sheets><sheet name="one" sheetId="1" xmlns:r="{office}" r:id="r1"/></sheets>'
    cells = rows if sheet is None else sheet
    parts = {
        "xl/workbook.xml": f'<workbook xmlns="{main}">{sheets}</workbook>',
        "xl/_rels/workbook.xml.rels": f"<Relationships>{relation}</Relationships>",
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{cells}</sheetData>'
        "</worksheet>",
    }
    parts |= dict(changed)
    return npz_bytes([(name, text) for name, text in parts.items() if text is not None])


def excel_files():
    """Return workbooks that are damaged or hostile."""
    sheet, book = "xl/worksheets/sheet1.xml", "xl/workbook.xml"
    rels, words = "xl/_rels/workbook.xml.rels", "xl/sharedStrings.xml"
    good = xlsx_bytes()
    laughs = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "' + "&a;" * 50 + '">]><x>&b;</x>'
    link = '<!DOCTYPE x SYSTEM "http://127.0.0.1:9/x.dtd"><x/>'
    file = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><x>&a;</x>'
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"

    def leads(target, mode=""):
        relation = f'<Relationship Id="r1" Type="{office}/worksheet" Target="{target}" {mode}/>'
        return xlsx_bytes(changed=[(rels, f"<Relationships>{relation}</Relationships>")])

    def row(cell):
        return xlsx_bytes('<row r="1"><c r="A1"><v>1</v></c></row><row r="2">' + cell + "</row>")

    wide = "".join(f'<c r="{a}{b}1"><v>1</v></c>' for a in LETTERS for b in LETTERS)
    many = f'<row r="1">{wide}</row>' + '<row><c r="AA2"><v>1</v></c></row>' * 40_000
    return {
        "laughs.xlsx": (xlsx_bytes(changed=[(words, laughs)]), "declares a document type"),
        "dtd.xlsx": (xlsx_bytes(changed=[(sheet, link)]), "declares a document type"),
        "entity.xlsx": (xlsx_bytes(changed=[(book, file)]), "declares a document type"),
        "styles.xlsx": (xlsx_bytes(changed=[("xl/styles.xml", link)]), "declares a document type"),
        "linked.xlsx": (leads("http://127.0.0.1:9/a.xml", 'TargetMode="External"'), "no sheet"),
        "outside.xlsx": (leads("../../../etc/passwd"), "has no part 'etc/passwd'"),
        "absolute.xlsx": (leads("/etc/passwd"), "has no part 'etc/passwd'"),
        "bare.xlsx": (xlsx_bytes(changed=[(book, None)]), "has no part 'xl/workbook.xml'"),
        "text.xlsx": (CSV.encode(), "cannot be read as xlsx"),
        "cut.xlsx": (good[:-30], "cannot be read as xlsx"),
        "old.xlsx": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "encrypted, or in Excel"),
        "xml.xlsx": (xlsx_bytes(changed=[(sheet, "<worksheet><row>")]), "cannot be read as xlsx"),
        "deep.xlsx": (xlsx_bytes("<row>" * 500), "more than 32 levels"),
        "empty.xlsx": (xlsx_bytes(""), "holds no rows"),
        "number.xlsx": (row('<c r="A2"><v>one</v></c>'), "cannot be read as xlsx"),
        "word.xlsx": (row('<c r="A2" t="s"><v>7</v></c>'), "a cell with text '7' of 0"),
        "column.xlsx": (row('<c r="ZZZ2"><v>1</v></c>'), "a cell lies in column 18,278"),
        "formula.xlsx": (row('<c r="A2"><f>SUM(1)</f></c>'), "holds '=SUM.1.' in row 2"),
        "error.xlsx": (row('<c r="A2" t="e"><v>#DIV/0!</v></c>'), "has no value in row 2"),
        "bomb.xlsx": (
            lambda: xlsx_bytes(changed=[(words, "<sst>" + " " * 20_000_000 + "</sst>")]),
            "taken for damaged or hostile. If you trust it, save it as CSV",
        ),
        "wide.xlsx": (lambda: xlsx_bytes(many), "taken for damaged or hostile"),
    }


LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


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
        **packed_files(),
        **json_lines(),
        **excel_files(),
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
        "csv.bz2": bz2.compress(CSV.encode()),
        "csv.xz": lzma.compress(CSV.encode()),
        "csv.zst": pa.compress(CSV.encode(), "zstd", asbytes=True),
        "csv.zip": npz_bytes([("data.csv", CSV)]),
        "txt": CSV.replace(",", "  ").encode(),
        "jsonl": "".join(json.dumps(row) + "\n" for row in X.tolist()).encode(),
        "xlsx": xlsx_bytes(),
        "parquet": parquet_bytes(),
        "feather": feather_bytes(),
        "npy": npy_bytes(X),
        "npz": npz_bytes([("X.npy", npy_bytes(X))]),
        "libsvm": LIBSVM.encode(),
    }


def mutations(seeds=range(MUTATIONS)):
    """Good files with a few bytes changed, cut out or put in, by a seed each."""
    found = {}
    for kind, content in good().items():
        for seed in seeds:
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
