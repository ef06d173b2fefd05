"""What to run next, in the reader's own words: a command to copy, or names of Python.

A command is built from the one that ran, so that it reads the same file in the same way. Options
that are not known here, of reading above all, are kept as they stand.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

OUTPUTS = {
    "-o": True,
    "--output": True,
    "--save": True,
    "--report": True,
    "--force": False,
    "--json": False,
    "-q": False,
    "--quiet": False,
    "-v": False,
    "--verbose": False,
}
"""Options of what is written, and whether they have a value. They are left out: what is tried next
is looked at first, and does not take the place of files that are there."""
CLUSTERS = {"-k": True, "--clusters": True}
FITTING = {
    "--kernel": True,
    "--gamma": True,
    "--degree": True,
    "--coef0": True,
    "--anchors": True,
    "--neighbors": True,
    "--graphs": True,
    "--metric": True,
    "--method": True,
    "--rank": True,
    "--landmarks": True,
    "--passes": True,
    "--refine": True,
    "--memory-limit": True,
}
"""Options of the fit that ``choose`` has not, or finds by itself."""
CHOSEN = {"--kernel": True, "--gamma": True, "--gammas": True}
"""Options of ``choose`` that its recommendation takes the place of."""


@dataclass(frozen=True)
class FollowUp:
    """Words for what to run next.

    Examples
    --------
    >>> FollowUp.of("sketchmeans cluster 'my data.csv' -k 3 -o labels.csv").cluster("--standardize")
    "sketchmeans cluster 'my data.csv' -k 3 --standardize"
    """

    arguments: list[str] | None = None
    """Of the ``sketchmeans cluster`` that ran, without its outputs; None where none did."""
    has_report: bool = False

    @classmethod
    def of(cls, command: str | Sequence[str] | None) -> FollowUp:
        """Take a command apart; whatever is not ``sketchmeans cluster`` counts as none."""
        try:
            words = shlex.split(command) if isinstance(command, str) else list(command or ())
        except ValueError:  # a quotation mark without its partner
            return cls()
        if words[:2] != ["sketchmeans", "cluster"]:
            return cls()
        has_report = any(word.partition("=")[0] == "--report" for word in words)
        return cls(without(words[2:], OUTPUTS), has_report)

    @property
    def on_the_command_line(self) -> bool:
        """Whether the reader types commands."""
        return self.arguments is not None

    def option(self, flag: str, name: str, value: Any) -> str:
        """Return an option with its value, as the reader writes it."""
        if self.on_the_command_line:
            return f"{flag} {shlex.quote(str(value))}"
        return f"{name}={value!r}"

    def cluster(self, *more: str, instead: Mapping[str, bool] | None = None) -> str | None:
        """Return the command that ran with more options, and without those in their place.

        None where there is none to copy, or the data came from standard input, and are gone.
        """
        return self._command("cluster", instead or {}, more)

    def choose(self, *, precomputed: bool = False) -> str | None:
        """Return the command that looks for the number of clusters in the same data."""
        kernel = ["--kernel", "precomputed"] if precomputed else []
        return self._command("choose", CLUSTERS | FITTING, kernel)

    def _command(self, name: str, left: Mapping[str, bool], more: Sequence[str]) -> str | None:
        kept = None if self.arguments is None else without(self.arguments, left)
        if kept is None or "-" in kept:
            return None
        return shlex.join(["sketchmeans", name, *kept, *more])


def cluster_after_choose(command: str, *options: str) -> str:
    """Return the ``sketchmeans cluster`` that a ``sketchmeans choose`` recommends.

    It reads the same file in the same way; what is read from standard input must be given again.

    >>> cluster_after_choose("sketchmeans choose a.csv -vk2-9 --standardize", "-k", "3")
    'sketchmeans cluster a.csv --standardize -k 3'
    """
    words = shlex.split(command)[2:]
    end = words.index("--") if "--" in words else len(words)
    single = [part for word in words[:end] for part in _short_options(word)]
    kept = without(single, OUTPUTS | CLUSTERS | CHOSEN) or []
    return shlex.join(["sketchmeans", "cluster", *kept, *options, *words[end:]])


def _short_options(word: str) -> Iterator[str]:
    """Yield the short options of a word one by one: of -vk2-9, -v and -k2-9."""
    while re.match(r"-[qv][a-z]", word):
        yield word[:2]
        word = f"-{word[2:]}"
    yield word


def without(arguments: Sequence[str], flags: Mapping[str, bool]) -> list[str] | None:
    """Return arguments of a command without some options, which have a value or not.

    None where they are written in a way that is not understood here.

    >>> without(["a.csv", "-k3", "--rank=5", "--seed", "1"], {"-k": True, "--rank": True})
    ['a.csv', '--seed', '1']
    """
    kept, rest = [], iter(arguments)
    for word in rest:
        name = word.partition("=")[0] if word.startswith("--") else word[:2]
        if word == "--" or re.fullmatch(r"-[a-z]{2,}.*", word):
            return None  # short options in one word: which of them has the value?
        if name not in flags:
            kept.append(word)
        elif flags[name] and word == name:
            next(rest, None)
    return kept
