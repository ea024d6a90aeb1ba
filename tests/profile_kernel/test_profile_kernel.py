"""scripts/profile-kernel, without a GPU: recorded output of ncu and ptxas in, readings and CSV lines out."""
import csv
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RECORDED = pathlib.Path(__file__).resolve().parent / "recorded"
sys.path.insert(0, str(ROOT / "scripts"))

import ncu_reading  # noqa: E402
import resource_report  # noqa: E402

SHIPPED = "sgemm_fp32_128x256x16_s6_sm80"
RECORDED_AS = "sgemm_fp32_128x256x32_s3_sm80"  # the large kernel of that day


def recorded(name):
    return (RECORDED / name).read_text().replace(RECORDED_AS, SHIPPED)


def readings():
    launches = ncu_reading.parse(recorded("ncu_raw.csv"))
    return {launch.kernel: ncu_reading.read(launch) for launch in launches}


class Readings(unittest.TestCase):
    def test_passes_over_what_is_not_the_table(self):
        self.assertEqual(set(readings()), {"naive", SHIPPED, "aat_shared"})
        self.assertEqual(ncu_reading.parse("==ERROR== no kernels were profiled\n"), [])

    def test_numbers_are_in_base_units(self):
        shipped = readings()[SHIPPED]
        self.assertEqual(shipped.registers, 195)
        self.assertEqual(shipped.shared_bytes, 147456)
        self.assertEqual((shipped.block, shipped.grid), (256, 128))
        self.assertAlmostEqual(shipped.seconds, 373.0e-6, delta=1e-6)
        self.assertAlmostEqual(shipped.issue_active, 85.13, delta=0.01)
        self.assertAlmostEqual(shipped.occupancy, 12.5, delta=0.01)

    def test_says_what_binds_a_kernel(self):
        self.assertEqual(readings()[SHIPPED].bound, "compute")
        self.assertEqual(readings()["aat_shared"].bound, "memory")
        self.assertEqual(readings()["aat_shared"].level, "L1 and shared memory")

    def test_names_the_three_largest_stalls_and_never_the_warp_that_issues(self):
        for reading in readings().values():
            values = [value for _, value in reading.stalls]
            self.assertEqual(len(values), 3)
            self.assertEqual(values, sorted(values, reverse=True))
            self.assertNotIn("selected", [name for name, _ in reading.stalls])

    def test_counts_bank_conflicts(self):
        self.assertGreater(readings()["aat_shared"].conflicts, 8e8)
        self.assertLess(readings()[SHIPPED].conflicts, 1000)

    def test_prints_what_it_read(self):
        page = ncu_reading.text(readings()["aat_shared"])
        self.assertIn("bound by memory", page)
        self.assertIn("806,500,444", page)

    def test_what_ncu_did_not_measure_is_said_and_left_empty(self):
        launch = ncu_reading.Launch("bare", "", "", {"launch__block_size": 64.0})
        reading = ncu_reading.read(launch)
        self.assertIn("not measured", ncu_reading.text(reading))
        self.assertEqual(ncu_reading.csv_row(reading, "", "90a", None, None)["issue_active_pct"], "")

    def test_appends_lines_under_one_header(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "table.csv"
            for reading in readings().values():
                ncu_reading.append_csv(path, ncu_reading.csv_row(reading, "-O3", "90a", 0, 1.5))
            with path.open() as file:
                rows = list(csv.DictReader(file))
            self.assertEqual(len(rows), 3)
            self.assertEqual(list(rows[0]), ncu_reading.COLUMNS)
            self.assertEqual(rows[0]["median_ms"], "1.500000")


class Resources(unittest.TestCase):
    def test_reads_the_compilers_report(self):
        usages = resource_report.parse(recorded("ptxas.report"))
        self.assertEqual(usages[SHIPPED][0].registers, 195)
        self.assertEqual(usages["spilling"][0].spill_bytes, 156 + 292)
        self.assertEqual(usages["spilling"][0].static_shared_bytes, 8192)

    def test_occupancy_is_limited_by_what_runs_out_first(self):
        self.assertEqual(resource_report.blocks_per_sm(90, 195, 256, 147456), (1, "registers"))
        self.assertEqual(resource_report.blocks_per_sm(90, 32, 1024, 8192), (2, "warps"))
        self.assertEqual(resource_report.blocks_per_sm(86, 64, 128, 49152), (2, "shared memory"))
        self.assertEqual(resource_report.blocks_per_sm(90, 128, 256, 16640)[0], 2)

    def test_descriptors_tell_threads_and_shared_bytes(self):
        self.assertEqual(resource_report.launch_facts(ROOT, SHIPPED), (256, 6 * (128 + 256) * 16 * 4))
        self.assertIsNone(resource_report.launch_facts(ROOT, "no_such_kernel"))


def program(folder, name, lines):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + lines)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


class Script(unittest.TestCase):
    """The script itself, over a build folder of stand-ins."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.build = pathlib.Path(self.folder.name)
        (self.build / "src" / "kernels").mkdir(parents=True)
        (self.build / "src" / "kernels" / "sm_90a.report").write_text(recorded("ptxas.report"))

    def tearDown(self):
        self.folder.cleanup()

    def checker(self, status):
        table = 'gpu,kernel,m,n,k,median_ms\\nH,' + SHIPPED + ',1,1,1,2.5\\n'
        program(self.build, "tests/gpu_kernels/check_kernels",
                f'if [ "$1" = --list ]; then echo {SHIPPED}; exit; fi\n'
                f'[ {status} = 77 ] && echo "skipped: no CUDA driver" && exit 77\n'
                f'for word; do [ "$last" = --csv ] && printf "{table}" > "$word"; last=$word; done\nexit {status}\n')

    def run_script(self, kernel, *more):
        return subprocess.run([sys.executable, ROOT / "scripts" / "profile-kernel", kernel, "--build", self.build,
                               "--csv", self.build / "table.csv", *more],
                              capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"})

    def test_without_ncu_says_so_and_tells_what_the_compiler_knows(self):
        self.checker(0)
        done = self.run_script(SHIPPED, "--ncu", "no-such-command")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("ncu (Nsight Compute) is not on this machine", done.stdout)
        self.assertIn("195 registers", done.stdout)
        self.assertIn("1 blocks an SM", done.stdout)
        self.assertFalse((self.build / "table.csv").exists())

    def test_without_a_gpu_says_so(self):
        self.checker(77)
        ncu = program(self.build, "ncu", "exit 9\n")
        done = self.run_script(SHIPPED, "--ncu", str(ncu))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("no GPU to measure on", done.stdout)

    def test_with_both_prints_the_reading_and_appends_a_line(self):
        self.checker(0)
        table = self.build / "ncu_raw.csv"
        table.write_text(recorded("ncu_raw.csv"))
        ncu = program(self.build, "ncu", f'echo "$*" > {self.build}/asked\ngrep -v -e naive -e aat {table}\n')
        done = self.run_script(SHIPPED, "--ncu", str(ncu))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("bound by compute", done.stdout)
        self.assertIn("median time, unprofiled   2.5000 ms", done.stdout)
        asked = (self.build / "asked").read_text()
        self.assertIn("--clock-control none", asked)
        with (self.build / "table.csv").open() as file:
            row = next(csv.DictReader(file))
        self.assertEqual((row["kernel"], row["arch"], row["spill_bytes"], row["median_ms"]),
                         (SHIPPED, "90a", "0", "2.500000"))
        self.assertIn("-O3", row["flags"])

    def test_an_unknown_kernel_is_refused(self):
        self.checker(0)
        done = self.run_script("sgemm_of_nobody")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no such kernel", done.stderr)


if __name__ == "__main__":
    unittest.main()
