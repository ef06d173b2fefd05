"""Install the package where no compiler is to be found, and see that it works.

A fresh virtual environment, a copy of the project, and a PATH that holds nothing but that
environment. The package must come out pure, run on the NumPy engine, say so, and refuse to be
forced to the native one; with SKETCHMEANS_REQUIRE_NATIVE=1 the install must fail. ::

    make no-compiler
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("CMakeLists.txt", "LICENSE", "README.md", "native", "pyproject.toml", "src")
CHECK = """
import numpy as np
from sketchmeans import KernelKMeans
from sketchmeans.engine import fwht
X = np.random.default_rng(0).normal(size=(40, 2)) + np.repeat([[0.0], [20.0]], 20, axis=0)
for kernel, engine in (("rbf", "numpy"), ("neighbors", "sparse features")):
    model = KernelKMeans(2, kernel=kernel, random_state=0).fit(X)
    assert model.stats_["engine"] == engine, model.stats_
    assert len(set(model.labels_[:20])) == len(set(model.labels_[20:])) == 1
assert (fwht(np.ones((8, 1)))[:, 0] == [8, 0, 0, 0, 0, 0, 0, 0]).all()
import os
os.environ["SKETCHMEANS_ENGINE"] = "native"
try:
    KernelKMeans(2, kernel="rbf").fit(X)
except ImportError as error:
    assert "was not built" in str(error), error
else:
    raise AssertionError("the native engine ran without having been built")
print("without a compiler: a pure package, and it works")
"""


def main() -> None:
    """Install, check, and try the install that must fail."""
    with tempfile.TemporaryDirectory() as folder:
        copy, home = Path(folder, "project"), Path(folder, "venv")
        copy.mkdir()
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, copy / name)
        venv.create(home, with_pip=True)
        # What the package needs is taken from the environment of `make`; only it is installed.
        site = next(home.glob("lib/python*/site-packages"))
        Path(site, "shared.pth").write_text("\n".join(p for p in sys.path if "site-packages" in p))
        environment = {**os.environ, "PATH": str(home / "bin")}
        for name in ("CC", "SKETCHMEANS_ENGINE", "SKETCHMEANS_REQUIRE_NATIVE"):
            environment.pop(name, None)
        install = [home / "bin" / "python", "-m", "pip", "install", "--no-deps", "--quiet", copy]
        strict = {**environment, "SKETCHMEANS_REQUIRE_NATIVE": "1"}
        tried = subprocess.run(install, env=strict, check=False, capture_output=True, text=True)
        if tried.returncode == 0:
            sys.exit("SKETCHMEANS_REQUIRE_NATIVE=1 did not stop an install without a compiler")
        if "compiler" not in tried.stdout + tried.stderr:
            sys.exit(f"the install failed for another reason:\n{tried.stdout}{tried.stderr}")
        subprocess.run([*install, "--force-reinstall"], env=environment, check=True)
        if compiled := list(site.glob("sketchmeans/engine/_native*.so")):
            sys.exit(f"the package is not pure: {compiled}")
        if not Path(site, "sketchmeans", "py.typed").is_file():
            sys.exit("py.typed is not in the package: type checkers would not see its types")
        environment["PATH"] = os.environ["PATH"]
        check = [home / "bin" / "python", "-c", CHECK]
        subprocess.run(check, env=environment, check=True, cwd=folder)


if __name__ == "__main__":
    main()
