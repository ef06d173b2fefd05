"""What functions, classes and objects are made of, taken apart for their description."""

from __future__ import annotations

import copyreg
import dis
import functools
import re
import sys
import sysconfig
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Named = tuple[str, Any]

_INSTALLED = {"site-packages", "dist-packages"}
"""Folders in which installed packages lie, of Python itself or of a system."""
_SILENT = re.compile(r"__annotate(_func)?__|_abc_impl")
"""What classes hold that says nothing of what they do."""


def library_name(value: Any) -> str | None:
    """Return the name under which a library has a value, and the version; None if none has it.

    What a function of NumPy does is known by these; its body may not even be Python.
    """
    if isinstance(value, types.ModuleType):
        return (
            f"{value.__name__}{_version(value.__name__)}" if _is_library(value.__name__) else None
        )
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if isinstance(value, types.BuiltinFunctionType) and isinstance(
        value.__self__, types.ModuleType
    ):
        module = value.__self__.__name__
    if not isinstance(module, str) or not isinstance(name, str) or not _is_library(module):
        return None
    found: Any = sys.modules[module]
    for one in name.split("."):
        found = getattr(found, one, None)
    return f"{module}.{name}{_version(module)}" if found is value else None


def _version(module: str) -> str:
    version = getattr(sys.modules.get(module.partition(".")[0]), "__version__", None)
    return f" {version}" if isinstance(version, str) else ""


def _is_library(module: str) -> bool:
    """Whether a module is of Python itself, was installed, or is ours: not its user's."""
    if module == "__main__" or module not in sys.modules:
        return False
    if module.partition(".")[0] == "sketchmeans":
        return True
    file = getattr(sys.modules[module], "__file__", None)
    if file is None:  # built in, or a folder of modules
        return module in sys.builtin_module_names
    path = Path(file)
    own = (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))
    return any(map(path.is_relative_to, own)) or not _INSTALLED.isdisjoint(path.parts)


def content_of(code: types.CodeType) -> list[Any]:
    """Return what a body does: neither where it stands nor in which file."""
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    return [code.co_code, getattr(code, "co_exceptiontable", b""), names, counts, code.co_consts]


def used_by(function: types.FunctionType) -> Iterator[Named]:
    """Yield what a function uses beside its body: what it closes over, defaults, globals.

    Of modules that are no library's, what it uses of them by name.
    """
    code = function.__code__
    cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
    yield from ((name, _inside(cell)) for name, cell in cells)
    first = code.co_argcount - len(function.__defaults__ or ())
    yield from zip(code.co_varnames[first:], function.__defaults__ or (), strict=False)
    yield from sorted((function.__kwdefaults__ or {}).items())
    yield from sorted(vars(function).items())
    bodies = [code, *_nested(code)]
    attributes = {name for body in bodies for name in body.co_names}
    for name in dict.fromkeys(name for body in bodies for name in _globals(body)):
        if name in function.__globals__:
            yield name, function.__globals__[name]
            yield from _of_module(name, function.__globals__[name], attributes)


def _inside(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # nothing was put into it yet
        return "nothing"


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    for one in code.co_consts:
        if isinstance(one, types.CodeType):
            yield one
            yield from _nested(one)


def _globals(code: types.CodeType) -> Iterator[str]:
    """Yield the globals that a body reads; ``co_names`` has the names of attributes, too."""
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield step.argval


def _of_module(name: str, value: Any, attributes: set[str]) -> Iterator[Named]:
    if not isinstance(value, types.ModuleType) or _is_library(value.__name__):
        return
    for one in sorted(attributes & set(vars(value))):
        yield f"{name}.{one}", vars(value)[one]
        if vars(value)[one] is not value:
            yield from _of_module(f"{name}.{one}", vars(value)[one], attributes - {one})


def parts_of(value: Any) -> list[Named] | None:
    """Return what a class or an object is made of; None if it does not tell."""
    if isinstance(value, type):
        return [("bases", value.__bases__), *_members(value)]
    if isinstance(value, property | staticmethod | classmethod | functools.cached_property):
        names = ("fget", "fset", "fdel", "__func__", "func")
        return [(name, getattr(value, name)) for name in names if hasattr(value, name)]
    if isinstance(value, types.MemberDescriptorType | types.GetSetDescriptorType):
        return [("name", value.__name__)]
    if isinstance(value, types.BuiltinFunctionType | types.MethodWrapperType):
        return [("name", value.__name__), ("of", value.__self__)]
    if hasattr(value, "__wrapped__") and _is_library(type(value).__module__):
        return [("wrapped", value.__wrapped__)]  # as by lru_cache, or by a compiler
    try:
        known = copyreg.dispatch_table.get(type(value))
        reduced = value.__reduce_ex__(4) if known is None else known(value)
    except Exception:  # what an object of any class raises that is not to be copied
        return None
    if isinstance(reduced, str):
        return [("name", f"{getattr(value, '__module__', '')}.{reduced}")]
    names = ("made by", "from", "state", "items", "entries")
    found = [*reduced, None, None, None][:5]
    found[3:] = [None if one is None else list(one) for one in found[3:]]
    return list(zip(names, found, strict=True))


def _members(kind: type) -> Iterator[Named]:
    """Yield what a class defines; names between double underscores are its own only if called."""
    for name, value in sorted(vars(kind).items()):
        special = name.startswith("__") and name.endswith("__")
        called = callable(value) or isinstance(value, staticmethod | classmethod | property)
        if not _SILENT.fullmatch(name) and (called or not special):
            yield name, value
