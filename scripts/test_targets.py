#!/usr/bin/env python3
"""Prints the programs that the tests of one suite run, as ninja targets.

usage: meson introspect BUILD --tests | test_targets.py BUILD SUITE
"""
import json
import os
import sys

build, suite = sys.argv[1:3]
targets = set()
for test in json.load(sys.stdin):
    if any(name.split(":")[-1] == suite for name in test["suite"]):
        for path in test["cmd"]:
            if path.startswith(build + os.sep):
                targets.add(os.path.relpath(path, build))
print(" ".join(sorted(targets)))
