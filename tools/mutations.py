"""Small changes to a source file, one at a time: what a test should notice.

A mutation is a place in the syntax tree and another node for it: a comparison that takes in its
border or leaves it out, another operation, a number one off, a condition turned round, a minimum
for a maximum, no result. Texts, types and what is said when something is refused are left alone.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

COMPARED = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
COMPUTED = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
}
TWINS = {
    "min": "max",
    "max": "min",
    "minimum": "maximum",
    "maximum": "minimum",
    "any": "all",
    "all": "any",
    "floor": "ceil",
    "ceil": "floor",
    "argmin": "argmax",
    "argmax": "argmin",
}
LEFT_ALONE = (ast.Raise, ast.Assert, ast.JoinedStr)
"""Nodes in which nothing is changed: the text of an error is not arithmetic."""


@dataclass(frozen=True)
class Mutation:
    """One change: where it stands, and how it reads before and after."""

    line: int
    column: int
    last_line: int
    before: str
    after: str
    number: int
    """Among all mutations of the file."""

    @property
    def name(self) -> str:
        """Tell it from the others of its file."""
        return f"{self.line}:{self.column} {self.before} → {self.after}"


def mutations(source: str) -> list[Mutation]:
    """Return every mutation of a source file, in its order."""
    return [
        Mutation(
            node.lineno,
            node.col_offset,
            node.end_lineno or node.lineno,
            _line(node),
            _line(other),
            number,
        )
        for number, (_, _, node, other) in enumerate(_changes(ast.parse(source)))
    ]


def mutated(source: str, number: int) -> ast.Module:
    """Return the syntax tree of a source file with one of its mutations."""
    tree = ast.parse(source)
    for index, (parent, place, _, other) in enumerate(_changes(tree)):
        if index == number:
            field, position = place
            if position is None:
                setattr(parent, field, other)
            else:
                getattr(parent, field)[position] = other
            return ast.fix_missing_locations(tree)
    raise IndexError(f"there is no mutation {number}")


def _line(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())


_Place = tuple[str, int | None]


def _changes(tree: ast.AST) -> Iterator[tuple[ast.AST, _Place, ast.AST, ast.AST]]:
    """Yield parent, place, node and the node for it, of every change below a node."""
    for place, child in _children(tree):
        if isinstance(child, LEFT_ALONE):
            continue
        if isinstance(child, ast.FunctionDef) and child.name == "__repr__":
            continue
        for other in _others(child):
            yield tree, place, child, ast.copy_location(other, child)
        yield from _changes(child)


def _children(node: ast.AST) -> Iterator[tuple[_Place, ast.AST]]:
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "type_params", "bases"):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(value, ast.AST):
            yield (field, None), value
        elif isinstance(value, list):
            for position, child in enumerate(value):
                if isinstance(child, ast.AST):
                    yield (field, position), child


def _others(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Compare(ops=[first, *_]) if type(first) in COMPARED:
            yield _with(node, ops=[COMPARED[type(first)](), *node.ops[1:]])
        case ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in COMPUTED:
            if not _is_text(node):
                yield _with(node, op=COMPUTED[type(op)]())
        case ast.BoolOp(op=op):
            yield _with(node, op=ast.Or() if isinstance(op, ast.And) else ast.And())
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield operand
        case ast.Constant(value=bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(value=int() as value):
            yield ast.Constant(value + 1)
        case ast.Constant(value=float() as value):
            yield ast.Constant(2 * value + 1)
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            if isinstance(test, ast.Name | ast.Attribute | ast.Call):
                yield _with(node, test=ast.copy_location(ast.UnaryOp(ast.Not(), test), test))
        case ast.Call(func=ast.Name(id=name)) if name in TWINS:
            yield _with(node, func=ast.Name(TWINS[name], ast.Load()))
        case ast.Call(func=ast.Attribute(attr=name)) if name in TWINS:
            yield _with(node, func=_with(node.func, attr=TWINS[name]))
        case ast.Return(value=ast.AST() as value) if not _is_none(value):
            yield _with(node, value=ast.Constant(None))


def _with(node: ast.AST, **changes: object) -> ast.AST:
    other = copy.copy(node)
    for field, value in changes.items():
        setattr(other, field, value)
    return other


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_text(node: ast.AST) -> bool:
    return any(
        isinstance(part, ast.JoinedStr)
        or (isinstance(part, ast.Constant) and isinstance(part.value, str))
        for part in (getattr(node, "left", None), getattr(node, "right", None))
    )
