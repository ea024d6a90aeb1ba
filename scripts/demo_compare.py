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


def main(without_path, with_path, decisions_path):
    without, served = numpy.load(without_path), numpy.load(with_path)
    difference = float(abs(without["similarity"] - served["similarity"]).max())
    moved = int((without["nearest"] != served["nearest"]).sum())
    print(f"   answers: {len(served['nearest'])} similarities, largest difference {difference:.1e} (allowed {TOLERANCE:.0e}); "
          f"{moved} paragraphs have another, equally near neighbour")
    print(f"   matrix products: {float(without['seconds']):.3f} s without the library, {float(served['seconds']):.3f} s with it")

    with open(decisions_path) as lines:
        decisions = [json.loads(line) for line in lines if line.startswith("{")]
    routes = Counter((d["route"], d["reason"]) for d in decisions)
    for (route, reason), count in routes.most_common():
        print(f"   route: {count} products on the {route}: {reason}")
    for line in sorted(decisions, key=lambda d: -d["m"] * d["n"] * d["k"])[:4]:
        print(f"   {json.dumps(line)}")
    if difference > TOLERANCE:
        print("   the answers differ", file=sys.stderr)
        return 1
    if not decisions:
        print("   the library logged no product: it was not bound", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
