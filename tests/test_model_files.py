"""Model files that are damaged or hostile: each ends in a clear error, and nothing is run."""

import os
import re
import subprocess
import sys
import warnings
from contextlib import suppress

import numpy as np
import pytest

from forged_models import ANCHORS, MODELS, OLD, data, forged, frame, put_together, take_apart
from shell import sketchmeans
from sketchmeans import load, save
from sketchmeans.models import ModelFileError

N_MUTATIONS = 400
N_FORGERIES = 300


def saved(folder):
    """Return the bytes of a good file of each kind."""
    found = {}
    for name, make in MODELS.items():
        save(make(), folder / name)
        found[name] = (folder / name).read_bytes()
    return found


@pytest.fixture(scope="module")
def contents(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("good"))


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


def mutated(contents, seed, count):
    """Yield files with one bit flipped, bytes cut out or put in."""
    random = np.random.default_rng(seed)
    names = list(contents)
    for index in range(count):
        content = bytearray(contents[names[index % len(names)]])
        kind = index % 5
        at = int(random.integers(len(content)))
        if kind < 3:
            content[at] ^= 1 << int(random.integers(8))
        elif kind == 3:
            content = content[:at] + content[at + int(random.integers(1, 100)) :]
        else:
            content[at:at] = random.bytes(int(random.integers(1, 100)))
        yield bytes(content)


def test_every_mutated_file_is_refused(contents, tmp_path):
    """Checksums cover every byte, and zeros are checked between arrays: no flip goes unseen."""
    path = tmp_path / "mutated.skm"
    for content in mutated(contents, 0, N_MUTATIONS):
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


def forgeries(contents, seed, count):
    """Yield names of models, and files of them with something changed and checksums right."""
    random = np.random.default_rng(seed)
    for index in range(count):
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
        with suppress(AttributeError, TypeError, ValueError):  # the table itself is gone
            yield name, put_together(header, parts)


def loads_and_works(path, name, content):
    """Whether a file loads; then it predicts, or says in a ValueError why it cannot."""
    path.write_bytes(content)
    try:
        model = load(path)
    except ModelFileError:
        return False
    X = {"given": data() @ data().T, "named": frame()}.get(name, data())
    with warnings.catch_warnings(), suppress(ValueError):
        warnings.simplefilter("ignore")
        for method in {"predict", "transform", "score"} & set(dir(model)):
            getattr(model, method)(X)
    str(getattr(model, "certificate_", None))
    return True


def test_a_forgery_with_right_checksums_is_refused_or_can_be_used(contents, tmp_path):
    """No obscure error later: what loads predicts, or says in a ValueError why it cannot."""
    path = tmp_path / "forged.skm"
    loaded = sum(
        loads_and_works(path, name, content)
        for name, content in forgeries(contents, 1, N_FORGERIES)
    )
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
    with pytest.raises(ModelFileError, match=r"embedded null (byte|character)"):
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
