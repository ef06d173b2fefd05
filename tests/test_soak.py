"""The soak itself: every part is there, its seed gives the same cases, and a violation is told."""

import itertools

import pytest
from soak import __main__ as command
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
