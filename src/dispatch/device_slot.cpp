#include "dispatch/device_slot.hpp"

#include <algorithm>
#include <new>

#include "config/options.hpp"
#include "dispatch/backoff.hpp"
#include "observe/counters.hpp"
#include "observe/decision_log.hpp"
#include "os/os.hpp"

namespace gemmhoist::dispatch {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kSecond = 1'000 * kMillisecond;

// A call's deadline: ten times its prediction, and two seconds for a machine that is busy with other things.
constexpr double kDeadlineFactor = 10;
constexpr std::int64_t kDeadlineSlackNs = 2 * kSecond;

// Failures in a row, none of them for want of memory, after which the device is given up. With the rests
// between them that is 13 s at least: longer than a link that retrains or a driver that recovers takes.
constexpr int kFailuresToLose = 8;
// A deadline that passes costs its caller seconds, hence two of them in a row do it.
constexpr int kWeightOfTimeout = 4;
// What a worker whose call was taken back may take to come back: the call sees so at its next step, unless
// the driver holds it. A process that was stopped (a job control signal, a debugger, a frozen container)
// finds all its deadlines passed when it goes on, and a sound device behind them.
constexpr std::int64_t kHungNs = 5 * kSecond;

}  // namespace

// Handed to the worker behind a call that was taken back: when it runs, the worker has come back.
class DeviceSlot::Probe final : public device::Task {
 public:
  explicit Probe(DeviceSlot& slot) noexcept : slot_(slot) {}
  void run(device::Device&) noexcept override { slot_.hung_.store(false, std::memory_order_release); }
  void abandon(Status) noexcept override {}

 private:
  DeviceSlot& slot_;
};

Health DeviceSlot::health() noexcept {
  if (engine.load(std::memory_order_acquire) == nullptr) return Health::not_up;
  if (lost_.load(std::memory_order_acquire)) return Health::lost;
  const std::int64_t until = rest_until_ns_.load(std::memory_order_acquire);
  const bool rests = until != 0 && os::monotonic_ns() < until;
  if (hung_.load(std::memory_order_acquire)) {
    if (rests) return Health::hung;
    (void)lose(Status(StatusCode::timed_out, "call"));
    return Health::lost;
  }
  return rests ? Health::resting : Health::usable;
}

GpuAnswer DeviceSlot::run(pipeline::Job& job, const decide::Decision& decision) noexcept {
  GpuAnswer answer;
  const auto predicted_ns = static_cast<std::int64_t>(decision.gpu_s * 1e9);
  const std::int64_t before_ns = queued_ns_.fetch_add(predicted_ns, std::memory_order_relaxed);
  const std::int64_t queue_ns = before_ns + predicted_ns;
  // Several callers may have seen the same empty queue: those who come too late for it go back.
  const bool insists = decision.reason == decide::Reason::forced_gpu;
  if (insists || before_ns == 0 || 1e-9 * static_cast<double>(queue_ns) < decision.cpu_s) {
    device::Task& task = pipeline::as_task(job, *engine.load(std::memory_order_acquire));
    const std::uint32_t ticket = tickets_.fetch_add(1, std::memory_order_relaxed) + 1;
    const std::int64_t begun_ns = os::monotonic_ns();
    if (!worker.load(std::memory_order_acquire)->submit(task)) {
      task.abandon(Status(StatusCode::cancelled, "worker closing"));
    } else {
      const std::int64_t limit_ms = config::options().deadline_ms;
      const std::int64_t patience_ns =
          limit_ms > 0
              ? limit_ms * kMillisecond
              : static_cast<std::int64_t>(kDeadlineFactor * static_cast<double>(queue_ns)) + kDeadlineSlackNs;
      answer.tried = true;
      answer.outcome = pipeline::wait(job, begun_ns + patience_ns);
      if (const Status status = pipeline::status(job); status.ok()) {
        const double total_s = pipeline::times(job).total_s;
        went_well(decision, begun_ns, begun_ns + static_cast<std::int64_t>(total_s * 1e9), ticket);
      } else {
        went_wrong(status, begun_ns);
      }
    }
  }
  queued_ns_.fetch_sub(predicted_ns, std::memory_order_relaxed);
  return answer;
}

// Teaches what the call itself took: from when the one before it was done, if that is known. Were only calls
// that met an idle device to teach, a program that always has several under way would never be corrected.
void DeviceSlot::went_well(const decide::Decision& decision, std::int64_t begun_ns, std::int64_t ended_ns,
                           std::uint32_t ticket) noexcept {
  failures_.store(0, std::memory_order_relaxed);
  next_rest_ns_.store(0, std::memory_order_relaxed);
  const bool follows = finished_ticket_.load(std::memory_order_acquire) == ticket - 1;
  const std::int64_t previous_ns = finished_at_ns_.load(std::memory_order_relaxed);
  finished_at_ns_.store(ended_ns, std::memory_order_relaxed);
  finished_ticket_.store(ticket, std::memory_order_release);
  // The first call makes the device's buffers, which no later one pays for.
  if (!follows || ticket == 1) return;
  const std::int64_t own_ns = ended_ns - std::max(begun_ns, previous_ns);
  gpu_times().learn(decision.gpu_estimate_s, 1e-9 * static_cast<double>(own_ns));
}

void DeviceSlot::went_wrong(Status why, std::int64_t begun_ns) noexcept {
  int weight = 1;
  switch (why.code()) {
    case StatusCode::ok:
    case StatusCode::unsupported:
    case StatusCode::cancelled:
      return;
    case StatusCode::device_lost:
      weight = kFailuresToLose;
      break;
    case StatusCode::out_of_memory:
      weight = 0;  // somebody else's doing: no reason to give up
      break;
    case StatusCode::timed_out:
      weight = kWeightOfTimeout;
      await_worker();
      break;
    case StatusCode::device_error:
    case StatusCode::unavailable:
      break;
  }
  if (weight == kFailuresToLose) {
    if (lose(why)) observe::add(observe::Counter::gpu_failures);
    return;
  }
  if (!is_news(begun_ns)) return;
  if (weight > 0) {
    observe::add(observe::Counter::gpu_failures);
    if (failures_.fetch_add(weight, std::memory_order_relaxed) + weight >= kFailuresToLose) {
      (void)lose(why);
      return;
    }
  }
  if (why.code() != StatusCode::timed_out) rest();
}

// Calls that were under way together fail together: that is one failure, not one each.
bool DeviceSlot::is_news(std::int64_t begun_ns) noexcept {
  const std::int64_t now = os::monotonic_ns();
  std::int64_t known = failed_at_ns_.load(std::memory_order_relaxed);
  do {
    if (begun_ns <= known) return false;
  } while (!failed_at_ns_.compare_exchange_weak(known, now, std::memory_order_relaxed));
  return true;
}

void DeviceSlot::rest() noexcept {
  const std::int64_t next = next_rest_ns_.load(std::memory_order_relaxed);
  const std::int64_t length = next == 0 ? kFirstBackoffNs : next;
  next_rest_ns_.store(std::min(2 * length, kLastBackoffNs), std::memory_order_relaxed);
  rest_until_ns_.store(os::monotonic_ns() + length, std::memory_order_release);
}

void DeviceSlot::await_worker() noexcept {
  // The rest first: a hung device whose rest is over is lost.
  rest_until_ns_.store(os::monotonic_ns() + kHungNs, std::memory_order_release);
  if (hung_.exchange(true, std::memory_order_acq_rel)) return;
  static_assert(sizeof(Probe) <= sizeof probe_ && alignof(Probe) <= alignof(void*));
  // Not hung means that the last one has run, and nobody touches it any more.
  (void)worker.load(std::memory_order_acquire)->submit(*new (probe_) Probe(*this));
}

bool DeviceSlot::lose(Status why) noexcept {
  if (lost_.exchange(true, std::memory_order_acq_rel)) return false;
  observe::warn(observe::Warning::gpu_lost, "the GPU %d is lost (%s: %s, error %d); calls go on without it",
                ordinal.load(std::memory_order_relaxed), why.what(), to_string(why.code()), why.native());
  return true;
}

void DeviceSlot::forget() noexcept {
  worker.store(nullptr, std::memory_order_relaxed);
  engine.store(nullptr, std::memory_order_relaxed);
  queued_ns_.store(0, std::memory_order_relaxed);
}

}  // namespace gemmhoist::dispatch
