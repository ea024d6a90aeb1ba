#!/usr/bin/env python3
"""Says whether two results of demo_search.py agree, and what the library did for the second.

usage: demo_compare.py WITHOUT.npz WITH.npz DECISIONS.jsonl
"""
import json
import sys
from collections import Counter

import numpy

# Unit vectors of 4096 terms, a few tens of them not zero: sums of some tens of products in another order.
TOLERANCE = 1e-5

WORDS = {
    "gpu_absent": " (no GPU that this build can use)",
    "gpu_cold": " (the GPU has not earned its start yet)",
    "gpu_starting": " (the GPU starts meanwhile)",
    "gpu_faster": " (predicted to be faster)",
    "cpu_faster": " (predicted to be faster)",
    "worth_waiting": " (faster even with the GPU's start)",
    "too_small": " (no gain possible)",
}


def main(without_path, with_path, decisions_path):
    without, served = numpy.load(without_path), numpy.load(with_path)
    difference = float(abs(without["similarity"] - served["similarity"]).max())
    moved = int((without["nearest"] != served["nearest"]).sum())
    print(f"   answers: {len(served['nearest'])} similarities, largest difference {difference:.1e} (allowed {TOLERANCE:.0e}); "
          f"{moved} paragraphs have another, equally near neighbour")
    print(f"   matrix products: {float(without['seconds']):.3f} s without the library, {float(served['seconds']):.3f} s with it")

    with open(decisions_path) as lines:
        events = [json.loads(line) for line in lines]
    calls = [event for event in events if event["event"] == "call"]
    for (spelling, route, reason), count in Counter((c["spelling"], c["route"], c["reason"]) for c in calls).most_common():
        print(f"   route: {count} calls of {spelling} went to the {route}: {reason}{WORDS.get(reason, '')}")
    for call in sorted(calls, key=lambda c: -c["m"] * c["n"] * c["k"])[:4]:
        kernel = f", kernel {call['kernel']}" if call["kernel"] else ""
        print(f"   call: {call['trans']} m={call['m']} n={call['n']} k={call['k']} {call['route']} {call['measured_ms']:.1f} ms, predicted "
              f"cpu {call['predicted_cpu_ms'] or '-'} ms, gpu {call['predicted_gpu_ms'] or '-'} ms{kernel}")
    if difference > TOLERANCE:
        print("   the answers differ", file=sys.stderr)
        return 1
    if not calls:
        print("   the library logged no product: it was not bound", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
