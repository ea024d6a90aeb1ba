"""Runs bench_e2e on tiny sizes and checks what it writes: every column, every peer, sane figures.

check_dry_run.py BENCH_E2E [--stand-in LIBRARY] [ARGUMENTS of bench_e2e]. With stand-ins for CUDA's libraries all peers
must run, and a stand-in told to be wrong must be found out.
"""

import csv
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

COLUMNS = (
    "m,n,k,order,trans,entry,alpha,beta,from,peer,setting,memory,status,route,calls,first_s,e2e_median_s,e2e_mad_s,"
    "e2e_iqr_s,submit_median_s,submit_mad_s,kernel_median_s,kernel_mad_s,gflops,ratio_to_gemmhoist,"
    "kernel_gflops_of_floor,floor_s,staged_floor_s,e2e_over_floor"
).split(",")
PEERS = {
    "gemmhoist", "cuBLAS kernel", "cuBLAS", "cuBLAS pinned", "cuBLASXt", "cuBLASXt own pinning", "cuBLASXt pinned",
    "NVBLAS", "NVBLAS autopin", "OpenBLAS",
}  # fmt: skip
WRONG = {"cublas": 3, "xt": 3, "nvblas": 2}  # which stand-in product is wrong, and how many peers that makes wrong
EXTRA = {"--shapes": "33x17x65:TN", "--beta": "0.5", "--order": "row"}


def run(program: str, arguments: list[str]) -> tuple[list[dict[str, str]], dict[str, float]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "dry.csv"
        command = [program, "--dry", "--csv", str(path), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, f"{command}: status {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "| shape |" in done.stdout, "the overview is missing"
        with path.open(newline="") as file:
            reader = csv.DictReader(file)
            assert reader.fieldnames == COLUMNS, reader.fieldnames
            rows = list(reader)
        with (Path(folder) / "dry-rates.csv").open(newline="") as file:
            rates = {row["rate"]: math.nan if row["value"] == "n/a" else float(row["value"]) for row in csv.DictReader(file)}
    return rows, rates


def check_row(row: dict[str, str]) -> None:
    assert row["status"] == "ok" or row["status"].startswith("n/a: "), row
    if row["status"] != "ok":
        return
    assert int(row["calls"]) >= 3, row
    clock = row["kernel_median_s"] if row["peer"] == "cuBLAS kernel" else row["e2e_median_s"]
    flops = 2 * int(row["m"]) * int(row["n"]) * int(row["k"])
    assert math.isclose(float(row["gflops"]), flops / float(clock) * 1e-9, rel_tol=1e-4), row
    if row["e2e_mad_s"] != "n/a":
        assert 0 <= float(row["e2e_mad_s"]) <= float(row["e2e_iqr_s"]) + 1e-12, row


def check_stand_ins(program: str, arguments: list[str], rows: list[dict[str, str]]) -> None:
    on_gpu = [row for row in rows if row["peer"] not in ("gemmhoist", "OpenBLAS")]
    assert on_gpu and all(row["status"] == "ok" for row in on_gpu), {(row["peer"], row["status"]) for row in on_gpu}
    for row in on_gpu:
        assert float(row["floor_s"]) <= float(row["staged_floor_s"]), row
        if row["peer"].startswith("cuBLAS") and "Xt" not in row["peer"]:
            assert float(row["kernel_median_s"]) > 0 and float(row["submit_median_s"]) > 0, row
    for who, peers in WRONG.items():
        environment = {**os.environ, "GEMMHOIST_TEST_STAND_IN_WRONG": who}
        command = [program, "--dry", "--sizes", "64", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment)
        assert done.returncode == 1, f"a wrong {who} is not noticed: status {done.returncode}\n{done.stdout}"
        assert f"{peers} WRONG results" in done.stdout, done.stdout


def main() -> None:
    program, *arguments = sys.argv[1:]
    stand_in = ""
    if arguments and arguments[0] == "--stand-in":
        stand_in = arguments[1]
        arguments = arguments[2:] + [word for peer in ("--cudart", "--cublas", "--nvblas") for word in (peer, stand_in)]
    rows, rates = run(program, arguments)
    assert {(row["m"], row["peer"]) for row in rows} == {(m, peer) for m in ("64", "97") for peer in PEERS}, "rows are missing"
    assert rates["host_copy_mixed_GBps"] > 0, rates
    more, _ = run(program, arguments + [word for pair in EXTRA.items() for word in pair])
    assert any(row["order"] == "row" and row["trans"] == "TN" and row["beta"] == "0.5" for row in more), "shapes or options are lost"
    for row in rows + more:
        check_row(row)
    ours = [row for row in rows if row["peer"] == "gemmhoist"]
    if "--library" in arguments:
        assert all(row["status"] == "ok" for row in ours), [row["status"] for row in ours]
    for row in ours:  # a call on the GPU has all three clocks: the library's log tells two of them
        if row["route"] == "gpu":
            assert float(row["kernel_median_s"]) > 0 and float(row["submit_median_s"]) > 0, row
    if stand_in:
        check_stand_ins(program, arguments, rows + more)
    served = sorted({row["peer"] for row in rows if row["status"] == "ok"})
    print(f"{len(rows) + len(more)} rows; timed here: {', '.join(served) or 'nobody'}")


if __name__ == "__main__":
    main()
