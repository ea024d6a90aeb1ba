"""The command-line tool, from outside: test_cli.py TOOL LIBRARY PROBE (PROBE: any library that can be preloaded)."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL, LIBRARY, PROBE = (os.path.abspath(path) for path in sys.argv[1:4])


def clean_environment():
    return {name: value for name, value in os.environ.items()
            if not name.startswith("GEMMHOIST_") and name != "LD_PRELOAD"}


def tool(*arguments, environment=None, program=TOOL):
    return subprocess.run([program, *arguments], env=environment or clean_environment(), capture_output=True,
                          text=True, timeout=60)


def run_probe(*arguments, **keywords):
    return tool("run", "--library", PROBE, *arguments, **keywords)


SHOW = [sys.executable, "-c", "import json, os, sys; print(json.dumps([dict(os.environ), sys.argv[1:]]))"]


class Run(unittest.TestCase):
    def shown(self, *options, arguments=(), environment=None):
        result = run_probe(*options, "--", *SHOW, *arguments, environment=environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "")
        return json.loads(result.stdout)

    def test_preloads_and_sets(self):
        variables, _ = self.shown("--set", "ROUTE=gpu", "--set", "GEMMHOIST_PINNED_MIB=128", "--log", "summary")
        self.assertEqual(variables["LD_PRELOAD"], PROBE)
        self.assertEqual(variables["GEMMHOIST_ROUTE"], "gpu")
        self.assertEqual(variables["GEMMHOIST_PINNED_MIB"], "128")
        self.assertEqual(variables["GEMMHOIST_LOG"], "summary")
        self.assertNotIn("GEMMHOIST_TRACE", variables)

    def test_is_really_loaded(self):
        result = run_probe("--", "cat", "/proc/self/maps")
        self.assertIn(PROBE, result.stdout)

    def test_keeps_what_is_preloaded_already(self):
        with open("/proc/self/maps") as maps:
            other = next(line.split()[-1] for line in maps if "/libc.so" in line)
        variables, _ = self.shown(environment=dict(clean_environment(), LD_PRELOAD=other))
        self.assertEqual(variables["LD_PRELOAD"], PROBE + ":" + other)

    def test_overrides_the_environment_and_the_last_one_counts(self):
        variables, _ = self.shown("--set", "ROUTE=gpu", "--set", "ROUTE=auto",
                                  environment=dict(clean_environment(), GEMMHOIST_ROUTE="cpu"))
        self.assertEqual(variables["GEMMHOIST_ROUTE"], "auto")

    def test_value_may_hold_anything_that_its_setting_allows(self):
        variables, _ = self.shown("--set", "TRACE=a b=c,d", "--set", "LOG_FILE=")
        self.assertEqual(variables["GEMMHOIST_TRACE"], "a b=c,d")
        self.assertEqual(variables["GEMMHOIST_LOG_FILE"], "")

    def test_arguments_are_the_programs_own(self):
        words = ["--set", "x", "--", "--help", "", "two words", "--"]
        self.assertEqual(self.shown(arguments=words)[1], words)
        without_dashes = run_probe(*SHOW, "--log", "x", "--", "-h")
        self.assertEqual(json.loads(without_dashes.stdout)[1], ["--log", "x", "--", "-h"])

    def test_bad_settings_are_told_and_nothing_runs(self):
        for setting, what in [("ROUTE=fpga", "auto, cpu, gpu"), ("PINNED_MIB=1", "from 16 to 16384 MiB"),
                              ("PINNED_MIB=", "from 16 to 16384 MiB"), ("ROUT=gpu", "GEMMHOIST_ROUTE?"),
                              ("ROUTE", "has no '='"), ("DEVICES=0,0", "different ordinals")]:
            result = run_probe("--set", setting, "--", "echo", "ran")
            self.assertEqual((result.returncode, result.stdout), (2, ""), setting)
            self.assertIn(what, result.stderr)
            self.assertEqual(result.stderr.count("\n"), 1)
        self.assertEqual(run_probe("--log", "loud", "--", "true").returncode, 2)

    def test_exit_code_signal_and_process_are_the_programs(self):
        self.assertEqual(run_probe("--", "sh", "-c", "exit 7").returncode, 7)
        self.assertEqual(run_probe("--", "sh", "-c", "kill -TERM $$").returncode, -signal.SIGTERM)
        child = subprocess.Popen([TOOL, "run", "--library", PROBE, "--", "sh", "-c", "echo $$"],
                                 stdout=subprocess.PIPE, text=True, env=clean_environment())
        self.assertEqual(int(child.communicate(timeout=60)[0]), child.pid)

    def test_programs_that_cannot_run(self):
        missing = run_probe("--", "no-such-program-anywhere")
        self.assertEqual(missing.returncode, 127)
        self.assertIn("no-such-program-anywhere", missing.stderr)
        self.assertEqual(run_probe("--", "/etc/passwd").returncode, 126)
        self.assertEqual(run_probe().returncode, 2)
        self.assertEqual(run_probe("--no-such-option", "--", "true").returncode, 2)
        self.assertEqual(tool("run", "--library", "/no/such/library.so", "--", "true").returncode, 1)

    def test_a_path_that_the_loader_cannot_take(self):
        with tempfile.TemporaryDirectory(prefix="with space ") as folder:
            path = shutil.copy(PROBE, folder)
            result = tool("run", "--library", path, "--", "true")
            self.assertEqual(result.returncode, 1)
            self.assertIn("space", result.stderr)

    def test_a_relative_library_works_from_any_folder(self):
        folder, name = os.path.split(PROBE)
        result = subprocess.run([TOOL, "run", "--library", name, "--", "printenv", "LD_PRELOAD"], cwd=folder,
                                capture_output=True, text=True, env=clean_environment(), timeout=60)
        self.assertEqual(result.stdout.strip(), PROBE)


class FindsItsLibrary(unittest.TestCase):
    def test_in_the_build_tree(self):
        result = tool("run", "--", "printenv", "LD_PRELOAD")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(os.path.realpath(result.stdout.strip()), os.path.realpath(LIBRARY))

    def test_as_installed_and_moved(self):
        with tempfile.TemporaryDirectory() as prefix:
            os.mkdir(os.path.join(prefix, "bin"))
            moved = shutil.copy(TOOL, os.path.join(prefix, "bin"))
            told = tool("run", "--", "true", program=moved)
            self.assertEqual(told.returncode, 1)
            expected = told.stderr.split(" is neither at ")[1].split(" nor at ")[0]
            self.assertTrue(expected.startswith(prefix), expected)
            os.makedirs(os.path.dirname(expected))
            shutil.copy(LIBRARY, expected)
            result = tool("run", "--", "printenv", "LD_PRELOAD", program=moved)
            self.assertEqual(result.stdout.strip(), expected, result.stderr)


class Tells(unittest.TestCase):
    def test_version(self):
        result = tool("--version")
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stdout, r"^gemmhoist \d+\.\d+\.\d+\n$")

    def test_options_are_all_there(self):
        for style in ([], ["--markdown"]):
            result = tool("options", *style)
            self.assertEqual(result.returncode, 0)
            for name in ("ROUTE", "PRECISION", "FALLBACK", "DEVICES", "HOST_THREADS", "PINNED_MIB", "DEVICE_MIB",
                         "LOG", "LOG_FILE", "TRACE", "PROFILE", "DEADLINE_MS"):
                self.assertRegex(result.stdout, "GEMMHOIST_" + name + "[=`]")
        rows = tool("options", "--markdown").stdout.replace("\\|", "").splitlines()
        self.assertEqual({row.count("|") for row in rows}, {5})

    def test_readme_has_the_same_table(self):
        readme = (Path(__file__).resolve().parents[2] / "README.md").read_text()
        self.assertIn("\n" + tool("options", "--markdown").stdout + "\n", readme, "gemmhoist options --markdown makes it anew")

    def test_info(self):
        result = tool("info", environment=dict(clean_environment(), GEMMHOIST_ROUTE="cpu"))
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn(os.path.basename(LIBRARY).split(".so")[0], result.stdout)
        self.assertRegex(result.stdout, r"backend  (cuda|none|simulated)\n")
        self.assertRegex(result.stdout, r"CPUs     [1-9]\d* usable")
        self.assertIn("setting  GEMMHOIST_ROUTE=cpu\n", result.stdout)
        version = tool("--version").stdout.split()[1]
        self.assertIn("(version %s)" % version, result.stdout)

    def test_info_of_another_library(self):
        result = tool("info", "--library", PROBE)
        self.assertEqual(result.returncode, 1)
        self.assertIn("another library", result.stdout)

    def test_no_command_is_a_usage_error(self):
        self.assertEqual(tool().returncode, 2)
        self.assertEqual(tool("dance").returncode, 2)
        self.assertEqual(tool("--help").returncode, 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
