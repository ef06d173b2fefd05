"""The house in rooms: who may import whom, and how large a file and a function may grow."""

import ast
import re
import shutil
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "sketchmeans"

GROUND = {
    "_arrays": "",
    "_package": "",
    "atomic": "",
    "blas": "helper text",
    "blocks": "_arrays rows",
    "centers": "_arrays blas blocks",
    "checks": "text",
    "container": "_arrays",
    "helper": "",
    "rows": "",
    "tall": "_arrays blocks rows",
    "text": "",
}
"""Files at the top that every room may import, and what they import themselves."""

ROOMS = {
    "kernels": "",
    "checkpoints": "",
    "engine": "kernels checkpoints",
    "sketches": "engine",
    "operators": "kernels checkpoints engine",
    "disk": "checkpoints engine operators",
    "graphs": "operators",
    "lowrank": "engine sketches operators",
    "certificate": "kernels checkpoints engine operators lowrank",
    "estimators": "kernels checkpoints engine sketches operators disk lowrank certificate",
    "planning": "engine operators lowrank estimators",
    "metrics": "",
    "dask": "engine estimators",
    "advice": "engine operators disk lowrank certificate estimators metrics",
    "models": "kernels operators lowrank certificate estimators",
    "plotting": "certificate estimators advice",
    "report": "certificate estimators advice plotting",
    "datasets": "",
    "reproduce": "engine sketches operators lowrank estimators advice plotting datasets",
    "io": "",
    "cli": "disk datasets io estimators planning advice models report reproduce",
    "__main__": "cli",
    "__init__": "lowrank certificate estimators planning advice models",
}
"""What each room may import of the others: only rooms above it."""

LONGEST_FILE = 400
LONGEST_FUNCTION = 60
REASONS = {
    "advice/comparing.py:compare": "eleven parameters, each described, and what it returns",
    "estimators/certifying.py:certify": "eighteen parameters, each described, and an example",
    "graphs.py:normalized": "how the normalized cut follows from the objective, and an example",
    "io/reading.py:read_table": "twenty-two parameters, each described",
    "lowrank/nystrom.py:nystrom": "seven parameters, each described",
    "planning/planning.py:plan": "six parameters, each described, and an example",
    "report/writing.py:write_report": "eight parameters, each described, and an example",
}
"""Functions that are longer, each with its reason."""


@cache
def parsed(text):
    """Return the tree of a source; most files are the same in every copy of the package."""
    return list(ast.walk(ast.parse(text)))


def modules(package):
    """Return the path of every module by its name; compiled ones have a stub."""
    found = {}
    for path in sorted(package.rglob("*.py*")):
        if path.suffix in (".py", ".pyi"):
            parts = path.relative_to(package.parent).with_suffix("").parts
            found[".".join(parts).removesuffix(".__init__")] = path
    return found


def imports(package):
    """Return the modules of ours that each module imports, anywhere in it."""
    found = modules(package)
    edges = {name: set() for name in found}
    for name, path in found.items():
        for node in parsed(path.read_text()):
            if isinstance(node, ast.Import):
                edges[name] |= {alias.name for alias in node.names if alias.name in found}
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{name} has a relative import"
                full = {f"{node.module}.{alias.name}" for alias in node.names}
                inside = {one if one in found else node.module for one in full}
                edges[name] |= {one for one in inside if one in found and one != name}
    return edges


def room(module):
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def broken_rules(package):
    """Return every import that the table does not allow."""
    return sorted(
        f"{module} imports {other}"
        for module, others in imports(package).items()
        for other in others
        if room(other) != room(module)
        and room(other) not in GROUND.get(room(module), " ".join(GROUND)).split()
        and room(other) not in ROOMS.get(room(module), "").split()
    )


def cycle(package):
    """Return modules that import each other in a circle; None where there are none."""
    edges = imports(package)
    while free := [name for name, others in edges.items() if not others & edges.keys()]:
        for name in free:
            del edges[name]
    return sorted(edges) or None


def functions(package):
    for path in modules(package).values():
        for node in parsed(path.read_text()):
            if isinstance(node, ast.FunctionDef):
                yield path.relative_to(package), node


def test_rooms_import_only_what_the_table_allows():
    assert broken_rules(PACKAGE) == []


def test_no_module_imports_itself_in_a_circle_not_even_lazily():
    assert cycle(PACKAGE) is None


def test_the_table_knows_every_room_and_rises():
    assert {room(module) for module in modules(PACKAGE)} == GROUND.keys() | ROOMS.keys()
    known = set()
    for name, others in ROOMS.items():
        assert set(others.split()) <= known, name
        known.add(name)


def test_the_drawing_of_the_contributing_page_is_the_folder():
    page = (PACKAGE.parents[1] / "CONTRIBUTING.md").read_text()
    ground, *lines = re.search(r"```\n(_arrays.*?)```", page, re.DOTALL)[1].splitlines()
    assert ground.split("the ground")[0].split() == list(GROUND)
    drawn = [line.split()[0] for line in lines]
    assert [name.removesuffix("/").removesuffix(".py") for name in drawn] == [
        name for name in ROOMS if not name.startswith("__")
    ]
    for name in drawn:
        assert (PACKAGE / name).is_dir() == name.endswith("/"), name


@pytest.mark.parametrize("name", [name for name in ROOMS if (PACKAGE / name).is_dir()])
def test_a_room_says_what_it_may_import(name):
    text = " ".join(
        ast.get_docstring(ast.parse((PACKAGE / name / "__init__.py").read_text())).split()
    )
    said = re.search(r"May import: ([\w, ]+)\.", text)[1]
    assert said == (", ".join(ROOMS[name].split()) or "no other room")


@pytest.mark.parametrize(
    ("where", "line"),
    [
        ("operators/base.py", "from sketchmeans.sketches import Sketch"),
        ("lowrank/core.py", "def late():\n    from sketchmeans.estimators import KernelKMeans"),
        ("kernels/points.py", "if TYPE_CHECKING:\n    from sketchmeans.engine import Crew"),
        ("io/table.py", "import sketchmeans.engine.threads"),
        ("blocks.py", "from sketchmeans import kernels"),
        ("engine/native.py", "from sketchmeans import KernelKMeans"),
    ],
)
def test_an_import_against_the_rule_is_noticed(where, line, tmp_path):
    copy = tmp_path / "sketchmeans"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    with (copy / where).open("a") as file:
        file.write(f"\n{line}\n")
    (broken,) = broken_rules(copy)
    assert broken.startswith("sketchmeans." + where.removesuffix(".py").replace("/", "."))


def test_a_circle_within_a_room_is_noticed(tmp_path):
    copy = tmp_path / "sketchmeans"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    with (copy / "lowrank/result.py").open("a") as file:
        file.write("\ndef late():\n    from sketchmeans.lowrank.exact import exact\n")
    assert {"sketchmeans.lowrank.exact", "sketchmeans.lowrank.result"} <= set(cycle(copy))


def test_files_and_functions_are_short_or_have_a_reason():
    long = [
        path for path in PACKAGE.rglob("*.py") if len(path.read_text().splitlines()) > LONGEST_FILE
    ]
    assert long == []
    assert {
        f"{path}:{node.name}"
        for path, node in functions(PACKAGE)
        if node.end_lineno - node.lineno + 1 > LONGEST_FUNCTION
    } == REASONS.keys()


def test_no_function_stands_twice():
    places = defaultdict(list)
    for path, node in functions(PACKAGE):
        body = node.body[1:] if ast.get_docstring(node) else node.body
        text = ast.dump(ast.Module(body, []))
        if len(text) > 300:  # a line or two may be the same
            places[text].append(f"{path}:{node.name}")
    assert [names for names in places.values() if len(names) > 1] == []


def test_private_names_stay_in_their_room():
    reached = []
    for module, path in modules(PACKAGE).items():
        for node in parsed(path.read_text()):
            if isinstance(node, ast.ImportFrom) and room(node.module or "") != room(module):
                reached += [
                    f"{module}: {alias.name}"
                    for alias in node.names
                    if re.match(r"_[a-z]", alias.name) and node.module != "sketchmeans"
                ]
            if room(module) in ("estimators", "engine", "blas", "kernels"):
                continue  # their objects know each other
            if isinstance(node, ast.Attribute) and re.match(r"_[a-z]", node.attr):
                owner = ast.unparse(node.value)
                if owner not in ("self", "cls", "super()"):
                    reached.append(f"{module}: {owner}.{node.attr}")
    assert reached == []
