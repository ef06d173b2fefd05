"""Nothing is run that a file brought along, and nobody is called: see SECURITY.md."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import sketchmeans

PACKAGE = Path(sketchmeans.__file__).parent

ALLOWED = {
    "dask/sending.py: import pickle": "functions for the workers of the user's own cluster, which "
    "Dask would pickle anyway; no file is read by it",
    "dask/sending.py: pickle.loads": "the other end of the same",
}
"""What stands in the source all the same, each with its reason; SECURITY.md says it too."""
RUNS_TEXT = {"eval", "exec", "compile", "__import__", "breakpoint"}
RUNS_FILES = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "code", "runpy"}
CALLS_OTHERS = {
    *("socket", "ssl", "urllib", "http", "ftplib", "smtplib", "poplib", "imaplib", "telnetlib"),
    *("socketserver", "xmlrpc", "webbrowser", "requests", "httpx", "aiohttp", "urllib3", "pooch"),
}
UNSAFE = {
    ("os", "system"),
    ("os", "popen"),
    ("pickle", "load"),
    ("pickle", "loads"),
    ("joblib", "load"),
    ("pandas", "read_pickle"),
    ("pd", "read_pickle"),
    ("yaml", "load"),
}


def dangers(source):
    """Return what in a source could run something foreign, or call somebody."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in RUNS_TEXT:
                found.append(name)
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if (owner, name) in UNSAFE:
                found.append(f"{owner}.{name}")
            case ast.Import():
                names = [alias.name.split(".")[0] for alias in node.names]
                found += [f"import {n}" for n in names if n in RUNS_FILES | CALLS_OTHERS]
            case ast.ImportFrom(module=str(module)):
                if (name := module.split(".")[0]) in RUNS_FILES | CALLS_OTHERS:
                    found.append(f"import {name}")
            case ast.keyword(arg="shell" | "allow_pickle" as name, value=value):
                if not (isinstance(value, ast.Constant) and value.value is False):
                    found.append(f"{name}={ast.unparse(value)}")
    return found


def test_nothing_in_the_source_runs_texts_or_files_or_calls_anybody():
    found = {
        f"{path.relative_to(PACKAGE).as_posix()}: {danger}"
        for path in PACKAGE.rglob("*.py")
        for danger in dangers(path.read_text())
    }
    assert found == ALLOWED.keys()


@pytest.mark.parametrize(
    ("line", "danger"),
    [
        ("eval('1')", "eval"),
        ("exec(text, {})", "exec"),
        ("import pickle.tools", "import pickle"),
        ("from pickle import loads", "import pickle"),
        ("model = pickle.load(file)", "pickle.load"),
        ("def late():\n    from urllib.request import urlopen", "import urllib"),
        ("import numpy, socket", "import socket"),
        ("subprocess.run(command, shell=True)", "shell=True"),
        ("subprocess.run(command, shell=asked)", "shell=asked"),
        ("os.system('ls')", "os.system"),
        ("np.load(path, allow_pickle=True)", "allow_pickle=True"),
        ("joblib.load(path)", "joblib.load"),
    ],
)
def test_a_danger_would_be_noticed(line, danger):
    assert dangers(line) == [danger]


def test_what_could_be_mistaken_for_a_danger_is_none():
    assert dangers("np.load(path, allow_pickle=False)\nmodel.evaluate()\nre.compile('x')") == []


OFFLINE = """
import sys

def refuse(event, arguments):
    # NOTE: looking up the machine's own name sends nothing.
    if event.startswith(("socket.", "urllib.", "http.", "ftplib.", "smtplib.")):
        if event != "socket.gethostname":
            raise RuntimeError(f"somebody was called: {event} {arguments}")
    if event == "os.system":
        raise RuntimeError(f"a shell was started: {arguments}")

sys.addaudithook(refuse)
import socket
try:
    socket.create_connection(("localhost", 9))
except RuntimeError as error:
    assert "somebody was called" in str(error)
else:
    raise SystemExit("the hook hears nothing")

import numpy as np
from sketchmeans import (
    FullKernelKMeans, KernelEmbedding, KernelKMeans, certify, choose, compare, load, save
)
from sketchmeans.lowrank import METHODS
from sketchmeans.report import write_report

X = np.random.default_rng(0).normal(size=(120, 3))
X[:60] += 6
for options in ({}, *({"kernel": "rbf", "method": method} for method in METHODS)):
    model = KernelKMeans(2, random_state=0, n_jobs=2, **options).fit(X)
    labels = model.predict(X)
FullKernelKMeans(2, kernel="rbf", random_state=0).fit(X)
KernelEmbedding(kernel="rbf", rank=3, random_state=0).fit_transform(X)
save(model, "model.skm")
assert (load("model.skm").predict(X) == labels).all()
write_report("report.html", model, X)
str(certify(X, model))
str(compare(X, 2, kernels=["rbf"], random_state=0))
str(choose(X, n_clusters=[2, 3], gammas=["median"], kernel="rbf", n_splits=2, random_state=0))

import os
from sketchmeans.cli import main
np.savetxt("data.csv", X, delimiter=",", header="a,b,c", comments="")
for command in (
    "cluster data.csv -k 2 -o labels.csv --save clusters.skm --report page.html",
    "predict clusters.skm data.csv -o again.csv",
    "info clusters.skm",
    "certify data.csv --model clusters.skm",
    "--version",
):
    sys.argv = ["sketchmeans", *command.split()]
    try:
        main()
    except SystemExit as ended:
        assert not ended.code, (command, ended.code)
assert os.path.getsize("page.html") > 10_000
print("nobody was called")
"""


def test_fits_files_reports_and_commands_call_nobody(tmp_path):
    """With a hook that hears every socket of Python, in a process of its own: it stays for good."""
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[-1] == "nobody was called"
