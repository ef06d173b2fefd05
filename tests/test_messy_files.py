"""Messy files: each comes to labels by three commands or fewer, as the page beside them says."""

import csv
import re
import shlex
import shutil
from pathlib import Path

import pytest
from sklearn.metrics import adjusted_rand_score

from shell import sketchmeans

FOLDER = Path(__file__).parent / "messy"
PAGE = (FOLDER / "README.md").read_text()
COMMANDS = {
    name: block.splitlines()
    for name, block in re.findall(r"^\*\*(.+?)\*\*: .*?```sh\n(.*?)```", PAGE, re.DOTALL | re.M)
}
GROUPS = {
    "messstellen.csv": lambda name: name.split()[0] in ("Köln", "Düren", "Würselen", "Übach"),
    "samples.csv": lambda name: name[0],
    "survey.csv": lambda name: name[0],
    "orders.csv": lambda name: name[0],
    "stars.dat": lambda name: name.split("-")[0],
    "sessions.jsonl.xz": lambda name: name.split("-")[0],
}
"""The group of a row by its name, where it is not the first word of it."""
SAID = {
    "weine.csv": ["If it names the rows, say --id-column Flasche;", "decimal commas: '"],
    "messstellen.csv": ["is not UTF-8 and is read as cp1252"],
    "samples.csv": ["3 empty columns at the end of the lines of samples.csv are left out."],
    "stars.dat": [""],
    "survey.csv": [
        "Leave such rows out with --drop-missing, or fill them in with",
        "filled in: 14",
    ],
    "machines.txt": ["is read as UTF-16, by the mark that it begins with"],
    "sensors.csv": [
        "has 2 columns called 'temp': the columns 2, 4. Name them by these",
        "'temp (2)'",
    ],
    "orders.csv": [
        "There are dates or times in 'placed'.",
        "Leave the column out: --columns channel,amount,items; or turn it into numbers",
        "",
    ],
    "sessions.jsonl.xz": ["values are missing, in 6 rows and 2 columns", "6 of 50 rows"],
    "greenhouse.xlsx": [
        "has the sheets 'read me', 'measurements', and the first is read. Say --sheet measure",
        "column 'sown' holds '2024-03-0",
        "",
    ],
    "flowers.zip": [""],
    "soil.txt": ["column 1 has no name", ""],
}
"""What each command says beside its results."""


FREE = {"--standardize", "--columns", "--id-column", "--na-values"}
"""Options that a command may bring in by itself."""


def flags(text):
    return set(re.findall(r"--[a-z-]+", text))


def test_the_page_has_every_file_and_ten_or_more():
    files = {path.name for path in FOLDER.iterdir()} - {"README.md"}
    assert files == set(COMMANDS) == set(SAID)
    assert len(files) >= 10


@pytest.mark.parametrize("name", COMMANDS)
def test_a_messy_file_comes_to_labels_by_three_commands_or_fewer(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(FOLDER / name, tmp_path)
    commands = COMMANDS[name]
    assert len(commands) <= 3
    named = flags(commands[0])
    for command, said in zip(commands, SAID[name], strict=True):
        assert f" {name} " in command
        assert flags(command) <= named | FREE, "no message has named this option"
        program, *words = shlex.split(command)
        assert program == "sketchmeans"
        shown = sketchmeans(*words, code=0 if command == commands[-1] else 1)
        named |= flags(shown.stderr)
        assert said in shown.stderr, shown.stderr
    with (tmp_path / "labels.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))[1:]
    group = GROUPS.get(name, lambda text: text.split()[0])
    assert len(rows) >= 40
    assert adjusted_rand_score([group(row[0]) for row in rows], [row[1] for row in rows]) == 1
