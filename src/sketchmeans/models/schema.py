"""What the file of a model holds: a closed list for each estimator, and the checks of a header.

``check`` sees the header and the table of arrays, before any array is read. What passes is a model
that ``fit`` could have left behind, but for the numbers in the arrays.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from typing import Any

from sketchmeans.certificate import Certificate
from sketchmeans.certificate.proving import LEVELS
from sketchmeans.checks import check_choice, check_count, check_number
from sketchmeans.container import Entry, ModelFileError
from sketchmeans.estimators import FullKernelKMeans, KernelEmbedding, KernelKMeans
from sketchmeans.estimators.parts import check_options
from sketchmeans.lowrank import METHODS
from sketchmeans.models import pipelines, preparation, texts
from sketchmeans.models.checks import FLOATS, Check, Spec, check_flag, check_non_negative
from sketchmeans.models.points import sizes_of, specs_of
from sketchmeans.models.steps import OUTPUTS, is_short_text
from sketchmeans.text import called

Model = KernelKMeans | FullKernelKMeans | KernelEmbedding

MOST_JOBS = 1024
"""``predict`` starts as many threads: a file does not decide to start a million."""


def _check_gamma(name: str, value: Any) -> None:
    if value is not None:
        check_non_negative(name, value)


def _check_landmarks(name: str, value: Any) -> None:
    if value is not None:
        check_count(name, value)


@dataclass(frozen=True)
class Kept:
    """What a fitted estimator of a class keeps in a file, under the names of its attributes."""

    cls: type[Model]
    numbers: dict[str, Check]
    """Each with its check."""
    arrays: dict[str, Spec]


_EMBEDDING_NUMBERS: dict[str, Check] = {
    "rank_": check_count,
    "width_": check_count,
    "n_landmarks_": _check_landmarks,
    "gamma_": _check_gamma,
}
_EMBEDDING_ARRAYS: dict[str, Spec] = {
    "embedding_": (("n", "r"), FLOATS),
    "eigenvalues_": (("r",), ("<f8",)),
    "_sketch_eigenvalues": (("columns",), ("<f8",)),
    "_dual": (("m", "r"), ("<f8",)),
}
_CLUSTER_NUMBERS: dict[str, Check] = {"inertia_": check_non_negative, "n_iter_": check_count}
_LABELS: dict[str, Spec] = {"labels_": (("n",), ("<i4",))}
_CENTERS: dict[str, Spec] = {"cluster_centers_": (("K", "r"), FLOATS)}
_MEANS: dict[str, Spec] = {
    "centroids_sizes": (("K",), ("<f8",)),
    "centroids_squared_norms": (("K",), ("<f8",)),
}
_CENTROIDS: dict[str, Spec] = {"centroids_labels": (("n",), ("<i4",)), **_MEANS}
_BY_LANDMARKS: dict[str, Spec] = {"centroids_coefficients": (("m", "K"), ("<f8",)), **_MEANS}
_WEIGHTS: dict[str, Spec] = {"centroids_weights": (("n",), ("<f8",))}

HEADER = {"estimator", "written_by", "parameters", "numbers", "n_features_in_", "stats_"}
HEADER |= {"certificate_", "output", "new_points", "samples", "weighted", "named", "standardized"}
"""The keys of a header."""
OPTIONAL_FLAGS = {"imputed", "by_landmarks"}
"""Those that it may have beside them: formats before 2 and 3 lack the first and the second."""
OPTIONAL = OPTIONAL_FLAGS | {"encoded", "libsvm_base", "pipeline"}
"""Formats before 5 lack these three, and most models do."""
ESTIMATORS = {
    "KernelEmbedding": Kept(KernelEmbedding, _EMBEDDING_NUMBERS, _EMBEDDING_ARRAYS),
    "KernelKMeans": Kept(
        KernelKMeans,
        _EMBEDDING_NUMBERS | _CLUSTER_NUMBERS,
        _EMBEDDING_ARRAYS | _LABELS | _CENTERS,
    ),
    "FullKernelKMeans": Kept(
        FullKernelKMeans,
        {"gamma_": _check_gamma, **_CLUSTER_NUMBERS},
        _LABELS | {"objectives_": (("iterations",), ("<f8",))},
    ),
}
"""The estimators that a file may name: a closed list, nothing is imported by name."""


def upgraded(header: dict[str, Any], version: int) -> dict[str, Any]:
    """Return the header of an earlier format as one of today's; one of today's as it is.

    The default kernel was rbf before format 4. Before format 3, landmarks were counted by
    ``oversampling``, and drawn at random if nothing was said.
    """
    parameters, numbers = header.get("parameters"), header.get("numbers")
    if version > 3 or not isinstance(parameters, dict):
        return header  # ``check`` says what is wrong with it, if anything
    header = header | {"parameters": {"kernel": "rbf"} | parameters}
    parameters = header["parameters"]
    embeds = header.get("estimator") in ("KernelEmbedding", "KernelKMeans")
    if not embeds or not isinstance(numbers, dict):
        return header
    if "n_landmarks_" in numbers or "n_landmarks" in parameters:
        return header
    method, width = parameters.get("method", "one-pass"), numbers.get("width_")
    before = {"method": "one-pass", "n_passes": 1}
    if header["estimator"] == "KernelKMeans":
        before["n_refine"] = 0
    landmarks = isinstance(method, str) and method in METHODS and METHODS[method].landmarks
    if landmarks:
        before |= {"n_landmarks": width}
        parameters = parameters | {"oversampling": "auto", "n_passes": "auto"}
        if method == "nystrom" and parameters.get("sketch", "auto") == "auto":
            parameters["sketch"] = "uniform"
    elif method == "exact":
        parameters = parameters | {"n_passes": "auto"}
    counted = numbers | {"n_landmarks_": width if landmarks else None}
    return header | {"parameters": before | parameters, "numbers": counted}


def check(header: dict[str, Any], entries: list[Entry]) -> None:
    """Check all of a header, and the shapes of the arrays with each other."""
    if odd := set(header) - OPTIONAL ^ HEADER:
        raise ModelFileError(f"its header lacks or has too much: {', '.join(sorted(odd))}.")
    name = header["estimator"]
    if not isinstance(name, str) or name not in ESTIMATORS:
        raise ModelFileError(f"{name!r:.80} is not one of {', '.join(ESTIMATORS)}.")
    kept = ESTIMATORS[name]
    if not is_short_text(header["written_by"]):
        raise ModelFileError(f"written_by={header['written_by']!r:.80} is no short text.")
    _check_parameters(header["parameters"], kept.cls)
    numbers = header["numbers"]
    if not isinstance(numbers, dict) or set(numbers) != set(kept.numbers):
        raise ModelFileError(f"its numbers are not {', '.join(kept.numbers)}.")
    for attribute, check_number_of in kept.numbers.items():
        check_number_of(attribute, numbers[attribute])
    check_count("n_features_in_", header["n_features_in_"])
    _check_stats(header["stats_"])
    certificate_of(header["certificate_"], needed="labels_" in kept.arrays)
    if not isinstance(header["output"], str | None) or header["output"] not in OUTPUTS:
        raise ModelFileError(f"output={header['output']!r:.80} is not one of {OUTPUTS}.")
    for flag in ("weighted", "named", "standardized", *OPTIONAL_FLAGS):
        check_flag(flag, header.get(flag, False))
    _check_shapes(header, kept, entries)


def _check_parameters(parameters: Any, cls: type[Model]) -> None:
    """Refuse parameters that are not those of the class, or that ``fit`` would refuse."""
    if not isinstance(parameters, dict) or not set(parameters) <= set(cls().get_params()):
        raise ModelFileError(f"its parameters are not those of {cls.__name__}.")
    if "kernel" not in parameters:
        raise ModelFileError("its parameters name no kernel.")
    if parameters.get("checkpoint") is not None:
        raise ModelFileError("its parameters name a folder for checkpoints, which no model does.")
    for name, value in parameters.items():
        _check_scalars(name, value if name == "kernel_params" else {name: value})
    if not isinstance(parameters.get("random_state"), int | None):
        raise ModelFileError(f"its {called('random_state')} is neither a whole number nor null.")
    check_options(cls(**parameters))
    if abs(parameters.get("n_jobs") or 0) > MOST_JOBS:
        raise ModelFileError(
            f"{called('n_jobs')}={parameters['n_jobs']} is more than the {MOST_JOBS} threads that "
            f"a file may ask for. Set {called('n_jobs')}=-1 before saving to use all cores."
        )


def _check_stats(stats: Any) -> None:
    """Refuse statistics that are not names with numbers or texts, one level of objects deep."""
    if not isinstance(stats, dict):
        raise ModelFileError("its stats_ are no object.")
    for name, value in stats.items():
        if not is_short_text(name):
            raise ModelFileError(f"its stats_ have the name {name!r:.80}, which is no short text.")
        _check_scalars(name, value)


def _check_scalars(name: str, value: Any) -> None:
    """Refuse what is neither a scalar nor an object of scalars."""
    for inner, scalar in value.items() if isinstance(value, dict) else [(name, value)]:
        _check_scalar(inner, scalar)


def _check_scalar(name: str, value: Any) -> None:
    """Refuse what is not null, true, false, a finite number or a short text, under a short name."""
    if not is_short_text(name):
        raise ModelFileError(f"{name!r:.80} is no name of a value.")
    if is_short_text(value):
        return
    if not isinstance(value, int | float | None):
        raise ModelFileError(
            f"{called(name):.80}={value!r:.80} is neither a number nor a short text."
        )
    if isinstance(value, float):
        check_number(name, value)


_CERTIFICATE_KINDS: dict[str, type] = {
    "n_clusters": int,
    "n_blocks": int,
    "block_size": int,
    "assumes_psd": bool,
    "interrupted": bool,
    "reason": str,
    "level": str,
    "objective_from": str,
}
"""Of the fields of a certificate that are no numbers with a fraction."""


def certificate_of(described: Any, *, needed: bool) -> Certificate | None:
    """Build a certificate from its fields, in which what stands together is there together."""
    if described is None and not needed:
        return None
    known = {field.name: field.default for field in fields(Certificate)}
    needs = {name for name, default in known.items() if default is MISSING}
    if not needed or not isinstance(described, dict) or not needs <= set(described) <= set(known):
        raise ModelFileError("its certificate_ has not the fields of a certificate.")
    for name, value in described.items():
        _check_scalar(name, value)
        kind = _CERTIFICATE_KINDS.get(name, float)
        wide = isinstance(value, int | float) if kind is float else isinstance(value, kind)
        if not wide and not (value is None and known[name] is None):
            raise ModelFileError(
                f"{called(name)}={value!r:.80} of its certificate_ is no {kind.__name__}."
            )
    certificate = Certificate(**described)
    check_choice("level", certificate.level, LEVELS)
    if certificate.level != "free" and None in (certificate.n_blocks, certificate.block_size):
        raise ModelFileError("its certificate_ has a level without n_blocks and block_size.")
    for first, others in (
        ("objective_upper", ("objective_lower", "optimum_lower")),
        ("gap_bound_probabilistic", ("optimum_lower_probabilistic", "failure_probability")),
        ("relative_gap_probabilistic", ("failure_probability",)),
        ("normalized_cut", ("normalized_cut_lower",)),
        ("normalized_cut_lower", ("normalized_cut",)),
    ):
        together = [getattr(certificate, name) for name in others]
        if getattr(certificate, first) is not None and None in together:
            raise ModelFileError(f"its certificate_ has {first} without {' and '.join(others)}.")
    return certificate


def extras_of(header: dict[str, Any]) -> list[str]:
    """Return the attributes that say how the columns were prepared; the command line sets them."""
    filled = ["fill_values_"] if header.get("imputed") else []
    return filled + (["standard_center_", "standard_scale_"] if header["standardized"] else [])


def _specs(header: dict[str, Any], kept: Kept) -> dict[str, Spec]:
    """Return the arrays that a file with this header holds, all of them."""
    samples = header["samples"]
    if samples is not None and kept.cls is not KernelKMeans:
        raise ModelFileError(f"a {kept.cls.__name__} keeps no samples beside its new points.")
    specs = kept.arrays | specs_of(header["new_points"], "new_points", "m")
    by_anchors = header["new_points"]["kind"] == "neighbors"
    if by_anchors and (kept.cls is FullKernelKMeans or samples is not None):
        raise ModelFileError("it has anchors, and its exact distances need samples.")
    if samples is not None and samples != "new_points":
        specs |= specs_of(samples, "samples", "n")
        if (samples["kind"] == "rows") != (header["new_points"]["kind"] == "rows"):
            raise ModelFileError("its samples are data and its new points are not, or vice versa.")
        if samples.get("chosen") or samples["kind"] == "neighbors":
            raise ModelFileError("its exact distances need all samples, and not some or anchors.")
    if header.get("by_landmarks"):
        if kept.cls is not KernelKMeans or samples is not None or header["weighted"]:
            raise ModelFileError("it has centroids by landmarks, and more than these need.")
        specs |= _BY_LANDMARKS
    elif kept.cls is FullKernelKMeans or samples is not None:
        specs |= _CENTROIDS | (_WEIGHTS if header["weighted"] else {})
    elif header["weighted"]:
        raise ModelFileError("it has weights, and no exact centroids to use them.")
    specs |= dict.fromkeys(extras_of(header), (("p",), ("<f8",)))
    specs |= texts.specs_of("feature_names", "p") if header["named"] else {}
    return specs | preparation.check(header)


def _check_shapes(header: dict[str, Any], kept: Kept, entries: list[Entry]) -> None:
    """Refuse arrays that are not those of the header, or do not fit each other."""
    steps, lengths = pipelines.check(header["pipeline"]) if "pipeline" in header else ({}, {})
    specs = _specs(header, kept) | steps
    if (names := {entry.name for entry in entries}) != set(specs):
        odd = ", ".join(sorted(names ^ set(specs)))
        raise ModelFileError(f"its table lacks arrays or has too many: {odd[:200]}.")
    found = {"p": (header["n_features_in_"], "n_features_in_")}
    fixed = sizes_of(header["new_points"], "m")
    found |= {symbol: (size, "the sets of anchors") for symbol, size in fixed.items()}
    lengths |= preparation.sizes_of(header)
    found |= {symbol: (length, "the header") for symbol, length in lengths.items()}
    if "rank_" in header["numbers"]:
        found["r"] = (header["numbers"]["rank_"], "rank_")
    for entry in entries:
        sizes, dtypes = specs[entry.name]
        if len(sizes) != len(entry.shape) or entry.dtype not in dtypes:
            raise ModelFileError(
                f"its array {entry.name} has {len(entry.shape)} dimensions of {entry.dtype}, "
                f"where {len(sizes)} of {' or '.join(dtypes)} are needed."
            )
        for size, length in zip(sizes, entry.shape, strict=True):
            symbol, more = size.removesuffix("+1"), size.endswith("+1")
            count, place = found.setdefault(symbol, (length - more, entry.name))
            if count != length - more or (count < 1 and symbol in "nmprK"):
                raise ModelFileError(
                    f"its array {entry.name} has shape {entry.shape}, where {count + more:,} "
                    f"would agree with {place}; no size may be 0."
                )
    given = header["new_points"]["kind"] == "rows"
    every = given and not header["new_points"]["chosen"]
    exact = kept.cls is FullKernelKMeans or header["samples"] == "new_points"
    n = found["n"][0]
    # The rows of a given kernel have one column per sample; exact distances are to all samples.
    if (given and found["p"][0] != n) or ((every or exact) and found.get("m", (n,))[0] != n):
        raise ModelFileError(f"its kernel is not one of all its {n:,} samples.")
