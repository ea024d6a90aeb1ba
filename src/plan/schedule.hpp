// Schedule: walks a cutting of the product in growing-L order, step by step. Internal to the layer.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "plan/makespan.hpp"
#include "plan/plan.hpp"
#include "plan/tiling.hpp"

namespace gemmhoist::plan {

// How the product is cut: all that distinguishes one candidate plan from another.
struct Cutting {
  std::int64_t block_m = 0, block_n = 0, slice_k = 0;  // block edges are multiples of the alignment
  bool rows_outer = true;                              // blocks: row ranges in the outer loop
  std::int64_t panels_a = 1, panels_b = 1;             // a slice
  Taper taper = Taper::none;
  std::int64_t pieces = 1;  // a strip is computed and sent home in up to so many
  // Weight of the SM time that a kernel takes against the time at which its strip ends. 0: each strip ends as
  // early as it can, however wasteful its tile; 1: waste counts in full, which a busy GPU asks for.
  double thrift = 1;
  std::int32_t panel_buffers = 1, c_buffers = 1;

  bool sliced(const PlanInput& input) const noexcept { return slice_k < input.k; }
  bool blocked(const PlanInput& input) const noexcept { return block_m < input.m || block_n < input.n; }
};

// Upper bound of the steps that the cutting makes.
double step_bound(const Cutting& cutting, const PlanInput& input) noexcept;

class Schedule {
 public:
  // `steps` and `blocks` may be null: then only the prediction is made.
  Schedule(const PlanInput& input, const KernelSet& kernels, const Staging& staging, const Cutting& cutting,
           std::vector<Step>* steps, std::vector<Block>* blocks);

  void walk();
  double predicted_s() { return timeline_.finish() + input_.profile->call_fixed_s; }
  double kernel_s() const noexcept { return busy_s_ / model_sms(*input_.profile); }

 private:
  // What a set of panel buffers holds, and who used it last.
  struct PanelSet {
    Range a_rows, b_cols, depth;
    std::array<std::int32_t, kComputeStreams> last_compute{-1, -1, -1, -1};  // that read it
    std::int32_t last_upload = -1;
  };
  // Where the walk is.
  struct Place {
    Block block;
    std::int32_t index = 0;
    Range depth;
    bool first_slice = true, last_slice = true;
    std::int32_t set = 0, c_buffer = 0;
  };

  void walk_block(const Block& block);
  void walk_slice(const Place& place);
  void upload(const Place& place, Operand operand, Range range);
  void strip(const Place& place, Range rows, Range cols);
  void piece(const Place& place, Range rows, Range cols);
  std::int32_t streams_for(Range rows, Range cols) const;
  std::int32_t choose_kernel(Range rows, Range cols, Range depth, int stream, double ready);
  std::int32_t add(Step& step, Timeline::End end);
  void depend(Step& step, std::int32_t before, double& ready);

  const PlanInput& input_;
  const KernelSet& kernels_;
  const Cutting& cutting_;
  Timeline timeline_;
  std::vector<Step>* steps_;
  std::vector<Block>* blocks_;

  std::vector<Timeline::End> ends_;  // of each step
  std::vector<Range> a_panels_, b_panels_, row_parts_, col_parts_;
  std::array<PanelSet, 2> sets_;
  std::array<std::int32_t, 2> last_write_back_{-1, -1};                          // of each C buffer
  std::array<std::int32_t, kComputeStreams> waited_for_upload_{-1, -1, -1, -1};  // the latest, by a stream
  std::array<bool, kComputeStreams> waited_for_c_{};                             // by a stream, in this block
  std::int32_t pending_write_back_ = -1;                                         // of this block, the latest
  std::array<std::int32_t, kComputeStreams> overwritten_{-1, -1, -1, -1};        // readers of the set before
  std::int32_t next_set_ = 0, next_block_ = 0, rectangle_ = 0;
  std::int64_t next_mark_ = 0;
  double busy_s_ = 0;
};

}  // namespace gemmhoist::plan
