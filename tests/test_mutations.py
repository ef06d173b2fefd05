"""The tool that changes the source: what it changes, and that tests notice."""

import ast

import pytest
from tools.mutants import _interval, drawn
from tools.mutations import mutated, mutations


def after(source):
    """Return how a source reads after each of its mutations."""
    return [ast.unparse(mutated(source, one.number)) for one in mutations(source)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a < b", ["a <= b"]),
        ("a is None", ["a is not None"]),
        ("a + b * c", ["a - b * c", "a + b / c"]),
        ("a += 1", ["a -= 1", "a += 2"]),
        ("a and b", ["a or b"]),
        ("not a", ["a"]),
        ("-a", ["a"]),
        ("x = True", ["x = False"]),
        ("x = 0.5", ["x = 2.0"]),
        ("if a:\n    b", ["if not a:\n    b"]),
        ("max(a, b)", ["min(a, b)"]),
        ("np.maximum(a, b)", ["np.minimum(a, b)"]),
        ("def f():\n    return a", ["def f():\n    return None"]),
    ],
)
def test_each_change_is_made_alone(source, expected):
    assert after(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        "raise ValueError(f'{a + 1} < {b}')",
        "x = f'{a - 1}'",
        "x: int | None = a",
        "'a' + b",
        "def f():\n    return None",
        "def f():\n    '''Return a < b.'''",
    ],
)
def test_texts_types_and_nothing_are_left_alone(source):
    assert mutations(source) == []


def test_a_mutation_says_where_it_stands_and_how_it_reads():
    (one,) = mutations("x = 1\ny = a < b\n"[6:])
    assert (one.line, one.name) == (1, "1:4 a < b → a <= b")
    with pytest.raises(IndexError):
        mutated("a < b", 1)


def test_a_draw_has_of_each_module_its_share_and_a_larger_one_begins_with_it():
    every = {name: mutations("a < b\n" * count) for name, count in (("x", 60), ("y", 30), ("z", 3))}
    some = drawn(every, 31, 0)
    assert [sum(name == module for name, _ in some) for module in every] == [20, 10, 1]
    assert len(set(some)) == 31
    assert drawn(every, 62, 0)[:31] == some
    assert drawn(every, 31, 1) != some
    assert len(drawn(every, 999, 0)) == 93


def test_the_score_of_all_is_told_with_what_a_sample_leaves_open():
    low, high = _interval(90, 100)
    assert (round(low, 4), round(high, 4)) == (0.8256, 0.9448)  # Wilson, 1927
    assert _interval(100, 100)[1] == pytest.approx(1)
