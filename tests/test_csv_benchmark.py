"""The benchmark of reading CSV compares two trees, and notices if they read different numbers."""

import subprocess
from pathlib import Path

import pytest
from benchmarks import csv_files

ROOT = Path(__file__).parents[1]


def test_two_trees_read_the_same_file_in_turns():
    try:
        subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this is no clone of the repository, so that there is no earlier commit")
    report = csv_files.main(rows=300, before="HEAD", turns=1)
    speed, processor = report.targets
    assert speed.name == "speed of reading 300 rows of CSV, before over after"
    assert speed.limit == processor.limit == 0.9
    assert min(speed.figure, processor.figure) > 0
    names = [row[0] for row in report.tables[0]["rows"]]
    assert names == ["before", "after", "commas", "spaces"]
