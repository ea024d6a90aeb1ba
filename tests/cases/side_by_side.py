#!/usr/bin/env python3
"""Plays the cases that may use a GPU, on a machine that has one: a process a test, some at a time, since most of their
time goes into sums in fp64 on the host. What looks at times or fills the GPU's memory runs alone, at the end.

usage: side_by_side.py CASES_TEST [--jobs N] [--seconds S] [--leave-out PART]... [--log FILE]

A line a test: its verdict, its seconds, its name; status 1 unless each one passed. A test that had no turn within S
seconds, or did not end, has not passed. No usable GPU is a failure, not a reason to skip.
"""
import argparse
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

ALONE = ("Case20", "Case31Gpu", "Case37")
# The longest first, so that they do not begin when the others end.
LONG = ("Case27", "AllWays", "Case14", "Case23", "Case04", "Case25", "Case08")


def wanted(name):
    """Whether a test may meet the GPU: the other vehicles run on any machine."""
    return not name.endswith(("/cpu", "/sim")) and not re.match(r"(With/Case32|Case31Sim|Deadline)\.", name)


def names_of(program):
    listed = subprocess.run([program, "--gtest_list_tests"], capture_output=True, text=True, check=True).stdout
    suite = ""
    for line in listed.splitlines():
        if line.startswith(" "):
            yield suite + line.split()[0]
        elif line.split() and line.split()[0].endswith("."):
            suite = line.split()[0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--jobs", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--leave-out", action="append", default=[])
    parser.add_argument("--log", default=os.devnull)
    options = parser.parse_args()
    program = os.path.abspath(options.program)
    end = time.monotonic() + options.seconds
    environment = dict(os.environ, GEMMHOIST_TEST_REQUIRE_GPU="1", GEMMHOIST_TEST_LARGE="1")
    verdicts = {}

    def play(name):
        begin = time.monotonic()
        verdict, output = "NO TURN", ""
        if begin < end:
            try:
                done = subprocess.run([program, "--gtest_filter=" + name], capture_output=True, text=True, errors="replace",
                                      env=environment, timeout=end - begin)
                output = done.stdout + done.stderr
                told = re.search(r"\[ +(OK|FAILED|SKIPPED) +\] " + re.escape(name), output)
                verdict = told.group(1) if told else f"ENDED {done.returncode}"
            except subprocess.TimeoutExpired:
                verdict = "NO END"
        verdicts[name] = verdict
        print(f"{verdict:8} {time.monotonic() - begin:6.1f} s  {name}", flush=True)
        with open(options.log, "a", encoding="utf-8") as log:
            log.write(f"=== {name}: {verdict}\n{output}\n")

    names = [name for name in names_of(program)
             if wanted(name) and not any(part in name for part in options.leave_out)]
    together = [name for name in names if not name.startswith(ALONE)]
    together.sort(key=lambda name: not any(part in name for part in LONG))
    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(play, together))
    for name in names:
        if name.startswith(ALONE):
            play(name)
    passed = sum(verdict == "OK" for verdict in verdicts.values())
    print(f"{passed} of {len(names)} passed")
    return 0 if names and passed == len(names) else 1


if __name__ == "__main__":
    sys.exit(main())
