"""The whole zoo (``tests/zoo.py``) through every method and every option that it reads.

``make test`` visits most of it with the options as they are; here every sketch, truncation, number
of passes and precision comes, the animals that are kin of others too, and some get weights.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sketchmeans.kernels import KERNELS
from soak.bounds import variants
from soak.running import Cases, Check

sys.path.append(str(Path(__file__).parents[1] / "tests"))

import test_zoo
import zoo

KINDS = [*KERNELS, "neighbors", "precomputed"]


def visited(seed: int, count: int) -> Cases:
    """Draw animals, kernels, dtypes and options; all methods of a draw see the same."""
    random = np.random.default_rng(seed)
    ways = variants()
    names = list(zoo.ZOO)
    for index in range(count):
        name = names[index % len(names)]
        animal = zoo.ZOO[name]
        kernel = str(random.choice([*KERNELS, "neighbors"]))
        dtype = np.dtype((np.float32, np.float64)[int(random.integers(2))])
        if animal.given:
            kernel = "precomputed"
        elif animal.weights is None and random.random() < 0.4:
            animal = replace(animal, weights=_weights(random))
        options: dict[str, Any] = {"method": "auto"}
        if kernel != "neighbors":
            options = dict(ways[int(random.integers(len(ways)))])
        if kernel == "precomputed" and options.get("sketch") == "kmeans":
            options["sketch"] = "uniform"
        method = options.pop("method")
        asked = f"{name}, {kernel}, {dtype}, {method}, {options}"
        if animal.weights is not zoo.ZOO[name].weights:
            asked += ", weighted"
        try:
            wrong = test_zoo.examine(animal, kernel, dtype, [method], **options)
        except Exception as error:
            wrong = [f"{type(error).__name__}: {error}"]
        yield kernel, [f"{text} in {index} (seed {seed}): {asked}" for text in wrong]


def _weights(random: np.random.Generator) -> Any:
    sizes = 10 ** random.uniform(-2, 2, 100)
    return lambda n: sizes[:n]


CHECKS = {"difficult inputs": Check(6_000, visited)}
