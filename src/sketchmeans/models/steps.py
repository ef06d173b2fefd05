"""The steps of a scikit-learn pipeline that a file holds: scalers, imputers and encoders.

A step becomes a description for the header, and arrays. It comes back as a step of the same class
that scikit-learn itself fitted, to a few rows from which it learns the shapes and types that it
remembers; what it had learned of the data is then put in by the names of its public attributes.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import StandardScaler

from sketchmeans._arrays import Array
from sketchmeans.checks import check_count
from sketchmeans.container import ModelFileError
from sketchmeans.models import texts
from sketchmeans.models.checks import FLOATS, INTEGERS, Spec, check_flag, check_range

OUTPUTS = (None, "default", "pandas", "polars")
"""What ``set_output`` may have asked of ``transform``."""
LONGEST_TEXT = 1000
"""Characters of any text in a header: ``info`` prints them."""


def is_short_text(value: Any) -> bool:
    """Whether a value is text that fits on a terminal and does nothing to it."""
    return isinstance(value, str) and len(value) <= LONGEST_TEXT and value.isprintable()


class Kind(ABC):
    """How steps of one class are taken apart and put together."""

    cls: ClassVar[type]
    flags: ClassVar[tuple[str, ...]]
    """Parameters that are true or false."""
    words: ClassVar[dict[str, tuple[Any, ...]]] = {}
    """Parameters that are one of some words, each with those."""
    fields: ClassVar[set[str]] = set()
    """What the description has beside the parameters."""

    def describe(self, step: Any) -> dict[str, Any]:
        """Return what a header says of a step; what it cannot say is a ``ValueError``."""
        parameters = step.get_params(deep=False)
        kept = {name: parameters[name] for name in (*self.flags, *self.words)}
        for name, known in self.words.items():
            if not isinstance(kept[name], str | None) or kept[name] not in known:
                raise ValueError(f"{name}={kept[name]!r:.80} of a {self.name} cannot be saved.")
        return {
            "kind": self.name,
            "parameters": {name: bool(v) if name in self.flags else v for name, v in kept.items()},
            "n_features": int(step.n_features_in_),
            "named": hasattr(step, "feature_names_in_"),
            "output": vars(step).get("_sklearn_output_config", {}).get("transform"),
        }

    @property
    def name(self) -> str:
        """What the class is called."""
        return self.cls.__name__

    def arrays_of(self, step: Any) -> dict[str, Array]:
        """Return the arrays of a step, by names within it."""
        if not hasattr(step, "feature_names_in_"):
            return {}
        return texts.as_arrays("names", [str(name) for name in step.feature_names_in_])

    def check(self, described: dict[str, Any]) -> tuple[dict[str, Spec], dict[str, int]]:
        """Check a description; return its arrays, and the sizes of their dimensions."""
        common = {"kind", "parameters", "n_features", "named", "output"}
        if set(described) != common | self.fields:
            raise ModelFileError(f"its {self.name} is described by other fields than it has.")
        parameters = described["parameters"]
        if not isinstance(parameters, dict) or set(parameters) != {*self.flags, *self.words}:
            raise ModelFileError(f"the parameters of its {self.name} are not those that are kept.")
        for name in self.flags:
            check_flag(name, parameters[name])
        for name, known in self.words.items():
            if not isinstance(parameters[name], str | None) or parameters[name] not in known:
                raise ModelFileError(f"{name}={parameters[name]!r:.80} is not one of {known}.")
        check_count("n_features", described["n_features"])
        if not isinstance(described["output"], str | None) or described["output"] not in OUTPUTS:
            raise ModelFileError(f"output={described['output']!r:.80} is not one of {OUTPUTS}.")
        specs = texts.specs_of("names", "p") if check_flag("named", described["named"]) else {}
        return specs, {"p": described["n_features"]}

    def restore(self, described: dict[str, Any], arrays: dict[str, Array]) -> Any:
        """Build the step of a checked description."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the few rows, which are nobody's data
            step = self.fitted(described, arrays)
        step.n_features_in_ = described["n_features"]
        vars(step).pop("feature_names_in_", None)
        if described["named"]:
            step.feature_names_in_ = np.array(texts.from_arrays("names", arrays), object)
        if described["output"] is not None:
            step.set_output(transform=described["output"])
        return step

    @abstractmethod
    def fitted(self, described: dict[str, Any], arrays: dict[str, Array]) -> Any:
        """Return a fitted step with what it had learned."""


class Scaler(Kind):
    """``StandardScaler``."""

    cls = StandardScaler
    flags = ("copy", "with_mean", "with_std")
    fields: ClassVar[set[str]] = {"learned"}
    LEARNED = ("mean_", "var_", "scale_")

    def describe(self, step: Any) -> dict[str, Any]:
        """Say which of the arrays there are: without mean and deviation, none."""
        found = [name for name in self.LEARNED if getattr(step, name, None) is not None]
        return super().describe(step) | {"learned": found}

    def arrays_of(self, step: Any) -> dict[str, Array]:
        """Return means and deviations, and how many samples they are of."""
        found = {name: getattr(step, name) for name in self.LEARNED}
        found = {name: np.asarray(array) for name, array in found.items() if array is not None}
        seen = np.atleast_1d(step.n_samples_seen_)
        return super().arrays_of(step) | found | {"seen": seen}

    def check(self, described: dict[str, Any]) -> tuple[dict[str, Spec], dict[str, int]]:
        """Check which arrays there are."""
        specs, sizes = super().check(described)
        learned = described["learned"]
        if not isinstance(learned, list) or learned not in (
            [],
            ["mean_"],
            ["mean_", "var_"],
            ["mean_", "var_", "scale_"],
        ):
            raise ModelFileError(f"a scaler does not learn {learned!r:.80}.")
        specs |= dict.fromkeys(learned, (("p",), ("<f8",)))
        return specs | {"seen": (("seen",), ("<i8", "<f8"))}, sizes

    def fitted(self, described: dict[str, Any], arrays: dict[str, Array]) -> Any:
        """Return the scaler: all that it has learned is public."""
        step = StandardScaler(**described["parameters"])
        for name in self.LEARNED:
            found = arrays.get(name)
            if found is not None:
                lowest = np.finfo(float).tiny if name == "scale_" else -np.inf
                check_range(name, found, lowest)
            setattr(step, name, found)
        seen = arrays["seen"]
        check_range("seen", seen, 0)
        if len(seen) not in (1, described["n_features"]):
            raise ModelFileError(f"its scaler has seen {len(seen)} numbers of samples.")
        step.n_samples_seen_ = seen[0] if len(seen) == 1 else seen
        return step


class Imputer(Kind):
    """``SimpleImputer``, of numbers or of text."""

    cls = SimpleImputer
    flags = ("add_indicator", "copy", "keep_empty_features")
    words: ClassVar[dict[str, tuple[Any, ...]]] = {
        "strategy": ("mean", "median", "most_frequent", "constant")
    }
    fields: ClassVar[set[str]] = {"dtype", "fill_value", "missing_values", "indicator", "of_text"}
    DTYPES = ("float32", "float64", "int32", "int64", "object")

    def describe(self, step: Any) -> dict[str, Any]:
        """Say of which type the data were, and what counts as missing."""
        parameters, found = step.get_params(deep=False), step.statistics_
        missing, fill = parameters["missing_values"], parameters["fill_value"]
        dtype = str(vars(step).get("_fit_dtype", found.dtype))
        for name, value in (("missing_values", missing), ("fill_value", fill)):
            if not isinstance(value, int | float | np.number | None) and not is_short_text(value):
                raise ValueError(f"{name}={value!r:.80} of a {self.name} cannot be saved.")
        constant = parameters["strategy"] == "constant"
        of_text = found.dtype == object and not constant
        one_value = constant and (found == found[0]).all()
        if dtype not in self.DTYPES or not (
            one_value or not of_text or all(isinstance(text, str) for text in found)
        ):
            raise ValueError(
                f"a {self.name} of {dtype} data that fills in {found!r:.80} cannot be saved: it "
                "must fill in numbers, or texts."
            )
        return super().describe(step) | {
            "dtype": dtype,
            "fill_value": _plain(fill),
            "missing_values": "nan" if _is_nan(missing) else [_plain(missing)],
            "indicator": step.indicator_ is not None,
            "of_text": of_text,
        }

    def arrays_of(self, step: Any) -> dict[str, Array]:
        """Return what is filled in, and the columns whose gaps are told."""
        found = super().arrays_of(step)
        if step.strategy == "constant":
            pass  # fill_value says it
        elif step.statistics_.dtype == object:
            found |= texts.as_arrays("statistics", list(step.statistics_))
        else:
            found["statistics"] = step.statistics_
        if step.indicator_ is not None:
            found["indicator"] = np.asarray(step.indicator_.features_, np.int64)
        return found

    def check(self, described: dict[str, Any]) -> tuple[dict[str, Spec], dict[str, int]]:
        """Check the type of the data, and what counts as missing."""
        specs, sizes = super().check(described)
        if not isinstance(described["dtype"], str) or described["dtype"] not in self.DTYPES:
            raise ModelFileError(f"dtype={described['dtype']!r:.80} is not one of {self.DTYPES}.")
        missing = described["missing_values"]
        listed = isinstance(missing, list) and len(missing) == 1
        values = [described["fill_value"], *(missing if listed else [])]
        scalars = all(isinstance(v, int | float | None) or is_short_text(v) for v in values)
        if not scalars or not (listed or missing == "nan"):
            raise ModelFileError("its imputer fills in, or takes for missing, what is no value.")
        of_text = check_flag("of_text", described["of_text"])
        if described["parameters"]["strategy"] != "constant":
            specs |= (
                texts.specs_of("statistics", "p")
                if of_text
                else {"statistics": (("p",), (*FLOATS, *INTEGERS))}
            )
        if check_flag("indicator", described["indicator"]):
            specs["indicator"] = (("indicated",), ("<i8",))
        return specs, sizes

    def fitted(self, described: dict[str, Any], arrays: dict[str, Array]) -> Any:
        """Return an imputer that was fitted to what it fills in."""
        missing = described["missing_values"]
        missing = np.nan if missing == "nan" else missing[0]
        p, fill = described["n_features"], described["fill_value"]
        step = SimpleImputer(missing_values=missing, fill_value=fill, **described["parameters"])
        rows = np.zeros((1, p), described["dtype"])
        if described["dtype"] == "object":
            rows[:] = ""
        step.fit(rows)
        if described["parameters"]["strategy"] != "constant":
            step.statistics_ = self._statistics(described, arrays)
        if described["indicator"] != (step.indicator_ is not None):
            raise ModelFileError("its imputer tells of gaps, and was not asked to, or vice versa.")
        if described["indicator"]:
            features = arrays["indicator"]
            check_range("indicator", features, 0, p)
            step.indicator_.features_ = features
        return step

    def _statistics(self, described: dict[str, Any], arrays: dict[str, Array]) -> Array:
        if described["of_text"]:
            return np.array(texts.from_arrays("statistics", arrays), object)
        found = arrays["statistics"]
        check_range("statistics", found[~np.isnan(found)])  # NaN: a column without values
        return found


def _plain(value: Any) -> Any:
    """Return a number of NumPy as one of Python."""
    return value.item() if isinstance(value, np.generic) else value


def _is_nan(value: Any) -> bool:
    return isinstance(value, float | np.floating) and bool(np.isnan(value))
