"""A scikit-learn pipeline whose last step is ours: the steps before it, in the file of the last."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from sketchmeans._arrays import Array
from sketchmeans.container import ModelFileError
from sketchmeans.models.checks import Spec, check_flag
from sketchmeans.models.encoders import Encoder
from sketchmeans.models.steps import Imputer, Kind, Scaler, is_short_text

KINDS: dict[str, Kind] = {kind.name: kind for kind in (Scaler(), Imputer(), Encoder())}
"""The classes of steps that a file may name: a closed list, nothing is imported by name."""
PASSTHROUGH = "passthrough"
MOST_STEPS = 8


def describe(pipeline: Pipeline) -> dict[str, Any]:
    """Return what a header says of the steps before the last one."""
    if getattr(pipeline, "transform_input", None) is not None:
        raise ValueError("a pipeline with transform_input cannot be saved. Leave it out.")
    described = []
    for name, step in pipeline.steps[:-1]:
        if step is None or step == PASSTHROUGH:
            described.append({"kind": PASSTHROUGH})
            continue
        kind = KINDS.get(type(step).__name__)
        if kind is None or type(step) is not kind.cls:
            raise TypeError(
                f"a pipeline with a {type(step).__name__} (step {name!r}) cannot be saved: before "
                f"the last step there can be {', '.join(KINDS)}. Save the last step alone, and "
                "keep the others by themselves."
            )
        check_is_fitted(step)
        described.append(kind.describe(step))
    return {
        "names": [name for name, _ in pipeline.steps],
        "steps": described,
        "verbose": bool(pipeline.verbose),
    }


def arrays_of(pipeline: Pipeline) -> dict[str, Array]:
    """Return the arrays of the steps before the last one."""
    found: dict[str, Array] = {}
    for number, (_, step) in enumerate(pipeline.steps[:-1]):
        if step is not None and step != PASSTHROUGH:
            arrays = KINDS[type(step).__name__].arrays_of(step)
            found |= {f"step{number}_{name}": array for name, array in arrays.items()}
    return found


def check(described: Any) -> tuple[dict[str, Spec], dict[str, int]]:
    """Check a description; return the arrays of all steps, and the sizes of their dimensions."""
    if not isinstance(described, dict) or set(described) != {"names", "steps", "verbose"}:
        raise ModelFileError("its pipeline is not described by names, steps and verbose.")
    check_flag("verbose", described["verbose"])
    names, steps = described["names"], described["steps"]
    if not isinstance(names, list) or not isinstance(steps, list) or len(steps) > MOST_STEPS:
        raise ModelFileError(f"its pipeline has no list of at most {MOST_STEPS} steps.")
    good = [name for name in names if is_short_text(name) and name and "__" not in name]
    if len(set(good)) != len(names) or len(names) != len(steps) + 1:
        raise ModelFileError("the steps of its pipeline have not a name each.")
    specs: dict[str, Spec] = {}
    sizes: dict[str, int] = {}
    for number, step in enumerate(steps):
        if step == {"kind": PASSTHROUGH}:
            continue
        kind = step.get("kind") if isinstance(step, dict) else None
        if not isinstance(kind, str) or kind not in KINDS:
            raise ModelFileError(f"{kind!r:.80} is not one of {', '.join(KINDS)}.")
        mine, lengths = KINDS[kind].check(step)
        for name, (dimensions, dtypes) in mine.items():
            symbols = tuple(f"step {number} {symbol}" for symbol in dimensions)
            specs[f"step{number}_{name}"] = (symbols, dtypes)
        sizes |= {f"step {number} {symbol}": length for symbol, length in lengths.items()}
    return specs, sizes


def restore(described: dict[str, Any], arrays: dict[str, Array], last: Any) -> Pipeline:
    """Build the pipeline of a checked description around its last step."""
    steps: list[tuple[str, Any]] = []
    for number, (name, step) in enumerate(
        zip(described["names"][:-1], described["steps"], strict=True)
    ):
        if step["kind"] == PASSTHROUGH:
            steps.append((name, PASSTHROUGH))
            continue
        prefix = f"step{number}_"
        mine = {
            key.removeprefix(prefix): array
            for key, array in arrays.items()
            if key.startswith(prefix)
        }
        steps.append((name, KINDS[step["kind"]].restore(step, mine)))
    return Pipeline([*steps, (described["names"][-1], last)], verbose=described["verbose"])
