// Execution: one job's walk over its plan, on the worker. Shared by its two halves: uploads and write-backs.
#pragma once

#include <cstdint>
#include <vector>

#include "device/device.hpp"
#include "pipeline/copy_queue.hpp"
#include "pipeline/device_arena.hpp"
#include "pipeline/job.hpp"
#include "plan/plan.hpp"

namespace gemmhoist::pipeline {

// Most pinned slots of one direction that a plan may ask for; more would not fit the copy queue's ring.
inline constexpr std::int32_t kMostSlots = 96;

// The device's events by use. Those of slots come in pairs, begin (only when tracing) and end; those of steps
// likewise.
struct Events {
  static constexpr device::Event kH2d = 0;
  static constexpr device::Event kLanding = kH2d + 2 * kMostSlots;
  static constexpr device::Event kD2h = kLanding + kMostSlots;
  static constexpr device::Event kBase = kD2h + 2 * kMostSlots;
  static constexpr device::Event kMarks = kBase + 1;
  static constexpr device::Event kSteps = kMarks + 1;

  static device::Event begin(device::Event group, std::size_t i) noexcept {
    return group + 2 * static_cast<device::Event>(i);
  }
  static device::Event end(device::Event group, std::size_t i) noexcept { return begin(group, i) + 1; }
  static device::Event landing(std::size_t i) noexcept { return kLanding + static_cast<device::Event>(i); }
};

// What both halves see. All of it outlives the execution.
struct Context {
  device::Device& device;
  CopyQueue& queue;
  Job& job;
  const plan::Plan& plan;
  const DeviceArena& arena;
  float* h2d_slots;  // pinned: plan.h2d_slots of plan.chunk_bytes each
  float* d2h_slots;
  bool a_pinned, b_pinned;
  bool timed;                // events round every compute step
  bool traced;               // and round every copy
  std::int64_t base_ns = 0;  // host time at which Events::kBase was recorded

  std::int64_t chunk_elements() const noexcept {
    return plan.chunk_bytes / static_cast<std::int64_t>(sizeof(float));
  }
  std::int64_t piece_elements() const noexcept {
    return plan.piece_bytes / static_cast<std::int64_t>(sizeof(float));
  }
  // Publishes a task and wakes the caller for it.
  bool publish(const CopyTask& task, CopyQueue::Ticket& ticket) noexcept;
  // `timed_event`: somebody will ask when it was reached.
  Status record(device::Event event, device::Stream stream, bool timed_event = false) noexcept;
  // A span of a stream, from two events that were reached.
  void add_span(device::Event begin, device::Event end, const char* row, int index, const char* name,
                std::int64_t bytes) noexcept;
};

// Whether a stored operand is K-outer as it is: for each p of k, consecutive i (or j). Such an operand is
// copied straight into its panel; another lands first and is transposed on the device.
inline bool k_outer(const GemmCall& call, plan::Operand operand) noexcept {
  return operand == plan::Operand::a ? call.trans_a == Transpose::no : call.trans_b == Transpose::yes;
}
inline bool needs_landing(const GemmCall& call) noexcept {
  return !k_outer(call, plan::Operand::a) || !k_outer(call, plan::Operand::b);
}
inline std::int32_t landing_slots(const plan::Plan& plan) noexcept {
  return plan.h2d_slots;
}

// A panel as a pointer into the arena.
device::DevicePointer panel(const Context& context, const plan::Step& step, plan::Operand operand,
                            const plan::Range& span, std::int64_t depth) noexcept;

// The same panel's image.
struct PanelImage {
  device::DevicePointer units = 0;
  device::DevicePointer ranges = 0;  // 0: the precision has none
};
PanelImage panel_image(const Context& context, const plan::Step& step, plan::Operand operand,
                       const plan::Range& span) noexcept;

// Cuts `grid` of elements into pieces for threads, not more than the queue can count.
Grid cut_pieces(std::int64_t width, std::int64_t height, std::int64_t piece_elements) noexcept;

// --- uploads ---

class Uploads {
 public:
  explicit Uploads(Context& context) noexcept : context_(context) {}
  // Cuts every upload step into chunks. May throw std::bad_alloc.
  void prepare();
  // Hands chunks to the copy threads, as far as there are free slots.
  Status publish(bool& progressed) noexcept;
  // Issues what is ready of upload step `step`, the one at the plan's head; `done` when all of it is.
  Status issue(std::int32_t step, bool& progressed, bool& done) noexcept;
  // Spans of the copies that no later chunk's turn has shown; when all of them have ended.
  void trace_rest() noexcept;
  std::int64_t bytes() const noexcept { return bytes_; }

 private:
  struct Chunk {
    std::int32_t step;
    bool staged, landing;
    const float* source;
    std::int64_t source_pitch;
    std::int64_t width, height;    // elements; width is the contiguous dimension of the stored operand
    device::DevicePointer target;  // in the panel
    std::int64_t target_pitch;
    CopyQueue::Ticket ticket = 0;
  };
  struct Slot {
    bool busy = false;    // filled, or on its way to be
    bool issued = false;  // its copy is queued, its event recorded
    std::int64_t bytes = 0;
  };

  struct Source;
  Source source_of(const plan::Step& step) const noexcept;
  void add_chunks(std::int32_t index);
  void add_chunks(std::int32_t index, const Source& source, std::int64_t pitch, std::int64_t begin,
                  std::int64_t height, std::int64_t limit);
  Status begin_step(const plan::Step& step) noexcept;
  Status end_step(std::int32_t index) noexcept;
  Status zero_padding(const plan::Step& step, device::Stream stream) noexcept;
  Status make_image(const plan::Step& step) noexcept;
  Status slot_is_free(std::size_t slot, bool& free) noexcept;
  void trace_slot(std::size_t slot) noexcept;
  Status issue_chunk(Chunk& chunk) noexcept;
  Status copy_to_device(const Chunk& chunk, std::size_t slot, device::DevicePointer target,
                        std::int64_t target_pitch) noexcept;

  Context& context_;
  std::vector<Chunk> chunks_;
  std::vector<Slot> slots_;
  // What a panel is padded to: steps of k, and for its image rows of A and columns of B.
  std::int64_t depth_padding_ = 1, row_padding_ = kImageRows, col_padding_ = kImageRows;
  std::size_t next_fill_ = 0, next_issue_ = 0;  // chunks
  std::size_t filled_ = 0, issued_ = 0;         // chunks that went through a slot, staged or direct
  std::size_t landed_ = 0;
  std::int32_t begun_ = -1;         // step
  bool by_prepare_stream_ = false;  // some panels are completed there
  std::int64_t bytes_ = 0;
};

// --- write-backs ---

class WriteBacks {
 public:
  explicit WriteBacks(Context& context) noexcept : context_(context) {}
  // Cuts every write-back step into chunks and tiles of `ledger`. May throw std::bad_alloc.
  void prepare(Ledger& ledger);
  // The computes of write-back steps up to `step` are queued: their chunks may be issued.
  void enable(std::int32_t step) noexcept;
  // Issues copies, hands what came home to the copy threads, frees slots. `issued[step]` is set with the last
  // copy of a step.
  Status advance(std::vector<char>& issued, bool& progressed) noexcept;
  bool finished() const noexcept { return retired_ == chunks_.size(); }
  bool all_issued() const noexcept { return issued_ == chunks_.size(); }
  std::int64_t bytes() const noexcept { return bytes_; }

 private:
  struct Chunk {
    std::int32_t step;
    bool first, last;  // of its step
    device::DevicePointer source;
    float* c;
    std::int64_t width, height;
    Grid pieces;
    Tile* tiles;
    CopyQueue::Ticket ticket = 0;
  };

  Status issue(std::vector<char>& issued, bool& progressed) noexcept;
  Status publish_arrived(bool& progressed) noexcept;
  std::size_t add_chunks(std::int32_t index, plan::Range cols, std::int64_t limit);

  Context& context_;
  std::vector<Chunk> chunks_;
  std::size_t enabled_ = 0, issued_ = 0, published_ = 0, retired_ = 0;
  std::int64_t bytes_ = 0;
};

// --- tiles left to fp32 ---

class Leftovers {
 public:
  explicit Leftovers(Context& context) noexcept : context_(context) {}
  // `c_is_queued`: the copies of all results are; the marks follow them.
  Status advance(bool c_is_queued, bool& progressed) noexcept;
  bool finished() const noexcept { return home_ == context_.plan.images.mark_bytes; }
  std::int64_t count() const noexcept { return count_; }
  std::int64_t of() const noexcept { return home_; }

 private:
  Context& context_;
  std::int64_t home_ = 0, under_way_ = 0, count_ = 0;  // marks
};

// --- the whole walk ---

class Execution {
 public:
  // `few_cpus`: an idle worker soon sleeps. `idle_helps`: the worker copies too when it has nothing else to
  // do (there are no copy threads).
  Execution(Context& context, bool few_cpus, bool idle_helps) noexcept
      : context_(context),
        uploads_(context),
        write_backs_(context),
        leftovers_(context),
        few_cpus_(few_cpus),
        idle_helps_(idle_helps) {}

  // Answers when C is complete, the job is cancelled, or the device refuses something. Tasks published before
  // may still be in the queue, and operations on the streams. May throw std::bad_alloc.
  Status run(Ledger& ledger);

  std::int64_t uploaded_bytes() const noexcept { return uploads_.bytes(); }
  std::int64_t downloaded_bytes() const noexcept { return write_backs_.bytes(); }

 private:
  Status walk() noexcept;
  Status issue_step(bool& progressed) noexcept;
  Status issue_compute(std::size_t index) noexcept;
  Status launch(const plan::Step& step, device::Stream stream, const GemmKernelParams& params) noexcept;
  bool all_issued(const std::vector<std::int32_t>& steps) const noexcept;
  void idle(std::uint32_t completions) noexcept;
  void choose_main_kernel() noexcept;
  Status read_kernel_times();

  Context& context_;
  Uploads uploads_;
  WriteBacks write_backs_;
  Leftovers leftovers_;
  std::vector<char> issued_;  // of each step: its end event is recorded
  std::size_t next_step_ = 0;
  const bool few_cpus_;
  const bool idle_helps_;
  std::int64_t idle_since_ns_ = 0;
  std::int64_t submit_ns_ = 0;
};

}  // namespace gemmhoist::pipeline
