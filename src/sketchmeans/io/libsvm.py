"""LIBSVM files: a label and index:value pairs per line, most of them sparse."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans.io.limits import DataError
from sketchmeans.io.opening import DataFile
from sketchmeans.io.source import MatrixSource, unnamed, whole_numbers
from sketchmeans.text import called, setting

MOST_FEATURES = 1_000_000
"""Columns that any file may have; beyond, there must be a stored number for every ten. Vectors of
that many numbers are made later on, whatever the file holds."""


class LibsvmSource(MatrixSource):
    """Lines of ``label index:value …``; indices begin at 1, or at 0 if 0 is there.

    ``libsvm_base`` says where they begin instead: a file that counts from 0 may have no value
    there. If it is left out, a file counts as that did which the model was fitted to.
    The result is sparse only where that is smaller, so that dense data give the same bits as in
    any other format.
    """

    labels_name = "label"
    may_widen = True

    def __init__(
        self, file: DataFile, libsvm_base: int | None = None, trained_base: int | None = None
    ) -> None:
        super().__init__(file)
        base = trained_base if libsvm_base is None else libsvm_base
        from sklearn.datasets import load_svmlight_file

        try:
            X, y = load_svmlight_file(file.stream(), zero_based=True)
        except DataError:
            raise
        except (ValueError, OverflowError, TypeError, MemoryError) as error:
            raise DataError(self._describe(error)) from error
        width = X.shape[1]
        if width > MOST_FEATURES and width > 10 * X.nnz:
            raise DataError(
                f"{file.name}: the largest index is {width - 1:,}, but there are only {X.nnz:,} "
                "values: it is damaged, or its features need new numbers."
            )
        has_zero = X.nnz > 0 and bool((X.indices == 0).any())
        if base == 1 and has_zero:
            said = f"{setting('libsvm_base', 1)} was said"
            if libsvm_base is None:
                said = "the model was fitted to a file that counts from 1. If this one counts "
                said += f"from 0, say {setting('libsvm_base', 0)}"
            raise DataError(f"{file.name} has the index 0, but {said}.")
        if trained_base is not None and base != trained_base:
            self.notes.append(
                f"{file.name} counts from {base}, and the file that the model was fitted to from "
                f"{trained_base}."
            )
        self.base_is_guessed = base is None and not has_zero
        if base == 1 or self.base_is_guessed:
            X = sparse.csr_matrix((X.data, X.indices - 1, X.indptr), shape=(len(y), width - 1))
        self.base = 1 if base == 1 or self.base_is_guessed else 0
        self._X = _smaller(X)
        self._labels = whole_numbers(y)
        self.set_names(unnamed(self._X.shape[1]))

    def _describe(self, error: Exception) -> str:
        """Say which line is wrong: the fast reader does not."""
        for number, line in enumerate(self.file.stream(), start=1):
            fields = line.split(b"#", 1)[0].split()
            if not fields:
                continue
            try:
                float(fields[0])
            except ValueError:
                return self._wrong(number, fields[0], "where a label is expected")
            last = -1
            for field in fields[1:]:
                index, mark, value = field.partition(b":")
                if index == b"qid":
                    continue
                try:
                    place = int(index)
                    float(value)
                except ValueError:
                    return self._wrong(number, field, "where index:value is expected")
                if not mark or place < 0:
                    return self._wrong(number, field, "where index:value is expected")
                if place > np.iinfo(np.int32).max:
                    return self._wrong(number, field, "whose index is far too large")
                if place <= last:
                    return self._wrong(number, field, "out of order: indices must rise")
                last = place
        return f"{self.file.name} is no LIBSVM file that can be read: {error}."

    def _wrong(self, number: int, field: bytes, what: str) -> str:
        shown = field[:40].decode("ascii", "replace")
        return (
            f"{self.file.name}: line {number} holds {shown!r} {what}. Mend that line, or say "
            f"{called('format')} if this is no LIBSVM file."
        )

    def own_labels(self) -> Any:
        """Return the labels, unless they are all the same: then they say nothing."""
        return None if len(np.unique(self._labels)) < 2 else self._labels


def _smaller(X: Any) -> Any:
    """Return X dense where that takes no more memory than its CSR form."""
    packed = X.nnz * (X.data.itemsize + X.indices.itemsize)
    return X.toarray() if X.shape[0] * X.shape[1] * X.data.itemsize <= packed else X
