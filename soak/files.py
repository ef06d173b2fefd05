"""Damaged and hostile files: model files and data files, as the tests know them and drawn anew.

A file is read, or ends in one clear error; nothing is run, unpacked or left behind, and no file
takes a hundred megabytes. What makes the files is shared with the tests.
"""

from __future__ import annotations

import re
import sys
import tempfile
from itertools import islice
from pathlib import Path

from sketchmeans import load
from sketchmeans.models import ModelFileError
from soak.running import Cases, Check

sys.path.append(str(Path(__file__).parents[1] / "tests"))

import hostile_files
import test_hostile_data as data_files
import test_model_files as model_files
from forged_models import HEADERS

BATCH = 20
"""Seeds of drawn data files that one process reads."""
MEGABYTES = 100e6


def damaged_models(seed: int, count: int) -> Cases:
    """Damage model files: none may load."""
    with tempfile.TemporaryDirectory() as place:
        folder, path = Path(place), Path(place) / "damaged.skm"
        for index, content in enumerate(
            model_files.mutated(model_files.saved(folder), seed, count)
        ):
            path.write_bytes(content)
            wrong = [f"damaged model {index} (seed {seed}) was loaded"]
            try:
                load(path)
            except ModelFileError:
                wrong = []
            except Exception as error:
                wrong = [f"damaged model {index} (seed {seed}): {error!r}"]
            yield "", wrong


def hostile_models(seed: int, count: int) -> Cases:
    """Load every hostile model file that the tests know: each says what is wrong."""
    with tempfile.TemporaryDirectory() as place:
        folder, path, trap = Path(place), Path(place) / "hostile.skm", Path(place) / "trap"
        contents = model_files.saved(folder)
        for name, content, message in islice(model_files.forged(contents, str(trap)), count):
            path.write_bytes(content)
            said = "it was loaded"
            try:
                load(path)
            except ModelFileError as error:
                said = str(error)
            except Exception as error:
                said = repr(error)
            wrong = [] if re.search(message, said) else [f"hostile model {name}: {said}"]
            yield "", wrong + ([f"hostile model {name} ran code"] if trap.exists() else [])


def forged_models(seed: int, count: int) -> Cases:
    """Forge model files with right checksums: what loads can be used."""
    with tempfile.TemporaryDirectory() as place:
        folder, path = Path(place), Path(place) / "forged.skm"
        forged = model_files.forgeries(model_files.saved(folder), seed, 2 * count)
        for index, (name, content) in enumerate(islice(forged, count)):
            try:
                yield "loaded" if model_files.loads_and_works(path, name, content) else "", []
            except Exception as error:
                yield "", [f"forged model {index}, {name} (seed {seed}): {error!r}"]


def known_data(seed: int, count: int) -> Cases:
    """Read every damaged or hostile data file that the tests know, of which there are a hundred."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        marker = folder / "marker"
        known = dict(islice(hostile_files.damaged(marker).items(), count))
        for name, (content, _) in known.items():
            (folder / name).write_bytes(content() if callable(content) else content)
        outcome = _read(folder, marker)
        for name, (_, message) in known.items():
            found = outcome[name]
            wrong = _broken(name, found)
            if found["code"] != 1 or not re.search(message, found["err"]):
                wrong.append(f"{name}: ended with {found['code']}: {found['err'][-300:]}")
            yield "", wrong


def drawn_data(seed: int, count: int) -> Cases:
    """Change bytes of good data files of every format, by seeds that no test has."""
    first = 1_000 * (seed + 1)
    kinds = len(hostile_files.good())
    for start in range(0, -(-count // kinds), BATCH):
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            stop = min(start + BATCH, -(-count // kinds))
            for name, content in hostile_files.mutations(
                range(first + start, first + stop)
            ).items():
                (folder / name).write_bytes(content)
            for name, found in _read(folder, folder / "marker").items():
                yield "read" if found["code"] == 0 else "", _broken(name, found)


def _read(folder: Path, marker: Path) -> dict[str, dict]:
    for kind, content in hostile_files.good().items():
        (folder / f"good.{kind}").write_bytes(content)
    before = {path.name for path in folder.iterdir()}
    outcome = data_files.run_through(folder)
    found: dict[str, dict] = outcome["found"]
    last = next(reversed(found.values()))
    last["left"] = sorted({path.name for path in folder.iterdir()} - before)
    last["run"] = outcome["run"] + (["the marker"] if marker.exists() else [])
    return found


def _broken(name: str, found: dict) -> list[str]:
    wrong = []
    if not data_files.is_read_or_refused(found):
        wrong.append(f"{name}: {found['error']} {found['err'][-300:]}")
    if found["above"] >= MEGABYTES:
        wrong.append(f"{name}: took {found['above'] / 1e6:.0f} MB")
    if found.get("left"):
        wrong.append(f"files were left: {found['left']}")
    if found.get("run"):
        wrong.append(f"something was run: {found['run']}")
    return wrong


CHECKS = {
    "damaged model files": Check(1_000, damaged_models),
    "hostile model files": Check(len(HEADERS) + 150, hostile_models),
    "forged model files": Check(1_000, forged_models),
    "damaged and hostile data files": Check(len(data_files.MESSAGES), known_data),
    "drawn data files": Check(2_000, drawn_data),
}
