#!/usr/bin/env python3
"""Adds up the test cases of several `meson test` runs, lists what failed and what was skipped, and why.

usage: summarise_tests.py [--passed=TEXT | --failed=TEXT | --skipped=TEXT]... LABEL=MESON-LOGS-FOLDER...

Cases come from Meson's testlog.junit.xml (a GoogleTest case, a TAP line or a whole program each count as one). A
program that died, timed out or returned an error without a failing case to show for it counts as one more failure:
testlog.json knows. Last line: "N passed, N failed" and, where there are any, ", N skipped". Status 1 when a case
failed or none ran.
"""
import json
import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path


# "../tests/cases/on_vehicle.hpp:14: Skipped"
PLACE = re.compile(r"\.[ch]pp:\d+")


def reason(element, case):
    """Why a case was skipped or failed, in one line: the first that says something."""
    texts = [element.get("message") or "", element.text or "", case.findtext("system-out") or ""]
    for text in texts:
        lines = [line.strip() for line in text.strip().splitlines()]
        lines = [line for line in lines if line and not PLACE.search(line) and not line.startswith(("/", "Running main()", "["))]
        if lines:
            return " ".join(lines[:6])[:200] if element.tag == "failure" else lines[0][:200]
    return ""


def program_name(text):
    """"gemmhoist:unit / pipeline" -> "pipeline"."""
    return text.split(" / ")[-1]


def split_title(title, names):
    """"pipeline.LedgerTest" -> ("pipeline", "LedgerTest"), by the programs' own names, which may have dots."""
    best = max((name for name in names if title == name or title.startswith(name + ".")), key=len, default=title)
    return best, title[len(best) + 1:]


def cases(folder):
    """Yields (program, case, outcome, reason); a program that is one case has its own name as the case's."""
    names = {name for name, _, _ in programs(folder)}
    for suite in ET.parse(folder / "testlog.junit.xml").getroot().iter("testsuite"):
        title = suite.get("name", "")
        for case in suite.findall("testcase"):
            name = case.get("name", "")
            if " / " in title:  # "gemmhoist:unit / pipeline.LedgerTest" or "gemmhoist / tap"
                program, group = split_title(program_name(title), names)
                name = f"{group}.{name}" if group else name
            else:  # one case a program
                program = name = program_name(name)
            bad = case.find("failure")
            if bad is None:
                bad = case.find("error")
            skipped = case.find("skipped")
            if bad is not None:
                yield program, name, "failed", reason(bad, case)
            elif skipped is not None:
                yield program, name, "skipped", reason(skipped, case)
            elif case.get("status") == "notrun":
                yield program, name, "skipped", "not run"
            else:
                yield program, name, "passed", ""


def programs(folder):
    """Yields (name, result, seconds) of each program, as Meson judged it."""
    path = folder / "testlog.json"
    if path.exists():
        for line in path.read_text(errors="replace").splitlines():
            entry = json.loads(line)
            yield program_name(entry["name"]), entry["result"], entry["duration"]


def outcomes(folder):
    """All cases, set right by the programs' own results: (program, case, outcome, reason)."""
    found = list(cases(folder))
    failing = {program for program, _, outcome, _ in found if outcome == "failed"}
    for name, result, _ in programs(folder):
        if result in ("FAIL", "TIMEOUT", "ERROR", "INTERRUPT") and name not in failing:
            # Meson 1.0 writes a program that timed out into the XML as one that passed.
            found = [entry for entry in found if entry[:2] != (name, name)]
            found.append((name, name, "failed", f"{result.lower()}, with no failing case to show for it"))
    return found


def main(arguments):
    passed, failed, skipped = 0, [], []
    slow = []
    for argument in arguments:
        if argument.startswith("--failed="):
            failed.append(argument.removeprefix("--failed="))
            continue
        if argument.startswith("--skipped="):
            skipped.append(argument.removeprefix("--skipped="))
            continue
        if argument.startswith("--passed="):
            print(argument.removeprefix("--passed="))
            passed += 1
            continue
        label, _, folder = argument.partition("=")
        slow += [(seconds, f"{label}: {name}") for name, _, seconds in programs(Path(folder))]
        for program, name, outcome, why in outcomes(Path(folder)):
            line = f"{label}: {program}" + (f": {name}" if name != program else "") + (f": {why}" if why else "")
            if outcome == "passed":
                passed += 1
            elif outcome == "skipped":
                skipped.append(line)
            else:
                failed.append(line)

    if slow:
        print("\nslowest:")
        for seconds, name in sorted(slow, reverse=True)[:8]:
            print(f"  {seconds:6.1f} s  {name}")
    for title, lines in (("skipped", skipped), ("failed", failed)):
        if lines:
            print(f"\n{title}:")
            for line in lines:
                print(f"  {line}")
        sys.stdout.flush()
    tail = f", {len(skipped)} skipped" if skipped else ""
    print(f"\n{passed} passed, {len(failed)} failed{tail}")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
