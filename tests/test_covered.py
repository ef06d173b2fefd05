"""The tool that keeps the figure of coverage, and tells it."""

import json
import re

import pytest
from tools import covered

REPORT = {
    "meta": {"version": "7.10.0"},
    "totals": {
        "percent_covered": 94.96,
        "covered_lines": 1900,
        "num_statements": 2000,
        "covered_branches": 474,
        "num_branches": 500,
    },
    "files": {
        f"src/{name}.py": {"summary": {"percent_covered": percent}}
        for name, percent in [("whole", 100.0), ("half", 50.0), ("most", 94.96)]
    },
}


def test_the_fingerprint_is_of_the_names_and_the_content_of_python_files(tmp_path):
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "a.py").write_text("1")
    first = covered.fingerprint(tmp_path)
    (tmp_path / "room" / "native.so").write_bytes(b"compiled here")
    assert covered.fingerprint(tmp_path) == first
    (tmp_path / "room" / "a.py").write_text("2")
    assert covered.fingerprint(tmp_path) != first
    (tmp_path / "room" / "a.py").write_text("1")
    (tmp_path / "room" / "a.py").rename(tmp_path / "room" / "b.py")
    assert covered.fingerprint(tmp_path) != first


def test_what_is_told_has_date_and_python_and_whether_src_has_changed():
    kept = covered.summary(REPORT, "0123", "2026-11-18", "make coverage")
    line = covered.told(kept, "0123")
    assert "94.9 % of lines and branches (1,900 of 2,000 lines, 474 of 500 branches)" in line
    assert "measured on 2026-11-18 by make coverage with Python" in line
    assert covered.told(kept, "4567") == f"{line}; src has changed since"
    assert list(kept["least"].items())[:2] == [("src/half.py", 50.0), ("src/most.py", 94.9)]


@pytest.mark.parametrize("percent", [94.96, 95.0])
def test_less_than_is_aimed_at_is_kept_and_is_an_error(percent, tmp_path, monkeypatch, capsys):
    totals = REPORT["totals"] | {"percent_covered": percent}
    monkeypatch.setattr(covered, "measured", lambda: REPORT | {"totals": totals})
    monkeypatch.setattr(covered, "KEPT", tmp_path / "coverage.json")
    if percent < covered.LEAST:
        with pytest.raises(SystemExit, match="less than 95 %"):
            covered.main("keep")
    else:
        covered.main("keep")
    assert "50.0 %  src/half.py" in capsys.readouterr().out
    covered.main("show")
    assert not capsys.readouterr().out.strip().endswith("changed since")


def test_what_the_repository_keeps_is_shown(capsys):
    covered.main("show")
    kept = json.loads(covered.KEPT.read_text())
    assert f" {kept['percent']} % of lines and branches" in capsys.readouterr().out
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", kept["date"])
