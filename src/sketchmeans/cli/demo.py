"""``sketchmeans demo``: data sets clustered, or written as files to try the commands on."""

from __future__ import annotations

import csv
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sketchmeans.cli.options import examples

if TYPE_CHECKING:
    from sketchmeans._arrays import FloatArray, IntArray
    from sketchmeans.estimators import KernelKMeans

COLUMNS, LINES = 46, 17


@click.command(epilog=examples("sketchmeans demo", "sketchmeans demo --write examples"))
@click.option(
    "--write",
    type=click.Path(file_okay=False),
    metavar="FOLDER",
    help="Write rings.csv, digits.csv and new-digits.csv to a folder instead.",
)
@click.option("--force", is_flag=True, help="Overwrite files that exist.")
def command(write: str | None, force: bool) -> None:
    """Cluster moons, handwritten digits, many points and two rings, and show what was found."""
    if write is None:
        _show_moons()
        _show_digits()
        _show_many()
        _show_rings()
        return
    for path in write_examples(write, force=force):
        click.echo(path)


def write_examples(folder: str | os.PathLike[str], *, force: bool = False) -> list[Path]:
    """Write data sets to try the command line on, and return their paths.

    ``rings.csv`` has 2,000 points of the plane with the ring of each; ``digits.csv`` the first
    1,500 of scikit-learn's digits with an id and the digit, ``new-digits.csv`` the other 297
    without it.
    """
    from sklearn.datasets import load_digits

    from sketchmeans.atomic import refuse_existing, whole_file
    from sketchmeans.datasets import make_rings

    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    X, ring = make_rings(2000, random_state=0)
    digits = load_digits()
    images = [f"image-{index:04d}" for index in range(1, len(digits.data) + 1)]
    pixels = digits.data.astype(int)
    names = [f"pixel_{index}" for index in range(pixels.shape[1])]
    tables = {
        "rings.csv": (
            ["x", "y", "ring"],
            [*X.T.tolist(), ["inner" if r == 0 else "outer" for r in ring]],
        ),
        "digits.csv": (
            ["image", *names, "digit"],
            [images[:1500], *pixels[:1500].T.tolist(), digits.target[:1500].tolist()],
        ),
        "new-digits.csv": (["image", *names], [images[1500:], *pixels[1500:].T.tolist()]),
    }
    paths = [target / name for name in tables]
    way_out = None if force else "Say --force to overwrite it, or choose another folder."
    if way_out is not None:
        for path in paths:
            refuse_existing(path, way_out=way_out)
    for path, (header, columns) in zip(paths, tables.values(), strict=True):
        with (
            whole_file(path, way_out=way_out) as temporary,
            temporary.open("w", newline="") as text,
        ):
            writer = csv.writer(text, lineterminator="\n")
            writer.writerow(header)
            writer.writerows(zip(*columns, strict=True))
    return paths


def _show_moons() -> None:
    """Cluster two moons with every option at its default, beside plain K-means."""
    from sklearn.datasets import make_moons

    from sketchmeans.estimators import KernelKMeans

    X, truth = make_moons(2000, noise=0.06, random_state=0)
    model = KernelKMeans(2, random_state=0).fit(X)
    click.echo("Two moons, 2,000 points, every option at its default.\n")
    _show_beside(X, truth, model, "sketchmeans")
    click.echo("\n  " + str(model.certificate_).replace("\n", "\n  ") + "\n")


def _show_rings() -> None:
    """Cluster two rings with the paper's kernel, beside plain K-means."""
    from sketchmeans.datasets import make_rings
    from sketchmeans.estimators import KernelKMeans

    X, truth = make_rings(4000, random_state=0)
    rings = KernelKMeans(
        2, kernel="polynomial", degree=2, coef0=0, rank=2, oversampling=10, random_state=0
    ).fit(X)
    click.echo("\nThe paper's rings and kernel, 4,000 points: a sketch of the kernel matrix.\n")
    _show_beside(X, truth, rings, "sketchmeans, kernel ⟨x, y⟩²")
    click.echo(
        f"\n  Kept: a sketch of {rings.stats_['sketch_bytes'] / 1e3:.0f} kB; the kernel matrix "
        f"would be {len(X) ** 2 * 8 / 1e6:.0f} MB."
    )


def _show_beside(X: FloatArray, truth: IntArray, model: KernelKMeans, name: str) -> None:
    """Draw what a model and plain K-means found in the plane."""
    from sklearn.cluster import KMeans

    from sketchmeans.advice.comparing import accuracy
    from sketchmeans.blas import OneBlasThread

    with OneBlasThread():
        plain = KMeans(2, n_init=10, random_state=0).fit_predict(X)
    click.echo(f"  {name:<{COLUMNS}}   plain K-means")
    for one, other in zip(_draw(X, model.labels_), _draw(X, plain), strict=True):
        click.echo(f"  {one}   {other}")
    right = f"right for {accuracy(truth, model.labels_):.1%} of the points"
    click.echo(f"  {right:<{COLUMNS}}   right for {accuracy(truth, plain):.1%}")


def _draw(X: FloatArray, labels: IntArray) -> list[str]:
    """Draw points of the plane in the terminal: the commoner of two clusters in each cell."""
    import numpy as np

    low, high = X.min(axis=0), X.max(axis=0)
    places = (X - low) / (high - low) * [COLUMNS - 1, LINES - 1]
    column, line = np.rint(places).astype(int).T
    counts = np.zeros((2, LINES, COLUMNS), int)
    np.add.at(counts, (labels, line, column), 1)
    cells = np.where(counts.sum(axis=0) == 0, " ", np.where(counts[0] >= counts[1], "o", "·"))
    return ["".join(row) for row in cells[::-1]]


def _show_digits() -> None:
    """Cluster handwritten digits, and say which digits each cluster holds."""
    import numpy as np
    from sklearn.cluster import KMeans
    from sklearn.datasets import load_digits
    from sklearn.metrics import normalized_mutual_info_score

    from sketchmeans.blas import OneBlasThread
    from sketchmeans.estimators import KernelKMeans

    digits = load_digits()
    start = time.perf_counter()
    model = KernelKMeans(10, random_state=0).fit(digits.data)
    seconds = time.perf_counter() - start
    with OneBlasThread():
        baseline = KMeans(10, n_init=10, random_state=0).fit_predict(digits.data)
    click.echo("Handwritten digits, 1,797 images of 64 pixels, ten clusters, the same defaults.\n")
    click.echo("  cluster  images  mostly")
    for cluster in range(10):
        shown = digits.target[model.labels_ == cluster]
        common = np.bincount(shown, minlength=10)
        click.echo(
            f"  {cluster:>7}  {len(shown):>6}  {common.argmax()} ({common.max() / len(shown):.0%})"
        )
    found = normalized_mutual_info_score(digits.target, model.labels_)
    plainly = normalized_mutual_info_score(digits.target, baseline)
    click.echo(
        f"\n  Agreement with the true digits (NMI): {found:.2f}; plain K-means: {plainly:.2f}.\n"
        f"  {model.stats_['anchors']:,} anchors, {model.stats_['distances'] / 1e6:.1f} million "
        f"distances, {seconds:.1f} s, {model.stats_['n_threads']} threads.\n"
    )
    click.echo("  " + str(model.certificate_).replace("\n", "\n  ") + "\n")


def _show_many() -> None:
    """Cluster a hundred thousand points: time is linear in their number."""
    from sklearn.datasets import make_moons

    from sketchmeans.advice.comparing import accuracy
    from sketchmeans.estimators import KernelKMeans

    X, truth = make_moons(100_000, noise=0.06, random_state=0)
    start = time.perf_counter()
    model = KernelKMeans(2, random_state=0).fit(X)
    seconds = time.perf_counter() - start
    distances = model.stats_["distances"] // len(X)
    click.echo("The moons again, 100,000 points.\n")
    click.echo(
        f"  Right for {accuracy(truth, model.labels_):.1%} of the points after {seconds:.1f} s: "
        f"{distances:,} distances per point,\n  where a graph of all points takes {len(X):,}."
    )
