"""Deliberate faults. Each must make some test fail: a suite that passes over one of them would pass over the real thing.

`old` occurs exactly once in `file`. `tests` are names of Meson tests, with, for GoogleTest programs, a filter; the first
that fails settles the matter, so the likeliest comes first.
"""
from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    name: str  # what goes wrong, in the words of a user's bug report
    file: str
    old: str
    new: str
    tests: tuple  # of "meson-test-name" or "meson-test-name:gtest-filter"


MUTANTS = ()
