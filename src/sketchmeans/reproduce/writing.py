"""reproduce: runs every experiment, and writes what it gave as soon as it is there."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn

from sketchmeans._package import __version__
from sketchmeans.atomic import Folder, refuse_existing
from sketchmeans.datasets import load_segmentation
from sketchmeans.plotting.axes import need_matplotlib
from sketchmeans.reproduce.claims import Claim, judge, measure_claims
from sketchmeans.reproduce.drawing import FIGURES, draw_results
from sketchmeans.reproduce.experiments import (
    LANDMARKS,
    Figure3,
    LocalKernel,
    figure_3,
    local_kernels,
    rings_picture,
    table_1,
)
from sketchmeans.reproduce.page import (
    claims_text,
    figure_3_text,
    local_text,
    page_text,
    table_1_text,
)
from sketchmeans.reproduce.trials import Row
from sketchmeans.text import setting

FULL_TRIALS, QUICK_TRIALS = 100, 10
PAGE = "README.md"
TABLES = ("table-1", "figure-3", "local-kernels", "claims")
FILES = (
    *(f"{name}{suffix}" for name in FIGURES for suffix in (".png", ".svg")),
    *(f"{name}{suffix}" for name in TABLES for suffix in (".md", ".json")),
    PAGE,
)
"""All that a run writes; the page comes last."""

Show = Callable[[str, int, int], None]
"""Called with a stage, the steps done and the steps in all."""


def reproduce(
    out: str | os.PathLike[str],
    *,
    trials: int | None = None,
    seed: int = 0,
    quick: bool = False,
    overwrite: bool = False,
    show: Show | None = None,
) -> Path:
    """Run the paper's experiments, write figures, tables and a page, and return its path.

    Parameters
    ----------
    out : path
        A folder; created if it does not exist.
    trials : int, optional
        Of Table 1 and Figure 3: 100, as in the paper, or 10 if ``quick``. The experiment on local
        kernels and the search for equal errors, which are not the paper's, take a fifth of them;
        so does Figure 3 if ``quick``. The last two take five at least, where there are so many.
    seed : int
        The same seed gives the same figures, times excepted.
    quick : bool
        Few trials, and few points of each curve.
    overwrite : bool
        Replace what an earlier run left in ``out``.
    show : callable, optional
        Told of progress.
    """
    if trials is None:
        trials = QUICK_TRIALS if quick else FULL_TRIALS
    if trials < 2:
        raise ValueError(f"trials={trials} is too few: a spread needs at least 2.")
    folder = _free_folder(Path(out), overwrite)
    start = time.perf_counter()
    command = f"sketchmeans reproduce{' --quick' if quick else ''} --trials {trials} --seed {seed}"
    facts = {"command": command, "versions": _versions()}
    results = _run_all(folder, facts, trials, seed, quick, show or (lambda *_: None))
    minutes = (time.perf_counter() - start) / 60
    folder.write(PAGE, page_text(*results, {**facts, "minutes": minutes}))
    return folder.path / PAGE


def _free_folder(path: Path, overwrite: bool) -> Folder:
    """Return where to write; raise where something is missing or in the way."""
    folder = Folder(
        path, None if overwrite else f"Choose another folder, or give {setting('overwrite', True)}."
    )
    need_matplotlib(
        "figures need matplotlib, which is not installed. Install it: "
        'pip install "sketchmeans[reproduce]".'
    )
    load_segmentation()
    if folder.way_out is not None:
        for name in FILES:
            refuse_existing(path / name, way_out=folder.way_out)
    path.mkdir(parents=True, exist_ok=True)
    return folder


def _run_all(
    folder: Folder, facts: dict[str, str], trials: int, seed: int, quick: bool, show: Show
) -> tuple[list[Row], Figure3, list[LocalKernel], list[Claim]]:
    """Run and write everything but the page, and return what the page is made of."""
    few = min(trials, max(5, trials // 5))
    landmarks = (LANDMARKS[0], 20, 50, LANDMARKS[-1]) if quick else LANDMARKS
    multiples = (2.0, 4.0) if quick else (1.5, 2.0, 3.0, 4.0, 8.0)

    def options(stage: str, trials: int) -> dict[str, Any]:
        return {"trials": trials, "seed": seed, "report": lambda *steps: show(stage, *steps)}

    def write(name: str, text: str, results: Any) -> None:
        folder.write(f"{name}.md", text + "\n")
        content = json.dumps({**facts, "results": results}, default=asdict, indent=1)
        folder.write(f"{name}.json", content + "\n")

    picture = rings_picture(seed)
    draw_results(folder, "figure-1", picture)
    draw_results(folder, "figure-2", picture)
    table = table_1(**options("Table 1", trials))
    write("table-1", str(table_1_text(table)), table)
    figure = figure_3(landmarks=landmarks, **options("Figure 3", few if quick else trials))
    draw_results(folder, "figure-3", figure)
    write("figure-3", str(figure_3_text(figure, landmarks)), figure)
    measured = measure_claims(table, figure, **options("claims", few))
    claims = judge(table, figure, measured)
    judged = [{"verdict": claim.verdict, **asdict(claim)} for claim in claims]
    write("claims", claims_text(claims), {"claims": judged, "measured": measured})
    local = local_kernels(multiples=multiples, **options("local kernels", max(2, trials // 5)))
    draw_results(folder, "local-kernels", local)
    write("local-kernels", local_text(local), local)
    return table, figure, local, claims


def _versions() -> str:
    return (
        f"sketchmeans {__version__}, Python {platform.python_version()}, NumPy "
        f"{np.__version__}, SciPy {scipy.__version__}, scikit-learn {sklearn.__version__}"
    )
