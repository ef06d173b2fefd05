"""The paper's table and figures from one command.

    experiments ─▶ rows of data ─▶ claims: verdicts
                        │             │
                        ▼             ▼
                     drawing        page          (PNG, SVG)  (Markdown, JSON)

``trials`` runs a method on a problem many times; ``experiments`` says which methods on which
problems; ``claims`` measures what else the paper says and judges it; ``theorem`` tries every
partition of small cases. None of them draws or writes. ``drawing`` and ``page`` turn their results
into files, each of which appears whole or not at all.
"""

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

from sketchmeans._version import __version__
from sketchmeans.atomic import Folder, refuse_existing
from sketchmeans.datasets import load_segmentation
from sketchmeans.reproduce import drawing
from sketchmeans.reproduce.claims import judge, measure_claims
from sketchmeans.reproduce.experiments import (
    LANDMARKS,
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

FULL_TRIALS, QUICK_TRIALS = 100, 10
PAGE = "README.md"
FIGURES = ("figure-1", "figure-2", "figure-3", "local-kernels")
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
        so does Figure 3 if ``quick``, but at least five.
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
    folder = Folder(Path(out), None if overwrite else "Choose another folder, or give --force.")
    drawing.need_matplotlib()
    load_segmentation()
    if folder.way_out is not None:
        for name in FILES:
            refuse_existing(folder.path / name, way_out=folder.way_out)
    folder.path.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    landmarks = (LANDMARKS[0], 20, 50, LANDMARKS[-1]) if quick else LANDMARKS
    multiples = (2.0, 4.0) if quick else (1.5, 2.0, 3.0, 4.0, 8.0)

    def stage(name: str) -> Callable[[int, int], None]:
        return lambda done, total: show(name, done, total) if show is not None else None

    command = f"sketchmeans reproduce{' --quick' if quick else ''} --trials {trials} --seed {seed}"
    write = _Tables(folder, {"command": command, "versions": _versions()})
    picture = rings_picture(seed)
    drawing.draw_figure_1(folder, picture)
    drawing.draw_figure_2(folder, picture)
    table = table_1(trials=trials, seed=seed, report=stage("Table 1"))
    write("table-1", str(table_1_text(table)), table)

    few = max(5, trials // 5)
    figure = figure_3(
        trials=few if quick else trials,
        seed=seed,
        landmarks=landmarks,
        report=stage("Figure 3"),
    )
    drawing.draw_figure_3(folder, figure)
    write("figure-3", str(figure_3_text(figure, landmarks)), figure)

    measured = measure_claims(table, figure, trials=few, seed=seed, report=stage("claims"))
    claims = judge(table, figure, measured)
    judged = [{"verdict": claim.verdict, **asdict(claim)} for claim in claims]
    write("claims", claims_text(claims), {"claims": judged, "measured": measured})

    panels = local_kernels(
        trials=max(2, trials // 5), seed=seed, multiples=multiples, report=stage("local kernels")
    )
    drawing.draw_local_kernels(folder, panels)
    write("local-kernels", "\n\n".join(str(local_text(panel)) for panel in panels), panels)
    minutes = (time.perf_counter() - start) / 60
    folder.write(PAGE, page_text(command, _versions(), minutes, table, figure, panels, claims))
    return folder.path / PAGE


class _Tables:
    """Writes tables to a folder, as text and as data, with the facts that all of them share."""

    def __init__(self, folder: Folder, facts: dict[str, str]) -> None:
        self.folder, self.facts = folder, facts

    def __call__(self, name: str, text: str, results: Any) -> None:
        self.folder.write(f"{name}.md", text + "\n")
        content = json.dumps({**self.facts, "results": results}, default=asdict, indent=1)
        self.folder.write(f"{name}.json", content + "\n")


def _versions() -> str:
    return (
        f"sketchmeans {__version__}, Python {platform.python_version()}, NumPy "
        f"{np.__version__}, SciPy {scipy.__version__}, scikit-learn {sklearn.__version__}"
    )
