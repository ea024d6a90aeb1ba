#!/usr/bin/env python3
"""Other projects' BLAS tests, run unmodified with the library preloaded; each suite is one TAP point.

usage: peers.py --mode plain|cpu|shim|sim|gpu --probe PROBE [--library LIBRARY] [--wheels FOLDER] [SUITE...]

plain  no library: the suites over OpenBLAS itself. The other modes run a suite that fails so, too, and say how that went
cpu    GEMMHOIST_ROUTE=cpu: every product through the fallback
shim   as cpu, but without a preload: LIBRARY is a libblas.so.3 whose folder comes first in LD_LIBRARY_PATH
sim    GEMMHOIST_ROUTE=gpu with the test library on the simulated device
gpu    GEMMHOIST_ROUTE=gpu on this machine's GPU

A suite passes when all its cases pass and the library's own counters say that the products took the route.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from glob import glob
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "hygiene"))
from tap import Tap  # noqa: E402

# Tile edges of the small kernels and of OpenBLAS' own; 65 is the largest that Netlib's programs hold.
EDGE_SIZES = (0, 1, 7, 31, 33, 64, 65)
SUITE_TIMEOUT_S = 400


@dataclass
class Result:
    passed: int = 0
    failed: int = 0
    calls: int = 0  # entries that the suite itself says it made; 0: it does not say
    output: str = ""
    skip: str = ""
    counters: dict = field(default_factory=dict)


def system_python():
    """The Python that Debian's NumPy and SciPy belong to."""
    for candidate in ("/usr/bin/python3", "python3"):
        try:
            if subprocess.run([candidate, "-c", "import numpy, pytest"], capture_output=True).returncode == 0:
                return candidate
        except OSError:
            pass
    return None


class Host:
    """Runs a program as the mode says and gathers the counters of it and all its children."""

    def __init__(self, mode, library, probe):
        self.mode, self.library, self.probe = mode, library, probe

    def run(self, command, folder, stdin=None, extra=None):
        counters = Path(folder) / "counters"
        counters.mkdir(exist_ok=True)
        env = {name: value for name, value in os.environ.items() if not name.startswith(("GEMMHOIST_", "LD_"))}
        # scikit-learn calls from two OpenMP threads at a time; none spins, since several suites share the processors.
        env |= {"OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "passive", "OPENBLAS_NUM_THREADS": "1", "PEER_COUNTERS": str(counters)}
        env |= extra or {}
        preload = [self.probe]
        if self.mode == "shim":
            env["LD_LIBRARY_PATH"] = os.path.dirname(self.library)
        elif self.mode != "plain":
            preload.append(self.library)
        if self.mode != "plain":
            env["GEMMHOIST_ROUTE"] = "gpu" if self.mode in ("sim", "gpu") else "cpu"
            # A loaded two-core machine may keep a simulated device waiting; a suite that went to the CPU for
            # impatience would prove nothing.
            env["GEMMHOIST_DEADLINE_MS"] = "60000"
        # env(1) sets the preload, so that this program's own children are left alone.
        wrapped = ["env", "LD_PRELOAD=" + ":".join(preload)] + command
        try:
            run = subprocess.run(wrapped, cwd=folder, env=env, stdin=stdin or subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SUITE_TIMEOUT_S)
            status, output = run.returncode, run.stdout.decode(errors="replace")
        except subprocess.TimeoutExpired as expired:
            status, output = -1, (expired.stdout or b"").decode(errors="replace") + f"\nno end after {SUITE_TIMEOUT_S} s"
        totals = {}
        for path in counters.iterdir():
            for line in path.read_text().splitlines():
                name, value = line.split()
                totals[name] = totals.get(name, 0) + int(value)
        return status, output, totals


# --- Netlib ---

def netlib_input(text, sizes, only_gemm):
    """The shipped input with other values of N; the other routines left out where they would only repeat OpenBLAS' own."""
    lines = text.splitlines()
    for i, line in enumerate(lines):
        if "NUMBER OF VALUES OF N" in line:
            lines[i] = f"{len(sizes)}  {line.split(None, 1)[1]}"
            lines[i + 1] = " ".join(map(str, sizes))
        elif only_gemm and re.match(r"(cblas_s|S)(?!gemm|GEMM)\w+ +T", line):
            lines[i] = re.sub(r"^(\w+ *)T", r"\1F", line)
    return "\n".join(lines) + "\n"


def netlib(program, input_name, folder_name, sizes=None):
    def run(host, folder):
        found = glob(f"/usr/lib/*/{folder_name}/{program}")
        if not found:
            return Result(skip=f"{program} is missing (Debian: lib{folder_name}-test)")
        text = Path(found[0]).with_name(input_name).read_text()
        if sizes:
            text = netlib_input(text, sizes, only_gemm=True)
        path = Path(folder) / "input"
        path.write_text(text)
        with path.open() as stdin:
            status, output, counters = host.run([found[0]], folder, stdin)
        for listing in Path(folder).glob("*.out"):
            output += listing.read_text(errors="replace")
        result = Result(output=output, counters=counters)
        result.passed = len(re.findall(r"PASSED THE .*TESTS", output))
        result.failed = len(re.findall(r"FAIL|\*{4,}|SUSPECT|ERROR-EXITS.*FAIL", output)) + (status != 0)
        result.calls = sum(map(int, re.findall(r"(?:SGEMM|cblas_sgemm) .*\( *(\d+) CALLS\)", output)))
        if "END OF TESTS" not in output or not result.calls:
            result.failed += 1
        return result
    return run


# --- pytest ---

def pytest(package, modules, select=None, deselect=(), wheels=False, options=()):
    def run(host, folder):
        python = system_python()
        if not python:
            return Result(skip="no Python with NumPy and pytest (Debian: python3-numpy, python3-pytest)")
        extra = {}
        if wheels:
            if not host.wheels or not Path(host.wheels).is_dir():
                return Result(skip="no NumPy wheel on this machine (scripts/test fetches it from PyPI)")
            extra["PYTHONPATH"] = host.wheels
        env = dict(os.environ) | extra
        names = [f"{package}.{name}" for name in modules]
        probe = subprocess.run([python, "-c", "import importlib.util as u, sys\n"
                                "print([n for n in sys.argv[1:] if not u.find_spec(n)])"] + names,
                               capture_output=True, text=True, env=env, cwd=folder)
        if probe.returncode != 0 or probe.stdout.strip() != "[]":
            return Result(skip=f"tests of {package} are not installed: {probe.stdout.strip() or probe.stderr.strip()[-200:]}")
        command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore", "--junit-xml=result.xml", *options, "--pyargs", *names]
        if select:
            command += ["-k", select]
        status, output, counters = host.run(command, folder, extra=extra)
        result = Result(output=output, counters=counters)
        report = Path(folder) / "result.xml"
        if report.exists():
            for suite in ET.parse(report).getroot().iter("testsuite"):
                count = {key: int(suite.get(key, 0)) for key in ("tests", "failures", "errors", "skipped")}
                result.failed += count["failures"] + count["errors"]
                result.passed += count["tests"] - count["failures"] - count["errors"] - count["skipped"]
        if status not in (0, 1) or (status == 1 and not result.failed):
            result.failed += 1
        return result
    return run


# test_huge_vectordot multiplies vectors of 16 GB: sdot, not sgemm, and more memory than a small machine has.
NUMPY_SELECT = ("(dot or Dot or matmul or MatMul or Matmul or Einsum or einsum or inner or multi_dot or tensordot)"
                " and not huge_vectordot")

SUITES = {
    "xblat3s": netlib("xblat3s", "sblat3.in", "blas"),
    "xblat3s-edges": netlib("xblat3s", "sblat3.in", "blas", EDGE_SIZES),
    "xscblat3": netlib("xscblat3", "sin3", "blas"),
    "xscblat3-edges": netlib("xscblat3", "sin3", "blas", EDGE_SIZES),
    "xblat3s-ilp64": netlib("xblat3s", "sblat3.in", "blas64"),
    "xblat3s-ilp64-edges": netlib("xblat3s", "sblat3.in", "blas64", EDGE_SIZES),
    "xscblat3-ilp64": netlib("xscblat3", "sin3", "blas64"),
    "xscblat3-ilp64-edges": netlib("xscblat3", "sin3", "blas64", EDGE_SIZES),
    "scipy-linalg": pytest("scipy.linalg.tests", ["test_basic", "test_decomp", "test_lapack", "test_blas", "test_fblas"]),
    "numpy-debian": pytest("numpy", ["core.tests.test_multiarray", "core.tests.test_einsum", "core.tests.test_numeric",
                                     "linalg.tests.test_linalg"], NUMPY_SELECT),
    "numpy-wheel": pytest("numpy", ["_core.tests.test_multiarray", "_core.tests.test_einsum", "_core.tests.test_numeric",
                                    "linalg.tests.test_linalg"], NUMPY_SELECT, wheels=True),
    "sklearn-pca": pytest("sklearn.decomposition.tests", ["test_pca"]),
    "sklearn-nmf": pytest("sklearn.decomposition.tests", ["test_nmf"]),
    "sklearn-kmeans": pytest("sklearn.cluster.tests", ["test_k_means"]),
    "sklearn-pairwise": pytest("sklearn.metrics.tests", ["test_pairwise"]),
}


# Once their arguments are read, ILP64 calls go the LP64 calls' way: the simulated device, slow at many small products, is
# spared their second half.
NOT_SIMULATED = ("xblat3s-ilp64-edges", "xscblat3-ilp64-edges")

# What asks for libblas.so.3 by that name.
LINKED_TO_LIBBLAS = ("xblat3s", "xscblat3", "numpy-debian")


def route_complaint(mode, result):
    """What the counters say against the run; empty when they bear it out."""
    if mode == "plain":
        return ""
    c = result.counters
    if not c:
        return "the library left no counters: it was not loaded"
    cpu, gpu = c.get("calls_cpu", 0), c.get("calls_gpu", 0)
    entries = sum(c.get(name, 0) for name in ("calls_cblas", "calls_fortran", "calls_cblas64", "calls_fortran64"))
    if result.calls and entries < result.calls:
        return f"the suite made {result.calls} calls, the library saw {entries}"
    if mode in ("cpu", "shim") and (cpu == 0 or gpu != 0):
        return f"CPU route asked for: calls_cpu {cpu}, calls_gpu {gpu}"
    if mode in ("sim", "gpu"):
        if gpu == 0:
            return f"GPU route asked for: calls_gpu {gpu}, calls_cpu {cpu}"
        # A forked child goes to the CPU by design; anything beyond a handful is a call that strayed.
        strayed = cpu + c.get("calls_rescued", 0)
        if strayed * 20 > gpu:
            return f"GPU route asked for, yet {strayed} of {gpu + strayed} products were the CPU's"
    return ""


def over_plain_blas(suite, host):
    """How a suite fares without the library: whether its failure is ours."""
    if host.mode == "plain":
        return ""
    plain = Host("plain", None, host.probe)
    plain.wheels = host.wheels
    with tempfile.TemporaryDirectory() as folder:
        result = suite(plain, folder)
    return f"without the library: {result.passed} cases passed, {result.failed} failed"


def has_gpu():
    try:
        return subprocess.run(["nvidia-smi", "-L"], capture_output=True, timeout=60).stdout.startswith(b"GPU")
    except (OSError, subprocess.TimeoutExpired):
        return False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", choices=("plain", "cpu", "shim", "sim", "gpu"), required=True)
    parser.add_argument("--probe", required=True)
    parser.add_argument("--library")
    parser.add_argument("--wheels")
    parser.add_argument("suites", nargs="*")
    options = parser.parse_args()
    host = Host(options.mode, options.library and os.path.abspath(options.library), os.path.abspath(options.probe))
    host.wheels = options.wheels and os.path.abspath(options.wheels)
    tap = Tap()
    for name, suite in SUITES.items():
        if options.suites and name not in options.suites:
            continue
        if options.mode == "shim" and name not in LINKED_TO_LIBBLAS:
            continue
        if options.mode == "sim" and not options.suites and name in NOT_SIMULATED:
            continue
        if options.mode == "gpu" and not has_gpu():
            tap.skip(f"gpu: {name}", "no GPU on this machine")
            continue
        begin = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            result = suite(host, folder)
        seconds = time.monotonic() - begin
        label = f"{options.mode}: {name}"
        if result.skip:
            tap.skip(label, result.skip)
            continue
        complaint = route_complaint(options.mode, result)
        counted = ", ".join(f"{key} {result.counters[key]}" for key in ("calls_cpu", "calls_gpu") if key in result.counters)
        good = tap.check(f"{label}: {result.passed} cases passed, {result.failed} failed" + (f"; {counted}" if counted else "") + f"; {seconds:.0f} s",
                         result.passed and not result.failed and not complaint, complaint)
        if not good:
            tap.note(result.output[-3000:])
            tap.note(" ".join(f"{key}={value}" for key, value in sorted(result.counters.items())))
            tap.note(over_plain_blas(suite, host))
    tap.finish()


if __name__ == "__main__":
    main()
