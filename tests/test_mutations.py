"""The tool that changes the source: what it changes, and that tests notice."""

import ast

import pytest
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
