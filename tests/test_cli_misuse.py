"""The command line where options contradict each other: exit code 2, and the way out."""

import pytest

from shell import sketchmeans as run


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("choose {} --gamma 1 --gammas 1,2", "--gamma and --gammas exclude each other"),
        ("choose {} --gammas 1 --kernel neighbors", "--gammas is not read with --kernel neighbors"),
        ("compare {} -k 2 --kernel rbf --kernels rbf,linear", "cannot both be given"),
        ("compare {} -k 2 --kernels rbf,none", "'none' is not one of 'neighbors', 'rbf'"),
        ("certify {} --cluster-column ring", "give the --kernel to judge them by"),
        (
            "certify {} --cluster-column ring --kernel rbf --neighbors 5",
            "--anchors, --neighbors, --graphs and --metric need --kernel neighbors",
        ),
        (
            "certify {} --cluster-column ring --kernel rbf --report -",
            "--report - would be standard output",
        ),
        (
            "certify {} --cluster-column ring --label-column ring --kernel rbf",
            "--label-column and --cluster-column: leave the classes out with --columns",
        ),
        (
            "certify {} --model model.skm --standardize",
            "--standardize is not read with --model: columns are prepared as they were for it",
        ),
        ("predict model.skm {} --json -o -", "--json and the labels both go to standard output"),
        ("clutser {} -k 2", "No such command 'clutser'. Did you mean 'cluster'?"),
        ("dream {}", "No such command 'dream'."),
    ],
)
def test_options_that_exclude_each_other_are_refused_before_anything_is_read(command, said, rings):
    rings.with_name("model.skm").write_bytes(b"not read")
    words = command.format(rings).replace("model.skm", str(rings.with_name("model.skm"))).split()
    shown = run(*words, code=2)
    assert said in shown.stderr
    assert shown.stdout == ""


def test_a_kernel_that_is_not_square_is_refused_with_a_limit_as_without(rings):
    command = ["cluster", rings, "-k", 2, "--columns", "x,y", "--kernel", "precomputed"]
    plain = run(*command, code=1).stderr
    assert "must be square, not 300 × 2" in plain
    assert run(*command, "--memory-limit", "1GB", code=1).stderr == plain
