// Session: all peers on one shape, in turns.
#pragma once

#include <string>
#include <vector>

#include "peer.hpp"
#include "rates.hpp"
#include "sampling.hpp"

namespace gemmhoist::bench {

struct SessionOptions {
  int reps = 30;  // calls a peer after warm-up, where its share of the time allows
  double seconds_per_shape =
      10;  // shared out among the peers; at least kFewestCalls each, whatever they take
};

constexpr int kFewestCalls = 3;

struct Result {
  std::string peer, setting;
  Memory memory = Memory::pageable;
  std::string status;         // "ok", "WRONG: ...", "n/a: ..."
  std::string route;          // of the calls, where the peer says; "mixed" where they differ
  double first_s = kNoClock;  // the first call on this shape; the first of a process pays its start-up
  Summary end_to_end, submit, kernel;
  double ratio = kNoClock;  // median over rounds of this peer's time to our library's in the same round

  bool ok() const { return status == "ok"; }
};

struct ShapeReport {
  Shape shape;
  std::vector<Result> results;           // our library first
  double kernel_flops_per_s = kNoClock;  // P: the better of our kernel and cuBLAS on this shape in this run
  double floor_s = kNoClock, staged_floor_s = kNoClock;
};

// Operands are made once and every in-process peer computes from them (pinned peers from pinned ones). Each
// round calls every peer once, so that drift of clocks and memory meets all of them alike.
ShapeReport run_shape(const Shape& shape, std::vector<PeerGroup>& groups, const Rates& rates,
                      const CudaRuntime& cuda, const SessionOptions& options);

}  // namespace gemmhoist::bench
