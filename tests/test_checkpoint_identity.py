"""A checkpoint is of one kernel: another one is refused, the same is known again in any process."""

import functools
import os
import subprocess
import sys
import threading
import types
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from sketchmeans import KernelEmbedding, KernelKMeans
from sketchmeans.checkpoints import Checkpoint, stages
from sketchmeans.checkpoints.identity import LONG, Undescribed, described


class Interrupted(Exception):
    """Stands for whatever ends a process."""


@pytest.fixture
def interrupted(monkeypatch):
    """Return what does some work until it has saved once."""
    monkeypatch.setenv("SKETCHMEANS_CHECKPOINT_SECONDS", "0")
    monkeypatch.setattr(stages, "SHARE", np.inf)
    plain = Checkpoint.save

    def save_and_stop(self, *given):
        plain(self, *given)
        raise Interrupted

    def until_saved(work):
        with monkeypatch.context() as patch:
            patch.setattr(Checkpoint, "save", save_and_stop)
            with pytest.raises(Interrupted):
                work()

    return until_saved


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).normal(size=(300, 3))


def rbf(A, B, g=1.0):
    return np.exp(-g * ((A[:, None] - B[None]) ** 2).sum(2))


def closing(g):
    return lambda A, B: rbf(A, B, g)


def compiled(source, **known):
    """Return the function ``kernel`` of a module of a user, with this text."""
    module = types.ModuleType("theirs")
    vars(module).update(known)
    exec(source, vars(module))
    return module.kernel


def table(g, size=3_000):
    values = np.zeros(size)
    values[size // 2] = g
    return values


class Method:
    def __init__(self, g):
        self.g = g

    def kernel(self, A, B):
        return rbf(A, B, self.g)


class Instance(Method):
    def __call__(self, A, B):
        return rbf(A, B, self.g)

    def __repr__(self):
        return "Instance()"


class Slotted:
    __slots__ = ("g",)

    def __init__(self, g):
        self.g = g

    def __call__(self, A, B):
        return rbf(A, B, self.g)


@dataclass
class Data:
    g: float

    def __call__(self, A, B):
        return rbf(A, B, self.g)


def class_of(g):
    return type("Theirs", (), {"g": g, "__call__": lambda self, A, B: rbf(A, B, self.g)})


def helped(g):
    helper = compiled(f"def kernel(A, B): return rbf(A, B, {g})", rbf=rbf)
    return compiled("def kernel(A, B): return helper(A, B)", helper=helper)


def settled(g):
    settings = types.ModuleType("settings")
    settings.gamma = g
    return compiled(
        "def kernel(A, B): return rbf(A, B, settings.gamma)", rbf=rbf, settings=settings
    )


def recursive(g):
    return compiled(
        f"def kernel(A, B): return other(A, B)\ndef other(A, B): return rbf(A, B, {g}) or kernel",
        rbf=rbf,
    )


def made_of(g, *kinds):
    number = compiled(f"def kernel(self): return {g}")
    return type("Theirs", (), {kind.__name__: kind(number) for kind in kinds})()


def before_its_helper(g):
    """Return a function that closes over a name which has no value yet."""
    body = f"return later(A, B, {g})"
    return compiled(
        f"def make():\n  def kernel(A, B): {body}\n  return kernel\n  later = 0\nkernel = make()"
    )


KERNELS = {
    "closure": closing,
    "default": lambda g: compiled(f"def kernel(A, B, g={g}): return rbf(A, B, g)", rbf=rbf),
    "keyword": lambda g: compiled(f"def kernel(A, B, *, g={g}): return rbf(A, B, g)", rbf=rbf),
    "nested": lambda g: compiled(
        f"def kernel(A, B):\n  inner = lambda: rbf(A, B, {g})\n  return inner()", rbf=rbf
    ),
    "global": lambda g: compiled("def kernel(A, B): return rbf(A, B, g[0])", rbf=rbf, g=[g]),
    "global of a nested one": lambda g: compiled(
        "def kernel(A, B): return (lambda: rbf(A, B, g))()", rbf=rbf, g=g
    ),
    "helper": helped,
    "settings": settled,
    "recursive": recursive,
    "method": lambda g: Method(g).kernel,
    "instance": Instance,
    "slots": Slotted,
    "dataclass": Data,
    "class": lambda g: class_of(g)(),
    "partial": lambda g: functools.partial(rbf, g=g),
    "partial of a method": lambda g: functools.partial(Method(g).kernel),
    "cached": lambda g: functools.lru_cache(closing(g)),
    "array in a default": lambda g: compiled("def kernel(A, B, t=t): return t", t=table(g)),
    "array in lists": lambda g: {"tables": [(table(g),)]},
    "object array": lambda g: np.array([table(g), None], object),
    "attribute": lambda g: _with_attribute(g),
    "method of a builtin": lambda g: table(g).dot,
    "generator": lambda g: np.random.default_rng(int(10 * g)),
    "masked": lambda g: np.ma.masked_equal(np.arange(5.0), g),
    "number": lambda g: np.array(g),
    "sparse": lambda g: sparse.csr_matrix(np.diag(table(g, 5))),
    "text": lambda g: "x" * 5_000 + str(g),
    "number of NumPy": np.float64,
    "property": lambda g: made_of(g, property),
    "cached property": lambda g: made_of(g, functools.cached_property),
    "method of a class": lambda g: made_of(g, classmethod, staticmethod),
    "name without a value": before_its_helper,
}
"""By what they hold their number, all with a way to make one."""


def _with_attribute(g):
    def kernel(A, B):
        return rbf(A, B, kernel.g)

    kernel.g = g
    return kernel


@pytest.mark.parametrize("name", KERNELS)
def test_another_kernel_is_described_otherwise_and_the_same_alike(name):
    make = KERNELS[name]
    assert described(make(3.0)) != described(make(1.0))
    assert described(make(3.0)) == described(make(3.0))
    assert len(described(make(3.0))) <= LONG
    assert " at 0x" not in described(make(3.0))


def test_kernels_are_described_alike_with_any_hash_seed():
    program = (
        "import sys, test_checkpoint_identity as t\n"
        "for name, make in t.KERNELS.items(): print(name, t.described(make(3.0)))\n"
        "print(t.described(t.of_words), t.described({'b', 'a'}), t.described(t.defaulting))\n"
    )

    def told(seed):
        known = {**os.environ, "PYTHONHASHSEED": str(seed)}
        here = Path(__file__).parent
        command = [sys.executable, "-c", program]
        return subprocess.run(command, cwd=here, env=known, capture_output=True, check=True).stdout

    first, other = told(1), told(2)
    assert first.count(b"\n") == len(KERNELS) + 1
    assert other == first


def of_words(A, B, mode="x"):
    return rbf(A, B) if mode in {"x", "yy", "zzz", "w"} else None


def defaulting(A, B, kernel=rbf):
    return kernel(A, B)


def test_a_checkpoint_of_another_kernel_is_refused_and_of_the_same_used(X, tmp_path, interrupted):
    options = {"method": "one-pass", "random_state": 0, "n_init": 1, "n_jobs": 1}
    for make in (closing, Instance, Data, KERNELS["partial"], KERNELS["global"]):

        def model(g, folder=tmp_path / "kept", make=make):
            return KernelKMeans(2, kernel=make(g), checkpoint=folder, **options)

        interrupted(lambda: model(0.1).fit(X))
        with pytest.raises(ValueError, match="is of another fit: kernel is "):
            model(3.0).fit(X)
        expected = model(0.1, None).fit(X).embedding_
        np.testing.assert_array_equal(model(0.1).fit(X).embedding_, expected)


def test_what_differs_is_told_where_it_is_a_plain_value():
    assert "(g=0.5; " in described(closing(0.5))
    assert described(rbf).startswith(f"{__name__}.rbf (g=1.0; ")


def test_functions_of_libraries_are_named_with_their_version():
    from sklearn.metrics.pairwise import rbf_kernel

    assert described(np.dot) == f"numpy.dot {np.__version__}"
    assert described(rbf_kernel).startswith("sklearn.metrics.pairwise.rbf_kernel ")
    assert described(len) == "builtins.len"


def test_what_no_process_would_know_again_is_refused_before_any_work(X, tmp_path):
    lock = threading.Lock()

    def locked(A, B):
        with lock:
            return calls.append(1) or rbf(A, B)

    calls = []
    with pytest.raises(Undescribed):
        described(lock)
    model = KernelEmbedding(2, kernel=locked, method="one-pass", checkpoint=tmp_path / "kept")
    with pytest.raises(
        ValueError, match=r"kernel uses lock of type _thread.lock, and .* or give no"
    ):
        model.fit(X)
    assert os.listdir(tmp_path) == []
    assert calls == []
    assert model.set_params(checkpoint=None).fit(X).embedding_.shape == (300, 2)


def test_a_value_that_holds_itself_is_described():
    first, second = [1], [2]
    first.append(first)
    second.append(second)
    assert described(first) != described(second)
    held = {"own": None}
    held["own"] = held
    assert described(held) == "{'own': <1 further out>}"


def test_the_module_of_random_numbers_is_a_generator_with_a_state(X, tmp_path, interrupted):
    def model(folder=tmp_path / "kept"):
        options = {"kernel": "rbf", "method": "one-pass", "random_state": np.random}
        return KernelEmbedding(2, checkpoint=folder, **options)

    np.random.seed(1)  # noqa: NPY002 - what is tested
    interrupted(lambda: model().fit(X))
    np.random.seed(2)  # noqa: NPY002
    with pytest.raises(ValueError, match=r"random_state is a RandomState .* there and a RandomSt"):
        model().fit(X)
    np.random.seed(1)  # noqa: NPY002
    found = model().fit(X).embedding_
    np.random.seed(1)  # noqa: NPY002
    np.testing.assert_array_equal(found, model(None).fit(X).embedding_)
