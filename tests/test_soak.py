"""The soak itself: every part is there, its seed gives the same cases, and a violation is told."""

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from soak import __main__ as command
from soak import memory, seeds
from soak.registry import PARTS, checks_of
from soak.running import Check, Found, run_part, table

DRAWN = {
    "certificates": ["fits against all partitions"],
    "zoo": ["difficult inputs"],
    "files": ["forged model files"],
}
"""Checks that are quick enough to run a few cases of."""


@pytest.mark.parametrize("part", PARTS)
def test_every_part_has_checks_with_a_reason(part):
    checks = checks_of(part)
    assert checks
    for check in checks.values():
        assert check.cases > 0
        assert check.run.__doc__ or check.run.__qualname__.endswith("run_all")


@pytest.mark.parametrize(("part", "name"), [(p, n) for p, names in DRAWN.items() for n in names])
def test_a_seed_gives_the_same_cases_and_nothing_is_broken(part, name):
    check = checks_of(part)[name]
    one, two = (list(itertools.islice(check.run(7, 12), 12)) for _ in range(2))
    assert one == two
    assert len(one) == 12
    assert [broken for _, broken in one if broken] == []


def test_a_violation_is_told_and_ends_with_an_error(monkeypatch, capsys):
    def some(seed, count):
        for index in range(count):
            yield "odd" if index % 2 else "", [f"{index} of seed {seed}"] if index == 2 else []

    checks = {"a check": Check(5, some)}
    monkeypatch.setattr(command, "checks_of", lambda part: checks)
    assert command.main(["files", "--seed", "3"]) == 1
    said = capsys.readouterr().out
    assert "BROKEN: 2 of seed 3" in said
    assert "| files | a check | 5 | 2 odd | 1 | 0 |" in said
    assert "5 cases, 1 violations, 0 hangs (seed 3" in said
    assert command.main(["files", "--cases", "2"]) == 0
    with pytest.raises(SystemExit):
        command.main(["nothing"])
    assert "there are certificates, threads" in capsys.readouterr().err


def test_time_that_is_up_ends_a_part_and_is_told(capsys):
    (found,) = run_part(
        "files", {"endless": Check(10**9, lambda *_: itertools.repeat(("", [])))}, 0, 1e-4, None
    )
    assert 0 < found.cases < 10**9
    assert "of 1,000,000,000, the time was up" in found.row()
    assert "violations, 0 hangs" in table([Found("files", "nothing", 0), found], 0)


def test_time_that_is_up_loses_nothing_of_cases_that_were_run_together():
    def lots(seed, count):
        for index in range(count):
            yield "", [f"{index}"] if index == 4 else []

    (found,) = run_part("files", {"lots": Check(100, lots, lot=5)}, 0, 0.0, None)
    assert found.cases == 5
    assert found.violations == ["4"]


def test_memory_brings_every_two_options_together():
    random = np.random.default_rng(1)
    possible = set().union(*(memory.pairs(memory.drawn(random)) for _ in range(4000)))
    (check,) = checks_of("memory").values()
    met = set().union(*map(memory.pairs, memory.spread(0, check.cases)))
    assert possible <= met


def test_memory_goes_on_after_a_case_that_ends_its_process(monkeypatch):
    """One case is kept, one breaks its limit, one ends the process that measures."""
    script = """
import json, sys
for case in json.load(sys.stdin):
    print(json.dumps(case["sizes"]) if case["sizes"] else sys.exit("no room"), flush=True)
"""
    sizes = iter([[1, 2, 3], [], [3, 2, 3], [1, 2, 3]])
    monkeypatch.setattr(memory.test_memory_limits, "MEASURE", script)
    monkeypatch.setattr(
        memory, "spread", lambda *_: ({"kernel": "rbf", "sizes": size} for size in sizes)
    )
    told = [broken for _, broken in memory.limited(0, 4)]
    assert [len(broken) for broken in told] == [0, 1, 1, 0]
    assert "ended with 1: no room" in told[1][0]
    assert "peak / plan / limit 0.0 / 0.0 / 0.0 MB" in told[2][0]


def test_a_statistical_test_that_fails_is_told_with_its_draw(monkeypatch):
    failed = ["tests/test_a.py::test_b[early-draw=6]: assert 1", "tests/test_a.py: SyntaxError"]
    asked = []

    def tested(files, **environment):
        asked.append(environment["SKETCHMEANS_SEED"])
        first, last = map(int, asked[-1].split("-"))
        names = [f"tests/test_a.py::test_c[draw={draw}]" for draw in range(first, last + 1)]
        return names, failed if len(asked) == 1 else []

    monkeypatch.setattr(seeds, "_tested", tested)
    found = list(seeds.statistical(4, 8))
    assert asked == ["4-8", "9-11"]
    assert [kind for kind, _ in found] == [f"of {n} tests" for n in (2, 1, 2, 1, 1, 1, 1, 1)]
    assert {4 + place: broken for place, (_, broken) in enumerate(found) if broken} == {
        4: failed[1:],
        6: failed[:1],
    }


def test_seeds_know_what_passed_and_what_failed(monkeypatch, tmp_path):
    (tmp_path / "tests").mkdir()
    file = tmp_path / "tests" / "test_some.py"
    file.write_text("def test_good(): pass\ndef test_bad(): assert 1 == 2\n")
    monkeypatch.setattr(seeds, "ROOT", tmp_path)
    passed, failed = seeds._tested(["--numprocesses=1", str(file)])
    assert passed == ["tests/test_some.py::test_good"]
    assert len(failed) == 1
    assert failed[0].startswith("tests/test_some.py::test_bad: assert 1 == 2")


@pytest.mark.parametrize(("last", "told"), [("time.sleep(60)", "hangs"), ("exit(3)", "ended with")])
def test_seeds_take_silence_for_a_hang_and_keep_what_was_said_before(
    last, told, monkeypatch, tmp_path
):
    """How long all takes is not asked: that is up to the load of the machine."""
    lines = "print('[gw0] [ 1%] PASSED tests/a.py::b[draw=1] ', flush=True); time.sleep(1.5)\n"
    (tmp_path / "pytest.py").write_text(f"import time\n{3 * lines}{last}\n")
    monkeypatch.setattr(seeds, "ROOT", tmp_path)
    monkeypatch.setattr(seeds, "SILENCE", 4.0)
    passed, failed = seeds._tested([])
    assert passed == ["tests/a.py::b[draw=1]"] * 3
    assert len(failed) == 1
    assert failed[0].startswith(f"pytest {told}")


FORKS = """
import faulthandler, json, os, time
from soak.threads import forks
faulthandler.dump_traceback_later(100, exit=True)  # as soak.running does for every case
parent = os.getpid()
jobs = {"good": lambda: "same", "endless": lambda: os.getpid() == parent or time.sleep(60)}
print(json.dumps(forks(jobs, {"good": "same", "endless": True}, 2, deadline=3.0)))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_children_of_a_run_that_is_watched_for_hangs_end_and_are_themselves_watched():
    out = subprocess.run(
        [sys.executable, "-c", FORKS],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(out.stdout) == ["in child 1: endless ended with -14"]
    assert "in _fit_in_child" in out.stderr
