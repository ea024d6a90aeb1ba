#include "cuda_on_cpu.hpp"

#include <ucontext.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <vector>

CudaIndex threadIdx, blockIdx;

// `extern __shared__` in a kernel names one of these, by the namespace it stands in; a block uses one.
namespace gemmhoist::kernels {
alignas(1024) float4 shared_memory[cuda_on_cpu::kSharedBytes / sizeof(float4)];
}
alignas(1024) float4 shared_memory[cuda_on_cpu::kSharedBytes / sizeof(float4)];

namespace cuda_on_cpu {
namespace {

constexpr std::size_t kStackBytes = 64 * 1024;

struct Copy {
  void* shared;
  const void* global;
  std::size_t bytes;
};

struct Fiber {
  ucontext_t context;
  std::unique_ptr<char[]> stack;
  bool done = false;
  std::uint64_t barriers = 0, warp_barriers = 0;
  std::vector<Copy> open;                // copies not yet in a group
  std::deque<std::vector<Copy>> groups;  // oldest first
};

struct BulkCopy {
  void* shared;
  const void* global;
  std::size_t bytes;
};

struct MbarrierState {
  int arrivals = 0, left = 0;
  std::int64_t bytes = 0;  // announced less landed
  int parity = 0;          // of the phase that runs
  std::vector<BulkCopy> under_way;
};

struct Block {
  Machine machine;
  std::uint64_t progress = 0;  // of anything that somebody may wait for
  ucontext_t scheduler;
  std::vector<Fiber> fibers;
  Fiber* current = nullptr;
  const std::function<void()>* kernel = nullptr;
  std::map<std::uint64_t*, MbarrierState> mbarriers;
  std::vector<const void*> warp_values;  // one a thread, while its warp looks
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
  fiber.warp_barriers = 0;
  fiber.open.clear();
  fiber.groups.clear();
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.get();
  fiber.context.uc_stack.ss_size = kStackBytes;
  fiber.context.uc_link = nullptr;
  makecontext(&fiber.context, fiber_main, 0);
}

void land(const std::vector<Copy>& copies) {
  for (const Copy& copy : copies) std::memcpy(copy.shared, copy.global, copy.bytes);
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

// Back to the scheduler, until this thread's turn comes again.
void yield() {
  swapcontext(&running->current->context, &running->scheduler);
}

// Gives each of these threads a turn: it runs until it has to wait or ends.
void run_once(Block& block, std::size_t first, std::size_t last) {
  for (std::size_t i = first; i < last; ++i) {
    const bool backwards = block.machine.order == ThreadOrder::backwards;
    const std::size_t index = backwards ? block.fibers.size() - 1 - i : i;
    Fiber& fiber = block.fibers[index];
    if (fiber.done) continue;
    block.current = &fiber;
    threadIdx = {static_cast<unsigned>(index), 0, 0};
    swapcontext(&block.scheduler, &fiber.context);
    block.progress += fiber.done;
  }
}

// False when threads are left and none can go on.
bool run_block(Block& block) {
  const std::size_t threads = block.fibers.size();
  const std::size_t together = block.machine.order == ThreadOrder::by_warp ? 32 : threads;
  for (;;) {
    const std::uint64_t before = block.progress;
    for (std::size_t first = 0; first < threads; first += together) {
      std::uint64_t before_turn;
      do {
        before_turn = block.progress;
        run_once(block, first, std::min(first + together, threads));
      } while (together < threads && block.progress != before_turn);
    }
    if (std::all_of(block.fibers.begin(), block.fibers.end(), [](const Fiber& fiber) { return fiber.done; }))
      return true;
    if (block.progress == before) return false;
  }
}

// Counts this thread in at a barrier of `threads` neighbours and waits for the others; one that has left need
// not come.
void meet(std::uint64_t Fiber::*barriers, std::size_t threads) {
  Block& block = *running;
  const std::size_t first = threadIdx.x / threads * threads;
  const std::size_t last = std::min(first + threads, block.fibers.size());
  const std::uint64_t mine = ++(block.current->*barriers);
  ++block.progress;
  const auto all_here = [&] {
    return std::all_of(block.fibers.begin() + static_cast<std::ptrdiff_t>(first),
                       block.fibers.begin() + static_cast<std::ptrdiff_t>(last),
                       [&](const Fiber& fiber) { return fiber.done || fiber.*barriers >= mine; });
  };
  do yield();
  while (!all_here());
}

void land(MbarrierState& state) {
  for (const BulkCopy& copy : state.under_way) {
    std::memcpy(copy.shared, copy.global, copy.bytes);
    state.bytes -= static_cast<std::int64_t>(copy.bytes);
  }
  running->progress += !state.under_way.empty();
  state.under_way.clear();
}

void end_phase_if_complete(MbarrierState& state) {
  if (state.left != 0 || state.bytes != 0) return;
  state.parity ^= 1;
  state.left = state.arrivals;
  ++running->progress;
}

}  // namespace

bool run_grid(const Machine& machine, unsigned blocks, unsigned threads, std::size_t shared_bytes,
              const std::function<void()>& kernel) {
  Block block;
  block.machine = machine;
  block.fibers = std::vector<Fiber>(threads);
  block.kernel = &kernel;
  block.warp_values.resize(threads);
  for (Fiber& fiber : block.fibers) fiber.stack = std::make_unique<char[]>(kStackBytes);
  running = &block;
  bool ok = true;
  for (unsigned b = 0; ok && b < blocks; ++b) {
    blockIdx = {b, 0, 0};
    block.mbarriers.clear();
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

void copy(void* shared, const void* global, std::size_t bytes) {
  // The hardware faults on these.
  if (reinterpret_cast<std::uintptr_t>(shared) % bytes != 0 ||
      reinterpret_cast<std::uintptr_t>(global) % bytes != 0)
    std::abort();
  if (running->machine.copies == CopiesLand::at_once)
    land({{shared, global, bytes}});
  else
    running->current->open.push_back({shared, global, bytes});
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

void mbarrier_init(std::uint64_t* barrier, int arrivals) {
  running->mbarriers[barrier] = {.arrivals = arrivals, .left = arrivals, .under_way = {}};
}

void mbarrier_arrive(std::uint64_t* barrier, int expected_bytes) {
  MbarrierState& state = running->mbarriers.at(barrier);
  if (state.left == 0) std::abort();  // more arrivals than the phase has
  state.bytes += expected_bytes;
  --state.left;
  ++running->progress;
  end_phase_if_complete(state);
  // Whoever waits for this may go on before this thread does; not so before the copies that it announces.
  if (expected_bytes != 0) return;
  yield();
  ++running->progress;
}

void mbarrier_wait(std::uint64_t* barrier, int parity) {
  MbarrierState& state = running->mbarriers.at(barrier);
  while (state.parity == parity) {
    yield();
    if (state.parity != parity) break;
    land(state);
    end_phase_if_complete(state);
  }
}

void bulk_copy(void* shared, const void* global, int bytes, std::uint64_t* barrier) {
  if (reinterpret_cast<std::uintptr_t>(shared) % 16 != 0 ||
      reinterpret_cast<std::uintptr_t>(global) % 16 != 0 || bytes % 16 != 0)
    std::abort();
  MbarrierState& state = running->mbarriers.at(barrier);
  state.under_way.push_back({shared, global, static_cast<std::size_t>(bytes)});
  if (running->machine.copies == CopiesLand::at_once) {
    land(state);
    end_phase_if_complete(state);
  }
}

void warp_gather(const void* mine, std::size_t bytes, void* all) {
  std::vector<const void*>& values = running->warp_values;
  const std::size_t first = threadIdx.x / 32 * 32;
  values[threadIdx.x] = mine;
  meet(&Fiber::warp_barriers, 32);
  for (std::size_t lane = 0; lane < 32; ++lane)
    std::memcpy(static_cast<char*>(all) + lane * bytes, values[first + lane], bytes);
  meet(&Fiber::warp_barriers, 32);  // nobody's value goes before all have seen it
}

}  // namespace cuda_on_cpu

void __syncthreads() {
  cuda_on_cpu::meet(&cuda_on_cpu::Fiber::barriers, 1024);
}

void __syncwarp() {
  cuda_on_cpu::meet(&cuda_on_cpu::Fiber::warp_barriers, 32);
}
