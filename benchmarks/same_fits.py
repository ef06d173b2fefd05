"""Whether two trees give the same fits, bit for bit: labels, embeddings, certificates, model files.

    python -m benchmarks.same_fits BEFORE_PYTHON AFTER_PYTHON

Each argument is the Python of an environment in which one of the trees is installed. Both run the
same fits over kernels, methods, options, dtypes and weights, hash what comes out, and print a line
a fit; here the lines are compared. Only public names are used, so that any two trees will do.
"""

from __future__ import annotations

import hashlib
import inspect
import itertools
import re
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

KERNELS: dict[str, dict[str, Any]] = {
    "linear": {"kernel": "linear"},
    "polynomial": {"kernel": "poly", "degree": 2},
    "polynomial, tiles": {
        "kernel": "polynomial",
        "degree": 3,
        "coef0": 0.5,
        "precision": "float32",
    },
    "rbf": {"kernel": "rbf"},
    "rbf, local": {"kernel": "rbf", "gamma": "8*median"},
    "laplacian": {"kernel": "laplacian"},
    "cosine": {"kernel": "cosine"},
    "sigmoid": {"kernel": "sigmoid", "coef0": 0.0},
    "callable": {"kernel": None},
    "precomputed": {"kernel": "precomputed"},
}
METHODS: dict[str, dict[str, Any]] = {
    "one-pass": {},
    "one-pass, early, gaussian": {"truncation": "early", "sketch": "gaussian"},
    "one-pass, 2 passes, refined": {"n_passes": 2, "n_refine": 2, "sketch": "sparse"},
    "one-pass, fraction": {"rank": 0.5, "sketch": "rademacher"},
    "nystrom": {"method": "nystrom"},
    "nystrom, early": {"method": "nystrom", "truncation": "early"},
    "nystrom, diagonal": {"method": "nystrom", "sketch": "diagonal"},
    "nystrom, column-norm": {"method": "nystrom", "sketch": "column-norm"},
    "nystrom, leverage": {"method": "nystrom", "sketch": "leverage", "n_refine": 1},
    "nystrom, kmeans": {"method": "nystrom", "sketch": "kmeans"},
    "rpcholesky": {"method": "rpcholesky"},
    "rpcholesky, fraction": {"method": "rpcholesky", "rank": 0.4},
    "greedy-cholesky": {"method": "greedy-cholesky"},
    "exact": {"method": "exact"},
}
CLUSTERS = 4


def gaussian(A: Any, B: Any) -> Any:
    """Stand for a kernel that a user writes."""
    from sklearn.metrics.pairwise import rbf_kernel

    return rbf_kernel(A, B, gamma=0.05)


def samples(layout: str, n: int) -> Any:
    """Return four clouds of points, dense or sparse, in one of two precisions."""
    random = np.random.default_rng(7)
    X = random.normal(size=(n, 5)) + 3 * random.integers(0, 2, (n, 1)) * np.eye(5)[0]
    X += 2 * random.integers(0, 2, (n, 1)) * np.eye(5)[1]
    if layout == "sparse":
        X[np.abs(X) < 0.7] = 0
        return sparse.csr_matrix(X)
    return X.astype(layout)


def weights(kind: str, n: int) -> Any:
    """Return no weights, positive ones, or some that leave samples out."""
    if kind == "none":
        return None
    values = np.random.default_rng(3).uniform(0.5, 2.0, n)
    if kind == "some zero":
        values[::17] = 0.0
    return values


def digest(*values: Any) -> str:
    """Return a short hash of arrays, numbers and texts, with the bits and dtypes of all of them."""
    total = hashlib.blake2b(digest_size=8)
    for value in values:
        if isinstance(value, np.ndarray):
            total.update(f"{value.dtype}{value.shape}".encode())
            total.update(np.ascontiguousarray(value).tobytes())
        else:
            total.update(repr(value).encode())
    return total.hexdigest()


def kernel_matrix(X: Any) -> Any:
    """Return a kernel matrix for those who want one precomputed."""
    return np.ascontiguousarray(gaussian(X, X), dtype=X.dtype)


def fits(n: int) -> Iterator[tuple[str, Any, Any, Any]]:
    """Yield a name, an estimator that is not fitted, its data and its weights."""
    import sketchmeans as sm

    for layout, kind in itertools.product(("float64", "float32", "sparse"), ("none", "some zero")):
        X, d = samples(layout, n), weights(kind, n)
        for kernel, options in KERNELS.items():
            if options["kernel"] == "precomputed":
                data, chosen = kernel_matrix(X), options
            else:
                data, chosen = X, {**options, "kernel": options["kernel"] or gaussian}
            given = {"random_state": 0, "n_init": 3, **chosen}
            for method, more in METHODS.items():
                if "precision" in chosen and more.get("method", "exact") != "exact":
                    continue
                if "kmeans" in method and kernel == "precomputed":
                    continue
                name = f"{kernel} | {method} | {layout} | {kind}"
                yield name, sm.KernelKMeans(CLUSTERS, **{**given, **more}), data, d
            for init in ("k-means++", "sketch"):
                name = f"{kernel} | full, {init} | {layout} | {kind}"
                yield name, sm.FullKernelKMeans(CLUSTERS, init=init, **given), data, d
            del given["n_init"]
            name = f"{kernel} | embedding | {layout} | {kind}"
            yield name, sm.KernelEmbedding(6, **given), data, d


def large_fits() -> Iterator[tuple[str, Any, Any, Any]]:
    """Yield fits that few samples do not reach: streamed, by Lanczos, in blocks, limited."""
    import sketchmeans as sm

    n = 4300
    for layout, kind in itertools.product(("float64", "float32"), ("none", "some zero")):
        X, d = samples(layout, n), weights(kind, n)
        given = {"kernel": "rbf", "random_state": 0, "n_init": 2}
        for name, model in {
            "large": sm.KernelKMeans(CLUSTERS, n_passes=2, n_refine=1, **given),
            "large, one thread": sm.KernelKMeans(CLUSTERS, n_jobs=1, **given),
            "large, limited": sm.KernelKMeans(CLUSTERS, n_refine=1, memory_limit="45MB", **given),
            "large, exact": sm.KernelKMeans(CLUSTERS, method="exact", rank=6, **given),
            "large, features": sm.KernelKMeans(CLUSTERS, kernel="poly", degree=2, **given),
            "large, nystrom": sm.KernelKMeans(
                CLUSTERS, method="nystrom", sketch="leverage", **given
            ),
            "large, full": sm.FullKernelKMeans(CLUSTERS, max_iter=4, **given),
            "large, full, limited": sm.FullKernelKMeans(
                CLUSTERS, max_iter=4, init="sketch", memory_limit="45MB", **given
            ),
        }.items():
            yield f"{name} | {layout} | {kind}", model, X, d


def advice(n: int) -> Iterator[tuple[str, str]]:
    """Yield what is recommended and compared; times and traced memory differ from run to run."""
    import sketchmeans as sm

    X = samples("float64", n)
    choice = sm.choose(X, gammas=("median", "4*median"), n_clusters=(2, 3, 4), random_state=0)
    yield "choose", digest(str(choice))
    table = sm.compare(X, CLUSTERS, n_seeds=2, random_state=0, y=np.arange(n) % 3)
    for row in table:
        kept = {key: value for key, value in row.items() if key not in ("seconds", "peak MB")}
        yield f"compare {row['method']}", digest(sorted(kept.items()))


def hashes(model: Any, X: Any, d: Any, path: Path) -> dict[str, str]:
    """Fit, and return the hashes of what came out, by kind."""
    import sketchmeans as sm

    try:
        model.fit(X, sample_weight=d)
    except (ValueError, MemoryError) as error:
        return {"error": digest(str(error))}
    found = {"attributes": digest(model.gamma_, getattr(model, "inertia_", None))}
    stats = {name: value for name, value in model.stats_.items() if name != "seconds"}
    found["statistics"] = digest(sorted(stats.items()))
    if hasattr(model, "embedding_"):
        found["embedding"] = digest(model.embedding_, model.eigenvalues_, model.rank_, model.width_)
        found["transform"] = digest(model.transform(X[:40]))
    if hasattr(model, "labels_"):
        found["labels"] = digest(model.labels_)
        found["predict"] = digest(model.predict(X[:40]))
        found["certificate"] = digest(astuple(model.certificate_))
        found["certificate, printed"] = digest(str(model.certificate_))
    if not callable(model.kernel):
        model.stats_ = stats  # a file holds them, and seconds differ
        sm.save(model, path, overwrite=True)
        found["model file"] = digest(path.read_bytes())
    return found


def names() -> Iterator[tuple[str, str]]:
    """Yield what is public: names, signatures, and the flags of every command."""
    import sketchmeans as sm

    for name in sorted(sm.__all__):
        public = getattr(sm, name)
        signature = str(inspect.signature(public)) if callable(public) else ""
        yield f"name {name}", digest(signature)
    for room in ("datasets", "plotting", "report"):
        module = __import__(f"sketchmeans.{room}", fromlist=["__all__"])
        yield f"names of {room}", digest(sorted(getattr(module, "__all__", [])))
    for command in ["", "cluster", "predict", "compare", "choose", "info", "reproduce", "demo"]:
        line = [sys.executable, "-m", "sketchmeans", *command.split(), "--help"]
        printed = subprocess.run(line, check=True, capture_output=True, text=True).stdout
        yield (
            f"flags of {command or 'the command line'}",
            digest(re.findall(r"--?[a-z][\w-]*", printed)),
        )


def streams(n: int) -> Iterator[tuple[str, str]]:
    """Yield the hash of a fit to columns that are pushed."""
    import sketchmeans as sm

    for layout in ("float64", "float32"):
        K = kernel_matrix(samples(layout, n))
        stream = sm.ColumnStream(n, width=30, random_state=0)
        for start in range(0, n, 100):
            stream.add_columns(start, K[:, start : start + 100])
        model = sm.KernelKMeans(CLUSTERS, random_state=0, kernel="rbf").fit(stream)
        found = model.embedding_, model.labels_, astuple(model.certificate_)
        yield f"stream | {layout}", digest(*found, model.predict(K[:40]))


def run(n: int) -> None:
    """Print a line a hash, in the tree of this Python."""
    warnings.simplefilter("ignore")
    for name, value in itertools.chain(names(), streams(n), advice(n)):
        print(f"{name}\tall\t{value}")
    with tempfile.TemporaryDirectory() as folder:
        for name, model, X, d in itertools.chain(fits(n), large_fits()):
            for kind, value in hashes(model, X, d, Path(folder) / "model.skm").items():
                print(f"{name}\t{kind}\t{value}", flush=True)


def lines(python: str, n: int) -> dict[tuple[str, str], str]:
    """Return what the tree of another Python prints."""
    command = [python, __file__, "--run", str(n)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rows = (line.split("\t") for line in printed.splitlines())
    return {(name, kind): value for name, kind, value in rows}


def main(before: str, after: str, n: int = 400) -> int:
    """Compare two trees; return how many hashes differ."""
    old, new = lines(before, n), lines(after, n)
    total, same = Counter(kind for _, kind in old), Counter()
    for (name, kind), value in old.items():
        if new.get((name, kind)) == value:
            same[kind] += 1
        else:
            print(f"differs: {name}: {kind}")
    for name, kind in sorted(new.keys() - old.keys()):
        print(f"only after: {name}: {kind}")
    for kind, count in sorted(total.items()):
        print(f"{kind:22} {same[kind]:5} of {count:5} the same")
    return sum(total.values()) - sum(same.values()) + len(new.keys() - old.keys())


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        run(int(sys.argv[2]))
    else:
        sys.exit(1 if main(*sys.argv[1:3]) else 0)
