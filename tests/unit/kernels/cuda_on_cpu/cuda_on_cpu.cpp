#include "cuda_on_cpu.hpp"

#include <ucontext.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <limits>
#include <memory>
#include <vector>

CudaIndex threadIdx, blockIdx;

// `extern __shared__` in a kernel names one of these, by the namespace it stands in; a block uses one.
namespace gemmhoist::kernels {
alignas(128) float4 shared_memory[cuda_on_cpu::kSharedBytes / sizeof(float4)];
}
alignas(128) float4 shared_memory[cuda_on_cpu::kSharedBytes / sizeof(float4)];

namespace cuda_on_cpu {
namespace {

constexpr std::size_t kStackBytes = 64 * 1024;

struct Copy {
  void* shared;
  const void* global;
};

struct Fiber {
  ucontext_t context;
  std::unique_ptr<char[]> stack;
  bool done = false;
  std::uint64_t barriers = 0;
  std::vector<Copy> open;                // copies not yet in a group
  std::deque<std::vector<Copy>> groups;  // oldest first
};

struct Block {
  Machine machine;
  ucontext_t scheduler;
  std::vector<Fiber> fibers;
  Fiber* current = nullptr;
  const std::function<void()>* kernel = nullptr;
};

Block* running = nullptr;

void fiber_main() {
  (*running->kernel)();
  running->current->done = true;
  swapcontext(&running->current->context, &running->scheduler);
}

// Apart, since getcontext is a function that returns twice to the compiler.
void prepare(Fiber& fiber) {
  fiber.done = false;
  fiber.barriers = 0;
  fiber.open.clear();
  fiber.groups.clear();
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.get();
  fiber.context.uc_stack.ss_size = kStackBytes;
  fiber.context.uc_link = nullptr;
  makecontext(&fiber.context, fiber_main, 0);
}

void land(const std::vector<Copy>& copies) {
  for (const Copy& copy : copies) std::memcpy(copy.shared, copy.global, 16);
}

// Floats that spoil whatever is computed from them; one pattern, so that a foreign write is seen.
void poison(float4* memory) {
  auto* floats = reinterpret_cast<float*>(memory);
  std::fill(floats, floats + kSharedBytes / sizeof(float), std::numeric_limits<float>::quiet_NaN());
}

bool poisoned_from(const float4* memory, std::size_t bytes) {
  const auto* floats = reinterpret_cast<const float*>(memory);
  return std::all_of(floats + bytes / sizeof(float), floats + kSharedBytes / sizeof(float),
                     [](float value) { return std::isnan(value); });
}

// Every thread in turn runs until it meets the barrier or ends; then all go on. True when all met alike.
bool run_block(Block& block) {
  std::vector<std::size_t> order(block.fibers.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    order[i] = block.machine.order == ThreadOrder::forwards ? i : order.size() - 1 - i;
  for (;;) {
    bool any_left = false;
    for (const std::size_t index : order) {
      Fiber& fiber = block.fibers[index];
      if (fiber.done) continue;
      block.current = &fiber;
      threadIdx = {static_cast<unsigned>(index), 0, 0};
      swapcontext(&block.scheduler, &fiber.context);
      any_left = any_left || !fiber.done;
    }
    // A thread that left early need not come; all that are still there must stand at the same barrier.
    std::uint64_t barriers = 0;
    for (const Fiber& fiber : block.fibers)
      if (!fiber.done) barriers = std::max(barriers, fiber.barriers);
    for (const Fiber& fiber : block.fibers)
      if (!fiber.done && fiber.barriers != barriers) return false;
    if (!any_left) return true;
  }
}

}  // namespace

bool run_grid(const Machine& machine, unsigned blocks, unsigned threads, std::size_t shared_bytes,
              const std::function<void()>& kernel) {
  Block block{.machine = machine, .scheduler = {}, .fibers = std::vector<Fiber>(threads), .kernel = &kernel};
  for (Fiber& fiber : block.fibers) fiber.stack = std::make_unique<char[]>(kStackBytes);
  running = &block;
  bool ok = true;
  for (unsigned b = 0; ok && b < blocks; ++b) {
    blockIdx = {b, 0, 0};
    poison(::shared_memory);
    poison(gemmhoist::kernels::shared_memory);
    for (Fiber& fiber : block.fibers) {
      prepare(fiber);
    }
    ok = run_block(block) && poisoned_from(::shared_memory, shared_bytes) &&
         poisoned_from(gemmhoist::kernels::shared_memory, shared_bytes);
  }
  running = nullptr;
  return ok;
}

void copy_16(void* shared, const void* global) {
  // The hardware faults on these.
  if (reinterpret_cast<std::uintptr_t>(shared) % 16 != 0 ||
      reinterpret_cast<std::uintptr_t>(global) % 16 != 0)
    std::abort();
  if (running->machine.copies == CopiesLand::at_once)
    land({{shared, global}});
  else
    running->current->open.push_back({shared, global});
}

void commit_copies() {
  Fiber& fiber = *running->current;
  fiber.groups.push_back(std::move(fiber.open));
  fiber.open.clear();
}

void wait_for_copies(int youngest_left) {
  Fiber& fiber = *running->current;
  while (fiber.groups.size() > static_cast<std::size_t>(youngest_left)) {
    land(fiber.groups.front());
    fiber.groups.pop_front();
  }
}

}  // namespace cuda_on_cpu

void __syncthreads() {
  using cuda_on_cpu::running;
  ++running->current->barriers;
  swapcontext(&running->current->context, &running->scheduler);
}
