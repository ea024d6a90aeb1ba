#!/usr/bin/env python3
"""Makes the ladder's table (Markdown): times from `ladder --csv`, issue slots and bank conflicts from `ncu --csv`.

The profiler's columns are of the size that was profiled; where there is no profile they stay empty.
"""
import argparse
import csv
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "scripts"))

import ncu_reading  # noqa: E402

# cuBLAS' kernels go by other names.
PEERS = ("cutlass", "xmma", "cublas", "sm80_xmma")


def profiles(paths):
    """Readings by rung; the first file that has one counts. That of cuBLAS is of A B, which comes first."""
    found = {}
    for path in paths:
        for launch in ncu_reading.parse(path.read_text()):
            name = "cublas" if any(word in launch.kernel for word in PEERS) else launch.kernel
            found.setdefault(name, ncu_reading.read(launch))
    return found


def rows(times, profiled, peer_profiled):
    yield ("| rung | ms | TFLOP/s | of cuBLAS | of the FFMA limit | registers | spill bytes | shared bytes | occupancy |"
           " issue slots | bank conflicts |")
    yield "| --- |" + " ---: |" * 10
    for row in times:
        reading = profiled.get(row["rung"]) if row["rung"] != "cublas" or peer_profiled else None
        resources = ["", "", "", ""]
        if int(row["registers"]) > 0:
            resources = [row["registers"], row["local_bytes"], row["shared_bytes"],
                         f"{100 * float(row['occupancy']):.0f} %"]
        measured = ["", ""]
        if reading is not None:
            measured = [f"{reading.issue_active:.0f} %", f"{reading.conflicts:.2g}"]
        yield "| " + " | ".join([row["rung"], f"{float(row['median_ms']):.3f}", f"{float(row['tflops']):.1f}",
                                 f"{float(row['of_cublas']):.2f}", f"{float(row['of_ffma_limit']):.2f}",
                                 *resources, *measured]) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("times", type=pathlib.Path, help="of ladder --csv")
    parser.add_argument("--profile", type=pathlib.Path, action="append", default=[], help="of ncu --page raw --csv")
    parser.add_argument("--profiled-shape", default="2048x2048x2048", help="the profile's: other sizes get no columns")
    options = parser.parse_args()
    with options.times.open() as file:
        times = list(csv.DictReader(file))
    profiled = profiles(options.profile)
    for product, is_aat in (("A B", False), ("A A^T", True)):
        sizes = list(dict.fromkeys((row["m"], row["n"], row["k"]) for row in times))
        for size in sizes:
            here, peers = [], []
            for index, row in enumerate(times):
                if (row["m"], row["n"], row["k"]) != size:
                    continue
                if row["rung"] == "cublas":
                    peers.append((index, row))
                elif row["rung"].startswith("aat_") == is_aat:
                    here.append(row)
            if not here:
                continue
            # Both products have a line for cuBLAS: that of A A^T comes last.
            here += [peers[-1 if is_aat else 0][1]] if peers else []
            shape = "x".join(size)
            print(f"\n{product}, {shape.replace('x', ' x ')}\n")
            print("\n".join(rows(here, profiled if shape == options.profiled_shape else {},
                                 peer_profiled=not is_aat)))


if __name__ == "__main__":
    main()
