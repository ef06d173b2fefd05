"""What a value is, in words that are the same for the same value in any process.

A kernel may be any callable, and what it computes hangs on more than its own body: on values that
it closes over, on defaults, on the object that it is a method of, on functions and numbers of its
module. All of that is followed. What a library has under a name is named, with the version of the
library; everything else is taken apart as ``pickle`` would take it, though nothing is pickled: an
object is its class and what it holds. What cannot be taken apart, as a lock or an open file, has
nothing by which the next process would know it again: ``Undescribed``.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans.checkpoints.programs import content_of, library_name, parts_of, used_by

LONG = 200
"""Characters of a description; a longer one is cut, and has a hash of all of it."""
MOST = 10_000
"""Objects that a value may be made of; more are a cluster or a network, and no kernel."""
_SHOWN = 4
"""Plain values that a function uses and that are told with its name."""
_BLOCK = 1 << 24
"""Bytes of data that are read at a time."""
_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...), type(NotImplemented))


class Undescribed(Exception):
    """A value has nothing by which another process would know it again."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.what = f"{type(value).__module__}.{type(value).__qualname__}"
        self.names: list[str] = []
        """Where it was found, from the inside to the outside."""

    def __str__(self) -> str:
        return " of ".join([*self.names, ""]) + f"type {self.what}"


def described(value: Any) -> str:
    """Return a value as text that is the same for the same value, in any process.

    >>> described({"b": 1, "a": np.float64(2.5)})
    "{'a': 2.5, 'b': 1}"
    >>> described(np.zeros((2, 3)))
    '2 × 3 numbers of float64 (17b0761f87b081d5)'
    """
    try:
        text = _Describer().text(value)
    except RecursionError:
        raise Undescribed(value) from None
    if len(text) <= LONG:
        return text
    return f"{text[: LONG // 2]}… ({len(text):,} characters, {_hash(text)})"


def _hash(text: str) -> str:
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


class _Describer:
    """Describes a value and all that it is made of."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}
        """Numbers of functions, classes and modules, by identity: they use each other."""
        self._within: list[int] = []
        """What is being taken apart now; it may hold itself."""
        self._alive: list[Any] = []
        """What was made to be taken apart, so that no identity is given twice."""

    def text(self, value: Any) -> str:
        """Return the description of a value."""
        if type(value) in _PLAIN:
            return repr(value)
        if isinstance(value, np.generic) and not value.dtype.hasobject:
            return repr(value.item())
        if id(value) in self._within:  # it holds itself
            return f"<{len(self._within) - self._within.index(id(value))} further out>"
        self._within.append(id(value))
        try:
            return self._compound(value)
        finally:
            self._within.pop()

    def _compound(self, value: Any) -> str:
        if type(value) in (list, tuple):
            inside = ", ".join(self.text(one) for one in value)
            return f"[{inside}]" if type(value) is list else f"({inside})"
        if type(value) in (set, frozenset):  # their order follows PYTHONHASHSEED
            return f"{{{', '.join(sorted(_Describer().text(one) for one in value))}}}"
        if type(value) in (dict, types.MappingProxyType):
            return self._mapping(value)
        if isinstance(value, np.random.RandomState):
            return f"a RandomState ({_hash(self.text(value.get_state(legacy=True)))})"
        if isinstance(value, np.ma.MaskedArray):
            return f"{self.text(value.data)} without {self.text(np.ma.getmaskarray(value))}"
        if _has_rows(value):
            return self._array(value)
        return library_name(value) or self._apart(value)

    def _mapping(self, value: Mapping[Any, Any]) -> str:
        keys = sorted(((_Describer().text(key), key) for key in value), key=lambda one: one[0])
        return f"{{{', '.join(f'{text}: {self._under(text, value[key])}' for text, key in keys)}}}"

    def _array(self, value: Any) -> str:
        if sparse.issparse(value) or not getattr(value.dtype, "hasobject", True):
            return of_numbers(value)
        return f"{tuple(value.shape)} of {self.text(np.asarray(value).tolist())}"

    def _under(self, name: str, value: Any) -> str:
        """Return the description of what is found under a name; an error tells the name."""
        try:
            return self.text(value)
        except Undescribed as error:
            error.names.append(name)
            raise

    def _apart(self, value: Any) -> str:
        """Take apart what is known to no library: programs by what they use, objects by content."""
        if isinstance(value, types.CodeType):
            return f"code ({self._hashed([('', one) for one in content_of(value)])})"
        if isinstance(value, types.FunctionType | type | types.ModuleType):
            if id(value) in self._seen:
                return f"<number {self._seen[id(value)]}>"
            self._seen[id(value)] = len(self._seen)
        if isinstance(value, types.FunctionType):
            return self._function(value)
        name = f"{type(value).__module__}.{type(value).__qualname__}"
        if isinstance(value, type):
            name = f"{value.__module__}.{value.__qualname__}"
        elif isinstance(value, types.ModuleType):
            return value.__name__  # what is used of it, its user tells
        elif isinstance(value, functools.partial):
            inside = self._mapping(value.keywords)
            return f"partial of {self.text(value.func)} with {self.text(value.args)}, {inside}"
        elif isinstance(value, types.MethodType):
            return f"{self.text(value.__func__)} of {self.text(value.__self__)}"
        parts = parts_of(value)
        if parts is None or len(self._alive) > MOST:
            raise Undescribed(value)
        self._alive.append(parts)
        return f"{name} ({self._hashed(parts)})"

    def _function(self, function: types.FunctionType) -> str:
        used = list(used_by(function))
        self._alive.append(used)
        plain = [f"{name}={value!r}" for name, value in used if type(value) in _PLAIN]
        few = ", ".join(one for one in plain if len(one) < 40) if len(plain) <= _SHOWN else ""
        name = f"{function.__module__}.{function.__qualname__}"
        hashed = self._hashed([("", function.__code__), *used])
        return f"{name} ({few}{'; ' if few else ''}{hashed})"

    def _hashed(self, parts: Iterable[tuple[str, Any]]) -> str:
        return _hash("; ".join(f"{name}: {self._under(name, one)}" for name, one in parts))


def _has_rows(value: Any) -> bool:
    """Whether it is an array, a sparse matrix, or rows that are elsewhere; no module, no class."""
    known = isinstance(getattr(value, "shape", None), tuple) and hasattr(value, "dtype")
    return known and hasattr(value, "__getitem__")


def of_numbers(X: Any) -> str:
    """Return the size of data and a hash of all of it, read block after block."""
    found = sha256()
    if sparse.issparse(X):
        stored = X.tocsr()
        for array in (stored.indptr, stored.indices, stored.data):
            found.update(str(array.dtype).encode())
            _add(found, array)
    else:
        _add(found, X if X.shape else np.reshape(X, 1))
    size = " × ".join(f"{count:,}" for count in X.shape)
    kind = "stored numbers" if sparse.issparse(X) else "numbers"
    return f"{size} {kind} of {X.dtype} ({found.hexdigest()[:16]})"


def _add(found: Any, rows: Any) -> None:
    count = rows.shape[0]
    width = int(np.prod(rows.shape[1:])) * np.dtype(rows.dtype).itemsize
    step = max(1, _BLOCK // max(width, 1))
    for first in range(0, count, step):
        block = np.ascontiguousarray(rows[first : first + step])
        if block.nbytes:
            found.update(block.reshape(-1).view(np.uint8).data)
