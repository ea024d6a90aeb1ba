"""Runs bench_e2e on tiny sizes and checks what it writes: every column, every peer, sane figures."""

import csv
import math
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


def main() -> None:
    program, *arguments = sys.argv[1:]
    rows, rates = run(program, arguments)
    assert {(row["m"], row["peer"]) for row in rows} == {(m, peer) for m in ("64", "97") for peer in PEERS}, rows
    assert rates["host_copy_mixed_GBps"] > 0, rates
    more, _ = run(program, arguments + [word for pair in EXTRA.items() for word in pair])
    assert any(row["order"] == "row" and row["trans"] == "TN" and row["beta"] == "0.5" for row in more), more
    for row in rows + more:
        check_row(row)
    ours = [row for row in rows if row["peer"] == "gemmhoist"]
    if "--library" in arguments:
        assert all(row["status"] == "ok" for row in ours), ours
    served = sorted({row["peer"] for row in rows if row["status"] == "ok"})
    print(f"{len(rows) + len(more)} rows; timed here: {', '.join(served) or 'nobody'}")


if __name__ == "__main__":
    main()
