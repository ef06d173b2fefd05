"""The command line: help, completion, progress and warnings."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, load_iris

import forked
import shell
from shell import sketchmeans as run
from sketchmeans.cli import COMMANDS, FLAGS, cli
from sketchmeans.cli import options as shared

ROOT = Path(__file__).parents[1]
WRITTEN = list(COMMANDS)


@pytest.mark.parametrize("name", WRITTEN)
def test_help_shows_examples_that_parse(name):
    shown = run(name, "--help").stdout
    examples = shown.split("Examples:\n")[1].splitlines()
    split = [
        shlex.split(example.split("| ")[-1].split(" > ")[0], comments=True) for example in examples
    ]
    assert sum(words[1] == name for words in split) >= 2
    for words in split:
        assert words[0] == "sketchmeans"
        command = cli.get_command(None, words[1])
        command.make_context(name, words[2:])


def test_help_answers_without_importing_numpy():
    code = (
        "import sys; from click.testing import CliRunner; from sketchmeans.cli import cli\n"
        f"for name in [[], *[[name] for name in {WRITTEN}]]:\n"
        "    assert CliRunner().invoke(cli, [*name, '--help']).exit_code == 0\n"
        "print('numpy' in sys.modules, 'sklearn' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "False False\n"


def test_choices_of_options_are_those_of_the_library():
    from sketchmeans import KernelKMeans
    from sketchmeans.kernels import ALIASES, KERNELS
    from sketchmeans.kernels.neighbors import METRICS
    from sketchmeans.lowrank import METHODS

    assert set(shared.KERNELS) == {*KERNELS, *ALIASES, "neighbors", "precomputed"}
    assert KernelKMeans().kernel == shared.DEFAULT_KERNEL
    assert shared.METRICS == METRICS
    assert set(shared.METHODS) == {"auto", *METHODS}


def test_messages_name_flags_that_there_are():
    commands = [cli.get_command(None, name) for name in COMMANDS]
    options = [option for command in commands for option in command.params]
    assert set(FLAGS.values()) <= {name for option in options for name in option.opts}


@pytest.mark.parametrize("kind", ["bash", "zsh", "fish"])
def test_completion_is_offered_and_explained(kind, tmp_path):
    assert f"_SKETCHMEANS_COMPLETE={kind}_source sketchmeans" in run("--help").stdout
    shown = shell.run(f"_SKETCHMEANS_COMPLETE={kind}_source sketchmeans", tmp_path)
    assert shown.returncode == 0
    assert f"_SKETCHMEANS_COMPLETE={kind}_complete" in shown.stdout


def test_completion_knows_commands_and_options(tmp_path):
    def complete(words, place):
        shown = shell.run(
            f"COMP_WORDS='{words}' COMP_CWORD={place} _SKETCHMEANS_COMPLETE=bash_complete "
            "sketchmeans",
            tmp_path,
        )
        return [line.split(",")[1] for line in shown.stdout.splitlines()]

    assert complete("sketchmeans c", 1) == ["cluster", "compare", "choose", "certify"]
    assert "--memory-limit" in complete("sketchmeans cluster --mem", 2)
    assert complete("sketchmeans cluster --kernel po", 3) == ["polynomial", "poly"]


def test_progress_is_shown_on_a_terminal_only(tmp_path):
    np.save(tmp_path / "data.npy", np.random.default_rng(0).normal(size=(8000, 3)))
    command = "sketchmeans cluster data.npy -k 3 --kernel rbf --passes 3"
    # rich draws ten times a second and would skip most of so short a run; the plain line does not.
    (out, err), (_, quiet) = forked.several_on_a_terminal(
        [command, f"{command} --quiet --json"], tmp_path, hidden=["rich", "rich.console"]
    )
    for word in ("prepare", "kernel passes", "K-means", "entries/s", " s left", "100%"):
        assert word in err, word
    assert out.startswith("8,000 rows")
    assert quiet == ""
    assert shell.here(command, tmp_path).stderr == ""


OTHERS = {
    "compare data.npy -k 3 --methods 'one-pass;rpcholesky' --seeds 2": "one-pass rpcholesky",
    "predict model.skm data.npy": "predict rows/s",
}


def test_progress_of_other_commands_is_shown_on_a_terminal_only(tmp_path):
    np.save(tmp_path / "data.npy", np.random.default_rng(0).normal(size=(400, 3)))
    run("cluster", tmp_path / "data.npy", "-k", 3, "--save", tmp_path / "model.skm")
    commands = [f"sketchmeans {options}{quiet}" for options in OTHERS for quiet in ("", " --quiet")]
    shown = dict(zip(commands, forked.several_on_a_terminal(commands, tmp_path), strict=True))
    for options, words in OTHERS.items():
        command = f"sketchmeans {options}"
        (out, err), quiet = shown[command], shown[f"{command} --quiet"]
        for word in [*words.split(), "100%"]:
            assert word in err, word
        assert quiet[1] == ""
        piped = shell.here(command, tmp_path)
        assert piped.stderr == ""
        if options.startswith("predict"):  # the table of compare holds seconds
            assert out == quiet[0] == piped.stdout


@pytest.mark.parametrize("name", WRITTEN)
def test_every_option_has_a_help_text(name):
    for option in cli.get_command(None, name).params:
        if isinstance(option, click.Option):
            assert option.help, option.name


def test_warnings_are_one_line_and_quiet_silences_them(tmp_path):
    data = pd.DataFrame({"number": range(20), "x": np.random.default_rng(0).normal(size=20)})
    data.to_csv(tmp_path / "data.csv", index=False)
    shown = shell.run("sketchmeans cluster data.csv -k 2", tmp_path)
    assert shown.stderr == (
        "Warning: column 'number' counts the rows and is used as a feature. If it is an id, say "
        "--id-column number.\n"
    )
    assert shell.here("sketchmeans cluster data.csv -k 2 --quiet", tmp_path).stderr == ""


def help_examples(name):
    """Return the commands of a help page, as they stand there."""
    page = run(*name.split(), "--help").stdout
    return [line.strip() for line in page.partition("Examples:\n")[2].split("\n\n")[0].splitlines()]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a folder with the files that the help pages name and do not make."""
    folder = tmp_path_factory.mktemp("files")
    run("demo", "--write", folder)
    digits, iris = load_digits(as_frame=True), load_iris(as_frame=True)
    digits.data[:500].to_parquet(folder / "digits.parquet")
    names = iris.target_names[iris.target]
    iris.data.assign(species=names).to_csv(folder / "iris.csv", index=False)
    columns = ("--columns", "x,y", "--save", folder / "model.skm")
    run("cluster", folder / "rings.csv", "-k", 2, *columns)
    return folder


@pytest.fixture
def files(made, tmp_path):
    return shutil.copytree(made, tmp_path / "files")


@pytest.mark.parametrize("name", ["", *(name for name in COMMANDS if name != "reproduce")])
def test_every_example_of_a_help_page_does_what_it_says(name, files):
    """Those of ``reproduce`` take minutes, and have tests of their own; ``demo`` has one, too."""
    readme = (ROOT / "README.md").read_text().splitlines()
    for command in help_examples(name):
        if command == "sketchmeans demo" or (command in readme and "demo" not in command):
            continue  # test_docs.py runs it and reads what it shows, and what the README has
        if "demo --write ." in command:
            command = command.replace("--write .", "--write . --force")
        result = shell.typed(command, files)
        assert result.returncode == 0, (command, result.stderr)
        found = re.search(r"Agreement with '(\w+)': accuracy ([\d.]+)", result.stdout)
        if found:
            assert float(found[2]) > {"ring": 0.99, "digit": 0.8}[found[1]], command
