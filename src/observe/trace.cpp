// Spans are collected without a lock: a place is taken by one addition, filled and marked. So there is
// nothing that a fork could leave locked or an exit could wait for; a span that is being filled while the
// file is written is left out. Memory comes in blocks from mmap, as callers' threads add spans too.
#include "observe/trace.hpp"

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstring>

#include "config/options.hpp"
#include "observe/decision_log.hpp"
#include "observe/output_path.hpp"
#include "observe/trace_json.hpp"
#include "os/errno_guard.hpp"
#include "os/files.hpp"
#include "os/once.hpp"
#include "os/os.hpp"

namespace gemmhoist::observe {
namespace {

// A million spans: a call of 8192 cubed makes some thousands, and viewers grow slow beyond it. 56 MiB.
constexpr std::size_t kBlockSpans = 4096, kBlocks = 256;
constexpr std::size_t kMostSpans = kBlockSpans * kBlocks;

struct Slot {
  Span span;
  std::atomic<bool> ready;
};
struct Block {
  Slot slots[kBlockSpans];
};
constinit std::atomic<Block*> blocks[kBlocks] = {};
constinit std::atomic<std::size_t> taken{0};
constinit std::atomic<std::size_t> dropped{0};

constinit os::Once looking;
constinit bool enabled = false;
constinit std::atomic<bool> in_child{false};
constinit char file_path[os::kPathBytes] = {};

__attribute__((noinline, cold)) void look_at_options() noexcept {
  const char* path = config::options().trace;
  enabled = false;
  const bool parents = in_child.load(std::memory_order_relaxed) && !names_process(path);
  if (path[0] != '\0' && !parents) {
    if (make_absolute(path, file_path, sizeof file_path))
      enabled = true;
    else
      warn(Warning::trace_file, "GEMMHOIST_TRACE=%s is no usable path", path);
  }
}

Block* block_at(std::size_t index) noexcept {
  Block* block = blocks[index].load(std::memory_order_acquire);
  if (block != nullptr) return block;
  void* memory = mmap(nullptr, sizeof(Block), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  Block* fresh = static_cast<Block*>(memory);  // zero pages: every slot is "not ready"
  if (blocks[index].compare_exchange_strong(block, fresh, std::memory_order_acq_rel)) return fresh;
  munmap(memory, sizeof(Block));
  return block;
}

}  // namespace

std::int64_t now_ns() noexcept {
  return os::monotonic_ns();
}

bool trace_enabled() noexcept {
  looking.run(look_at_options);
  return enabled;
}

void add_span(const Span& span) noexcept {
  if (!trace_enabled()) return;
  const os::ErrnoGuard keep_errno;
  // Looked at first, so that the count of a process that runs for months does not wrap.
  Block* block = nullptr;
  std::size_t place = kMostSpans;
  if (taken.load(std::memory_order_relaxed) < kMostSpans)
    place = taken.fetch_add(1, std::memory_order_relaxed);
  if (place < kMostSpans) block = block_at(place / kBlockSpans);
  if (block == nullptr) {
    dropped.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  Slot& slot = block->slots[place % kBlockSpans];
  slot.span = span;
  slot.ready.store(true, std::memory_order_release);
}

std::size_t trace_spans() noexcept {
  const std::size_t places = taken.load(std::memory_order_acquire);
  return places < kMostSpans ? places : kMostSpans;
}

std::size_t trace_dropped() noexcept {
  return dropped.load(std::memory_order_relaxed);
}

bool trace_span(std::size_t index, Span& span) noexcept {
  const Block* block = blocks[index / kBlockSpans].load(std::memory_order_acquire);
  if (block == nullptr) return false;
  const Slot& slot = block->slots[index % kBlockSpans];
  if (!slot.ready.load(std::memory_order_acquire)) return false;
  span = slot.span;
  return true;
}

void write_trace() noexcept {
  if (!trace_enabled() || taken.load(std::memory_order_acquire) == 0) return;
  const os::DefaultFloatingPoint no_traps;
  if (!write_trace_json(file_path)) warn(Warning::trace_file, "cannot write GEMMHOIST_TRACE=%s", file_path);
}

void reset_trace_after_fork() noexcept {
  const os::ErrnoGuard keep_errno;
  for (auto& block : blocks)
    if (Block* old = block.exchange(nullptr, std::memory_order_relaxed)) munmap(old, sizeof(Block));
  taken.store(0, std::memory_order_relaxed);
  dropped.store(0, std::memory_order_relaxed);
  in_child.store(true, std::memory_order_relaxed);
  looking.forget();  // looked at again, as a child's
}

}  // namespace gemmhoist::observe
