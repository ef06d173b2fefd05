"""What the documents show is run; what they name exists."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import shell
from oracles import dense_kernel

ROOT = Path(__file__).parents[1]


def python_blocks(name):
    return re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), re.DOTALL)


def run_blocks(name):
    space = {}
    for block in python_blocks(name):
        exec(compile(block, name, "exec"), space)
    return space


def test_the_code_of_the_readme_runs():
    space = run_blocks("README.md")
    assert len(space["labels"]) == len(space["X"])


def test_the_code_of_the_page_on_clusters_runs(tmp_path):
    (block,) = python_blocks("docs/scale.md")
    script = tmp_path / "cluster.py"
    script.write_text(block)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "dask.array<sketchmeans-rows" in done.stdout


def test_the_code_and_the_commands_of_the_page_on_large_files_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    space = run_blocks("docs/out_of_core.md")
    assert isinstance(space["model"].labels_, np.memmap)
    assert np.array_equal(np.load("new.npy"), np.load("labels.npy"))
    (block,) = re.findall(r"```sh\n(.*?)```", (ROOT / "docs/out_of_core.md").read_text(), re.DOTALL)
    for command in block.splitlines():
        shown = shell.typed(command, tmp_path)
        assert shown.returncode == 0, (command, shown.stderr)
    assert len(np.load("new-labels.npy")) == len(pd.read_csv("new-digits.csv"))


def test_the_code_and_the_commands_of_the_page_on_plans_run(tmp_path, capsys):
    space = run_blocks("docs/planning.md")
    assert "30,000 rows of 10 columns into 8 clusters" in capsys.readouterr().out
    assert space["found"].seconds > 0
    (block,) = re.findall(r"```sh\n(.*?)```", (ROOT / "docs/planning.md").read_text(), re.DOTALL)
    for command in block.splitlines():
        shown = shell.typed(command, tmp_path)
        assert shown.returncode == 0, (command, shown.stderr)
    assert "neighbors kernel, method exact" in shown.stdout


def test_the_commands_of_the_readme_run_as_written(tmp_path):
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    commands = [line for block in blocks for line in block.splitlines() if "sketchmeans " in line]
    assert len(commands) >= 10
    for command in commands:
        shown = shell.typed(command, tmp_path)
        assert shown.returncode == 0, (command, shown.stderr)
        assert "Warning" not in shown.stderr, (command, shown.stderr)
        written = re.findall(r"(?:-o|--save|--report|>) ([\w-]+\.\w+)", command)
        assert shown.stdout or written, command
        for name in written:
            assert (tmp_path / name).stat().st_size > 0, (command, name)
    labels = pd.read_csv(tmp_path / "new-labels.csv")
    assert labels["image"].tolist() == pd.read_csv(tmp_path / "new-digits.csv")["image"].tolist()


def test_the_kernel_sketch_and_method_of_the_contributing_page_work(points):
    from sketchmeans.kernels import Gaussian
    from sketchmeans.operators import DataOperator

    space = run_blocks("CONTRIBUTING.md")
    operator = DataOperator(points, space["RationalQuadratic"](gamma=0.5))
    squared = np.square(points[:, None] - points[None]).sum(axis=2)
    np.testing.assert_allclose(dense_kernel(operator), 1 / (1 + 0.5 * squared), rtol=1e-10)
    sketch = space["UniformSketch"](300, 9, 0)
    np.testing.assert_array_equal(sketch.matrix[100:200], sketch.rows(100, 200))
    operator = DataOperator(points, Gaussian(0.1))
    low = space["nystrom_first"](operator, rank=5, columns=20)
    K = dense_kernel(operator)
    C = K[:, :20]
    nystrom = C @ np.linalg.pinv(K[:20, :20]) @ C.T
    np.testing.assert_allclose(low.factor @ low.factor.T, nystrom, atol=1e-6)
    for block in python_blocks("CONTRIBUTING.md"):
        assert len(block.splitlines()) < 30


@pytest.mark.parametrize(
    "page",
    [
        *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "docs/scale.md"),
        *("docs/benchmarks/README.md", "docs/out_of_core.md", "docs/planning.md"),
        *("docs/checkpoints.md", "docs/reliability.md"),
    ],
)
def test_files_and_commands_that_the_documents_name_exist(page):
    text = (ROOT / page).read_text()
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert ((ROOT / page).parent / target).exists(), target
    for module in re.findall(r"python -m ((?:benchmarks|soak)\.\w+)", text):
        assert (ROOT / f"{module.replace('.', '/')}.py").exists(), module
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"`make ([\w-]+)`", text):
        assert f"\n{target}:" in makefile, target


def test_constants_name_a_command_that_exists():
    for source in (ROOT / "src").rglob("*.py"):
        for module in re.findall(r"python -m benchmarks\.(\w+)", source.read_text()):
            assert (ROOT / "benchmarks" / f"{module}.py").exists(), (source, module)


def test_the_demonstration_runs(tmp_path):
    result = shell.here("sketchmeans demo", tmp_path)
    assert result.returncode == 0, result.stderr
    assert "sketchmeans demo" in (ROOT / "Makefile").read_text()
    assert "right for 99" in result.stdout
    assert "Right for 100.0% of the points" in result.stdout
    assert len(result.stdout.splitlines()) < 80


def test_importing_the_package_imports_nothing_heavy():
    code = (
        "import sys, sketchmeans; "
        "print([name for name in ('numpy', 'scipy', 'sklearn', 'matplotlib', 'rich') "
        "if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


def test_the_public_names_are_there():
    import sketchmeans

    for name in sketchmeans.__all__:
        assert getattr(sketchmeans, name)
    with pytest.raises(AttributeError, match="no attribute 'KernelMeans'"):
        _ = sketchmeans.KernelMeans


def test_the_version_is_that_of_the_project():
    import tomllib

    import sketchmeans

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert sketchmeans.__version__ == project["version"]
    assert f"## {project['version']}" in (ROOT / "CHANGELOG.md").read_text()
