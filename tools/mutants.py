"""Change the source a little, and see whether the tests notice.

A mutation (``tools/mutations.py``) of one of the modules below is tried
(``tools/mutant_trials.py``) with the tests that run its line (``tools/mutant_tests.py``), the
quickest first, until one fails. A mutant that fails no test has survived: a test is missing, or the
change changes nothing that anybody could see. ::

    make mutants                                  # drawn from all, in two hours at most
    make mutants ARGS="--sample 60 --seed 1"      # fewer, and others
    make mutants ARGS="--only lowrank/core --all" # every one of a module

All of them do not fit into two hours, so some are drawn, of each module its share. A draw of more
holds one of fewer with the same seed. Begun again, it goes on where it ended.

Nothing in the tree is changed. Results are kept in ``build/mutants``; one that was killed stays so
for the same source, a survivor is tried again with the files of tests that have changed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.mutant_tests import KEPT, ROOT, Asking
from tools.mutant_trials import source_of, try_functions, try_modules
from tools.mutations import Mutation, mutations

RECOVERY = "rules lowrank one_pass degenerate"
CERTIFICATE = "certificate_rules proof_rules certificate bounds proof proof_attacks"
CERTIFICATE += " proof_labels block_rules elsewhere_rules"
OPERATORS = "rules operator_rules operators engine kernels sparse_kernels"
FEATURES = OPERATORS + " lowrank one_pass bounds elsewhere_rules"
NEIGHBORS = "operator_rules native_neighbors neighbor_anchors"
TESTS = {
    "sketches": "rules sketches one_pass",
    "lowrank/core": RECOVERY,
    "lowrank/one_pass": RECOVERY,
    "certificate/above": CERTIFICATE,
    "certificate/alike": CERTIFICATE,
    "certificate/blockwise": CERTIFICATE,
    "certificate/bracket": CERTIFICATE,
    "certificate/cut": CERTIFICATE,
    "certificate/gap": CERTIFICATE,
    "certificate/intervals": CERTIFICATE,
    "certificate/joining": CERTIFICATE,
    "certificate/lift": CERTIFICATE,
    "certificate/moments": CERTIFICATE,
    "certificate/objective": CERTIFICATE,
    "certificate/optimum": CERTIFICATE,
    "certificate/parts": CERTIFICATE,
    "certificate/probable": CERTIFICATE,
    "certificate/proving": CERTIFICATE,
    "certificate/sampling": CERTIFICATE,
    "certificate/spectral": CERTIFICATE,
    "certificate/triangles": CERTIFICATE,
    "engine/schedule": "rules engine",
    "operators/base": FEATURES,
    "operators/data": FEATURES,
    "operators/features": FEATURES,
    "operators/gram": NEIGHBORS,
    "operators/monomials": FEATURES,
    "operators/neighbor_features": NEIGHBORS,
    "operators/precomputed": OPERATORS + " lowrank one_pass",
    "operators/tiles": OPERATORS + " native_maps",
    "estimators/kmeans": "rules many_rows starts",
    "estimators/many_rows": "rules many_rows",
    "estimators/starts": "rules many_rows starts",
}
"""Modules that are changed, each with the files of tests that are asked: quick ones, in process."""
SAMPLE = 400
"""Mutants that are drawn: in two hours on two cores there is time for about twice as many."""
LEAST = 0.85
"""The score below which the command ends with an error."""

Chosen = list[tuple[str, Mutation]]


def main() -> None:
    """Find the mutants, run them, and print the score."""
    parser = argparse.ArgumentParser(description="Change the source, and see what tests notice.")
    parser.add_argument("--sample", type=int, default=SAMPLE, help="so many mutants are drawn")
    parser.add_argument("--all", action="store_true", help="try all of them")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("--only", action="append", help="modules, as lowrank/core")
    parser.add_argument("--minutes", type=float, default=110, help="begin none after these")
    parser.add_argument("--jobs", type=int, default=2, help="mutants side by side")
    asked = parser.parse_args()
    end = time.monotonic() + 60 * asked.minutes
    modules = asked.only or list(TESTS)
    if unknown := set(modules) - TESTS.keys():
        sys.exit(f"no such module among those that are mutated: {', '.join(sorted(unknown))}")
    os.chdir(ROOT)
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
    _import_what_is_large()
    every = {module: mutations(source_of(module)) for module in modules}
    total = sum(map(len, every.values()))
    chosen = drawn(every, total if asked.all else asked.sample, asked.seed)
    told = f"{len(chosen)} of {total:,} mutants of {len(every)} modules"
    if len(chosen) < total:
        told += f", drawn with seed {asked.seed}, of each module its share"
    print(told, flush=True)
    asking = Asking({module: TESTS[module].split() for module in modules}, asked.jobs)
    kept = Kept(asking)
    _try(chosen, asking, kept, asked.jobs, end)
    _report(chosen, kept, told)


def drawn(every: dict[str, list[Mutation]], count: int, seed: int) -> Chosen:
    """Draw mutants, of each module its share, in an order in which any beginning is such a draw."""
    total = sum(map(len, every.values()))
    ranked = []
    for module, some in every.items():
        order = random.Random(f"{seed} {module}").sample(some, len(some))
        ranked += [((place + 0.5) / len(some), module, one) for place, one in enumerate(order)]
    ranked.sort(key=lambda rank: rank[:2])
    return [(module, one) for _, module, one in ranked[: min(count, total)]]


def _import_what_is_large() -> None:
    """Import what every test imports, once and before the forks; nothing of ours."""
    import hypothesis.strategies
    import pandas
    import scipy.linalg
    import scipy.sparse
    import sklearn.cluster
    import sklearn.datasets
    import sklearn.metrics

    del hypothesis, pandas, scipy, sklearn


def _try(chosen: Chosen, asking: Asking, kept: Kept, jobs: int, end: float) -> None:
    """Run the tests of mutants of which nothing is known."""

    def unknown() -> Chosen:
        return [pair for pair in chosen if kept.verdict(*pair) is None]

    for module, mutation in unknown():
        asking.only[module, mutation] = kept.unasked(module, mutation)
        if not asking.tests(module, mutation):
            kept.add(module, mutation, "", 0.0, "no test runs the line")
    for run in (try_functions, try_modules):
        if waiting := unknown():
            run(waiting, asking, kept.add, jobs, end)
            kept.read()


class Kept:
    """Verdicts of this run and of those before."""

    def __init__(self, asking: Asking) -> None:
        self.asking = asking
        self.path = KEPT / "results.jsonl"
        self.found: dict[str, dict[str, Any]] = {}
        self._told = os.dup(1)
        self.read()

    def read(self) -> None:
        """Take what the file has, which other processes write to as well."""
        if self.path.exists():
            for line in self.path.read_text().splitlines():
                one = json.loads(line)
                self.found[one["key"]] = one

    @staticmethod
    def _key(module: str, mutation: Mutation) -> str:
        source = hashlib.sha256(source_of(module).encode()).hexdigest()[:16]
        return f"{module} {source} {mutation.number}"

    def verdict(self, module: str, mutation: Mutation) -> str | None:
        """Return what is known; None where it has to be tried."""
        one = self.found.get(self._key(module, mutation))
        return one["verdict"] if one and not self.unasked(module, mutation) else None

    def unasked(self, module: str, mutation: Mutation) -> list[str]:
        """Return the files of tests that have not been asked, or have changed since."""
        one = self.found.get(self._key(module, mutation))
        if one and one["verdict"] == "killed":
            return []
        asked = one["asked"] if one else {}
        return [
            name for name, state in self.asking.state(module).items() if asked.get(name) != state
        ]

    def add(self, module: str, mutation: Mutation, by: str, took: float, why: str = "") -> None:
        """Keep what noticed a mutant, if anything did, in the file at once."""
        verdict = "killed" if by else "survived"
        key = self._key(module, mutation)
        one = {"key": key, "verdict": verdict, "by": by, "asked": self.asking.state(module)}
        one |= {"name": mutation.name, "seconds": round(took, 1)}
        self.found[key] = one
        with self.path.open("a") as file:
            file.write(json.dumps(one) + "\n")
        if not by:
            os.write(self._told, f"survived: {module}.py:{mutation.name}  {why}\n".encode())


def _report(chosen: Chosen, kept: Kept, told: str) -> None:
    """Print the score of each module and of all, and what survived."""
    tried = [(module, one) for module, one in chosen if kept.verdict(module, one)]
    survivors = [(module, one) for module, one in tried if kept.verdict(module, one) != "killed"]
    if not tried:
        sys.exit("no mutant was tried")
    print(f"\n{'module':28} {'mutants':>7} {'killed':>7} {'score':>7}")
    for module in TESTS:
        count = sum(name == module for name, _ in tried)
        if count:
            killed = count - sum(name == module for name, _ in survivors)
            print(f"{module:28} {count:7} {killed:7} {killed / count:7.1%}")
    count, killed = len(tried), len(tried) - len(survivors)
    score = killed / count
    print(f"{'all':28} {count:7} {killed:7} {score:7.1%}")
    if survivors:
        print("\nsurvivors:")
        for module, one in sorted(survivors, key=lambda pair: (pair[0], pair[1].number)):
            print(f"  {module}.py:{one.name}")
    print(f"\n{told}.")
    if count < len(chosen):
        print(f"{len(chosen) - count} of these were not tried in this time: run it again.")
    low, high = _interval(killed, count)
    print(f"{score:.1%} were killed: of all, {low:.1%} to {high:.1%} with a confidence of 95 %.")
    if score < LEAST:
        sys.exit(f"That is less than {LEAST:.0%}.")


def _interval(hits: int, count: int) -> tuple[float, float]:
    """Return Wilson's interval of a share that was seen in a sample."""
    z, share = 1.96, hits / count
    middle = share + z**2 / (2 * count)
    half = z * math.sqrt(share * (1 - share) / count + z**2 / (4 * count**2))
    return (middle - half) / (1 + z**2 / count), (middle + half) / (1 + z**2 / count)


if __name__ == "__main__":
    main()
