#!/usr/bin/env python3
"""Applies each deliberate fault of mutants.py to a copy of the sources and asks that some test fail; a TAP point each.

usage: mutate.py ROOT MESON-COMMAND [--only NAME-PART]... [--keep FOLDER]

The copy is built once, without GPU code, at -O1, then each mutant incrementally: its file changes, the programs of its
tests are linked again and run. A mutant that does not apply, does not compile, or that every test passes over is a
failure; so is a test that fails without any mutant.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

here = Path(__file__).resolve()
sys.path[:0] = [str(here.parent.parent / "hygiene"), str(here.parents[2] / "scripts")]
from hygiene import tracked_files  # noqa: E402
from mutants import MUTANTS  # noqa: E402
from tap import Tap  # noqa: E402
from test_targets import targets_of, tests_of  # noqa: E402

BUILD_TIMEOUT_S = 900  # a minute or two on an idle machine
TEST_TIMEOUT_S = 240  # without a mutant
# A mutant may well hang, which is caught, too: so much longer than the same test took without it, and never less.
HANG_FACTOR = 6
HANG_LEAST_S = 15
TRIES = 3  # of a test that fails now and then without a mutant


class Copy:
    """A copy of the sources with its own build folder."""

    def __init__(self, root, meson, folder):
        self.source = Path(folder) / "source"
        self.build = Path(folder) / "build"
        for name in tracked_files(root):
            target = self.source / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, target)
        # Meson is asked for test names and targets only; the mutation suite itself is not run from here.
        self._run(meson + ["setup", str(self.build), str(self.source), "-Dcuda=disabled", "-Dtools=false",
                           "-Dwerror=false", "-Dbuildtype=plain", "-Dcpp_args=-O1", "-Dc_args=-O1"], BUILD_TIMEOUT_S)
        self.tests = {test["name"]: test for test in tests_of(self.build)}
        self.usual_s = {}  # how long a test takes
        self.unsteady = set()  # failed without a mutant, and passed when asked again

    @staticmethod
    def _run(command, timeout, env=None, cwd=None):
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                             timeout=timeout, env=env, cwd=cwd)
        text = run.stdout.decode(errors="replace")
        if run.returncode != 0:
            raise RuntimeError(text[-3000:])
        return text

    def compile(self, names):
        """Empty on success, else the compiler's words."""
        try:
            self._run(["ninja", "-C", str(self.build), *targets_of(self.build, [self.tests[name] for name in names])], BUILD_TIMEOUT_S)
            return ""
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            return str(error) or "timed out"

    def fails(self, spec):
        """True when the test (or one of its cases that the filter takes) fails, dies or hangs."""
        name, _, pattern = spec.partition(":")
        test = self.tests[name]
        env = dict(os.environ) | test["env"]
        command = list(test["cmd"])
        if pattern:
            command.append(f"--gtest_filter={pattern}")
        if test["protocol"] == "gtest":
            command += ["--gtest_fail_fast", "--gtest_brief=1"]
        limit = max(HANG_LEAST_S, HANG_FACTOR * self.usual_s[spec]) if spec in self.usual_s else TEST_TIMEOUT_S
        begin = time.monotonic()
        try:
            output = self._run(command, limit, env, test.get("workdir") or self.build)
        except (RuntimeError, subprocess.TimeoutExpired):
            return True
        # A filter that takes nothing would make every mutant survive, quietly.
        if test["protocol"] == "gtest" and "Running 0 tests" in output:
            raise LookupError(f"{spec} takes no test")
        self.usual_s.setdefault(spec, time.monotonic() - begin)
        return False


    def fails_by_itself(self, spec):
        """Whether a test fails without a mutant: tests that are decided by times may on a busy machine, but not always."""
        if not self.fails(spec):
            return False
        self.unsteady.add(spec)
        return all(self.fails(spec) for _ in range(TRIES))

    def catches(self, spec):
        """Whether a test fails for the mutant that is in place."""
        return all(self.fails(spec) for _ in range(TRIES if spec in self.unsteady else 1))


def patched(text, mutant):
    """The file with the fault in it, or None when the old text is not there exactly once."""
    return text.replace(mutant.old, mutant.new) if text.count(mutant.old) == 1 and mutant.old != mutant.new else None


def try_mutant(tap, copy, mutant):
    path = copy.source / mutant.file
    names = [spec.partition(":")[0] for spec in mutant.tests]
    unknown = [name for name in names if name not in copy.tests]
    if unknown:
        tap.fail(mutant.name, f"no such test: {', '.join(unknown)}")
        return
    original = path.read_text() if path.exists() else ""
    changed = patched(original, mutant)
    if changed is None:
        tap.fail(mutant.name, f"{mutant.file} has the text to change {original.count(mutant.old)} times, not once")
        return
    try:
        path.write_text(changed)
        complaint = copy.compile(names)
        if complaint:
            tap.fail(mutant.name, f"does not compile:\n{complaint}")
            return
        catcher = next((spec for spec in mutant.tests if copy.catches(spec)), None)
        tap.check(f"{mutant.name}: caught by {catcher}" if catcher else mutant.name, catcher,
                  f"{mutant.file}: every test passes over it: {', '.join(mutant.tests)}")
    except LookupError as error:
        tap.fail(mutant.name, error)
    finally:
        path.write_text(original)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=Path)
    parser.add_argument("meson")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--keep", help="build here, and leave it")
    options = parser.parse_args()
    wanted = [m for m in MUTANTS if not options.only or any(part in m.name for part in options.only)]
    # What is built is built without reference to how the caller is built.
    for name in ("MESON_TESTTHREADS", "CFLAGS", "CXXFLAGS", "LDFLAGS", "LD_PRELOAD", "GTEST_FILTER"):
        os.environ.pop(name, None)

    tap = Tap()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or temporary
        if options.keep:
            shutil.rmtree(folder, ignore_errors=True)
        copy = Copy(options.root.resolve(), options.meson.split(), folder)
        specs = sorted({spec for mutant in wanted for spec in mutant.tests if spec.partition(":")[0] in copy.tests})
        complaint = copy.compile([spec.partition(":")[0] for spec in specs])
        if not tap.check("the copy without a fault builds", not complaint, complaint):
            tap.finish()
        failing = [spec for spec in specs if copy.fails_by_itself(spec)]
        if not tap.check("the copy without a fault passes its tests", not failing, "\n".join(failing)):
            tap.finish()
        for mutant in wanted:
            try_mutant(tap, copy, mutant)
    tap.finish()


if __name__ == "__main__":
    main()
