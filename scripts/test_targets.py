#!/usr/bin/env python3
"""Prints what ninja must build before the tests of one suite can run.

usage: test_targets.py BUILD SUITE
"""
import json
import os
import sys
from pathlib import Path


def tests_of(build):
    return json.loads((Path(build) / "meson-info" / "intro-tests.json").read_text())


def targets_of(build, tests):
    """Ninja targets of these tests: their programs, and what else they say they depend on."""
    wanted = {dependency for test in tests for dependency in test.get("depends", [])}
    # Meson names sources from the build folder, too: BUILD/../tests/x.py.
    words = {os.path.normpath(word) for test in tests for word in test["cmd"]}
    files = {word for word in words if word.startswith(str(build) + os.sep)}
    for target in json.loads((Path(build) / "meson-info" / "intro-targets.json").read_text()):
        if target["id"] in wanted:
            files.update(target["filename"])
    return sorted(os.path.relpath(file, build) for file in files)


if __name__ == "__main__":
    folder, suite = os.path.abspath(sys.argv[1]), sys.argv[2]
    print(" ".join(targets_of(folder, [test for test in tests_of(folder) if suite in {name.split(":")[-1] for name in test["suite"]}])))
