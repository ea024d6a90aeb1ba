#!/usr/bin/env python3
"""Holds tests/cases/README.md to its word: every case from 1 to 37 stands in the table, and every test or file that a
line names exists in the sources."""
import re
import sys
from pathlib import Path

CASES = range(1, 38)
ROW = re.compile(r"^\|\s*(\d+)\s*\|[^|]*\|(.*)\|\s*$")
NAME = re.compile(r"`([^`]+)`")
GTEST = re.compile(r"\bTEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)")


def tests_in(root):
    """Suite.Test of every gtest in the sources."""
    found = set()
    for path in sorted((root / "tests").rglob("*.cpp")):
        found.update(f"{suite}.{name}" for suite, name in GTEST.findall(path.read_text()))
    return found


def complaints(table, root, known):
    rows = {}
    for line in table.splitlines():
        if match := ROW.match(line):
            rows.setdefault(int(match[1]), []).extend(NAME.findall(match[2]))
    for case in CASES:
        if not rows.get(case):
            yield f"case {case} names no test"
        for name in rows.get(case, []):
            exists = (root / name).is_file() if "/" in name else name in known
            if not exists:
                yield f"case {case}: there is no {name}"


def main(root):
    table = (root / "tests/cases/README.md").read_text()
    known = tests_in(root)
    found = list(complaints(table, root, known))
    # The check must be able to fail.
    if not list(complaints(table.replace("| 1 |", "| 99 |"), root, known)):
        found.append("a missing case is not noticed")
    if not list(complaints(table, root, known - {"Case10.FourThreadsFillRowBlocksOfOneC"})):
        found.append("a missing test is not noticed")
    print("\n".join(found) or "every case has its tests")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
