// Jobs come from a fixed pool in static storage: taking one needs no heap. References are kept outside the
// object, so that a job is constructed afresh for each call, and its storage never goes away: a worker that
// comes back from the driver hours late finds its job still there, and closed.
#include "pipeline/job.hpp"

#include <sched.h>

#include <cerrno>
#include <new>

#include "observe/counters.hpp"
#include "observe/trace.hpp"
#include "os/os.hpp"
#include "pipeline/engine.hpp"
#include "pipeline/host_copy.hpp"

namespace gemmhoist::pipeline {
namespace {

// More callers than this at once go to the CPU, which is where they are better off anyway.
constexpr int kJobs = 64;

struct alignas(64) JobStorage {
  std::atomic<std::uint32_t> references;  // 0: free
  alignas(Job) unsigned char bytes[sizeof(Job)];
};
constinit JobStorage pool[kJobs] = {};

JobStorage& storage_of(const Job& job) noexcept {
  const auto offset = reinterpret_cast<const unsigned char*>(&job) - reinterpret_cast<unsigned char*>(pool);
  return pool[static_cast<std::size_t>(offset) / sizeof(JobStorage)];
}

// How long a caller without work spins before it sleeps. It has nothing else to do, and its wake would be the
// last delay of the call: 20 to 60 us on an idle machine, up to the scheduler's slice (3 ms) on one whose
// CPUs other threads keep busy. Where CPUs are few the copy threads want them.
constexpr std::int64_t kSpinNs = 2'000'000;
constexpr std::int64_t kSpinFewCpusNs = 50'000;

}  // namespace

Job::Job(const GemmCall& product, Precision mode) noexcept
    : call(product), precision(mode), begin_ns(observe::now_ns()) {}

Job* take_job(const GemmCall& call, Precision precision) noexcept {
  for (JobStorage& storage : pool) {
    std::uint32_t free = 0;
    if (storage.references.load(std::memory_order_relaxed) == 0 &&
        storage.references.compare_exchange_strong(free, 1, std::memory_order_acq_rel)) {
      return new (storage.bytes) Job(call, precision);
    }
  }
  return nullptr;
}

void let_go(Job& job) noexcept {
  JobStorage& storage = storage_of(job);
  // The last one tidies up before the place is free again: hence not a plain decrement to zero.
  std::uint32_t references = storage.references.load(std::memory_order_acquire);
  while (references > 1) {
    if (storage.references.compare_exchange_weak(references, references - 1, std::memory_order_acq_rel))
      return;
  }
  if (Ledger* ledger = job.ledger.load(std::memory_order_acquire)) give_back(*ledger);
  job.~Job();
  storage.references.store(0, std::memory_order_release);
}

device::Task& as_task(Job& job, Engine& engine) noexcept {
  job.engine = &engine;
  job.spin_ns = engine.few_cpus() ? kSpinFewCpusNs : kSpinNs;
  engine.expect(job.call);
  storage_of(job).references.fetch_add(1, std::memory_order_acq_rel);
  return job;
}

void Job::nudge() noexcept {
  if (!caller_sleeps_.load(std::memory_order_seq_cst)) return;
  nudges_.fetch_add(1, std::memory_order_seq_cst);
  os::futex_wake(reinterpret_cast<const std::uint32_t*>(&nudges_), 1);
}

void Job::run(device::Device& device) noexcept {
  Status status(StatusCode::cancelled, "call");
  if (!gate.is_closed()) {
    phase.store(Phase::running, std::memory_order_seq_cst);
    status = engine->run(*this, device);
    observe::add(observe::Counter::bytes_h2d, static_cast<std::uint64_t>(uploaded_bytes));
    observe::add(observe::Counter::bytes_d2h, static_cast<std::uint64_t>(downloaded_bytes));
  }
  finish(status);
}

void Job::abandon(Status why) noexcept {
  finish(why);
}

void Job::finish(Status status) noexcept {
  worker_status = status;
  call_times.total_s = 1e-9 * static_cast<double>(observe::now_ns() - begin_ns);
  phase.store(Phase::finished, std::memory_order_seq_cst);
  nudge();
  // The caller may still be looking into the engine's queue. What it finds there is nobody's, but the engine,
  // which the worker's next task may close, has to outlast the look.
  while (caller_helps.load(std::memory_order_seq_cst)) sched_yield();
  let_go(*this);
}

bool Job::help() noexcept {
  bool helped = false;
  caller_helps.store(true, std::memory_order_seq_cst);
  // Only while this very job runs: then all that is in the queue is its own, and no other call delays it.
  if (phase.load(std::memory_order_seq_cst) == Phase::running)
    helped = engine->queue().work(CopyQueue::kCaller);
  caller_helps.store(false, std::memory_order_release);
  return helped;
}

void Job::sleep(std::int64_t deadline_ns) noexcept {
  const std::uint32_t seen = nudges_.load(std::memory_order_seq_cst);
  caller_sleeps_.store(true, std::memory_order_seq_cst);
  if (phase.load(std::memory_order_seq_cst) != Phase::finished && !help()) {
    os::futex_wait(reinterpret_cast<const std::uint32_t*>(&nudges_), seen, deadline_ns);
  }
  caller_sleeps_.store(false, std::memory_order_relaxed);
}

namespace {

bool finished(const Job& job) noexcept {
  return job.phase.load(std::memory_order_acquire) == Phase::finished;
}

bool complete(const Job& job) noexcept {
  if (finished(job) && job.worker_status.ok()) return true;
  // A failure after the last tile, or a worker that hangs on its way out, takes nothing away.
  const Ledger* ledger = job.ledger.load(std::memory_order_acquire);
  return ledger != nullptr && ledger->written() == static_cast<std::int64_t>(ledger->size());
}

// Copies along until the worker is done with the job; false at the deadline.
bool help_until_finished(Job& job, std::int64_t deadline_ns) noexcept {
  std::int64_t idle_since = 0;
  while (!finished(job)) {
    const bool helped = job.help();
    const std::int64_t now = observe::now_ns();
    if (now >= deadline_ns) return finished(job);
    if (helped) {
      idle_since = 0;
    } else if (idle_since == 0) {
      idle_since = now;
    } else if (now - idle_since < job.spin_ns) {
      for (int i = 0; i < 32; ++i) pause();
      sched_yield();  // the worker, or a copy thread, may want this very CPU
    } else {
      job.sleep(deadline_ns);
      idle_since = 0;
    }
  }
  return true;
}

}  // namespace

Outcome wait(Job& job, std::int64_t deadline_ns) noexcept {
  const os::NoCancellation no_cancellation;
  if (!help_until_finished(job, deadline_ns)) {
    job.gave_up = true;
    job.gate.close();
    job.gate.wait_until_empty();
  }
  return complete(job) ? Outcome::done : Outcome::partial;
}

Status status(const Job& job) noexcept {
  if (job.gave_up) return complete(job) ? Status() : Status(StatusCode::timed_out, "call");
  return finished(job) ? job.worker_status : Status();
}

CallTimes times(const Job& job) noexcept {
  if (finished(job)) return job.call_times;
  CallTimes times;
  times.total_s = 1e-9 * static_cast<double>(observe::now_ns() - job.begin_ns);
  return times;
}

Leftover leftover(const Job& job) noexcept {
  return finished(job) ? job.leftovers : Leftover();
}

const char* kernel_name(const Job& job) noexcept {
  return job.kernel.load(std::memory_order_acquire);
}

std::int64_t tiles_written(const Job& job) noexcept {
  const Ledger* ledger = job.ledger.load(std::memory_order_acquire);
  return ledger == nullptr ? 0 : ledger->written();
}

void for_each_region_left(const Job& job, void (*finish)(const Region&, void*), void* context) noexcept {
  const Ledger* ledger = job.ledger.load(std::memory_order_acquire);
  if (ledger == nullptr || ledger->written() == 0) {
    finish({{0, job.call.m}, {0, job.call.n}}, context);
  } else {
    ledger->for_each_left(finish, context);
  }
}

}  // namespace gemmhoist::pipeline
