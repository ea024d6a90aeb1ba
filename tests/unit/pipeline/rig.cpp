#include "rig.hpp"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

#include "observe/trace.hpp"

namespace gemmhoist::test {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;

// A task that somebody waits for; lives until it was run.
class Waited final : public device::Task {
 public:
  explicit Waited(std::function<void(device::Device*, Status)> body) : body_(std::move(body)) {}

  void run(device::Device& device) noexcept override { end(&device, Status()); }
  void abandon(Status why) noexcept override { end(nullptr, why); }

  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_; });
  }

 private:
  void end(device::Device* device, Status status) {
    body_(device, status);
    std::lock_guard lock(mutex_);
    done_ = true;
    changed_.notify_all();
  }

  std::function<void(device::Device*, Status)> body_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
};

}  // namespace

Rig::Rig(const RigOptions& options) : precision_(options.precision), simulation_(options.simulation) {
  set_simulation(&simulation_);
  Status made;
  Waited start([&](device::Device* device, Status opened) {
    made = opened;
    if (device == nullptr) return;
    pipeline::EngineOptions engine_options;
    engine_options.host_threads = options.host_threads;
    engine_options.pinned_bytes = options.pinned_bytes;
    engine_options.device_bytes = options.device_bytes;
    engine_options.precision = options.precision;
    made = pipeline::make_engine(*device, engine_options, engine_);
    if (!made.ok() || options.precision == Precision::fp32) return;
    MachineProfile profile;
    profile.kernel_flops_per_s = 1e8;
    set_flops_per_s(profile, options.precision, 1e14);
    pipeline::set_profile(*engine_, profile);
  });
  worker_ = device::start_worker(simulated_factory, 0, start);
  start.wait();
  EXPECT_TRUE(made.ok()) << "no engine for this test: " << made.what();
}

Rig::~Rig() {
  simulation_.release();
  simulation_.arm({});
  if (engine_ != nullptr) {
    Waited end([&](device::Device* device, Status) { pipeline::close_engine(engine_, device); });
    if (worker_->submit(end)) {
      end.wait();
    } else {
      pipeline::close_engine(engine_, nullptr);  // a test closed the worker, and with it the device went
    }
  }
  if (worker_->close(observe::now_ns() + 20'000 * kMillisecond, device::AtClose::destroy_device))
    delete worker_;
}

CallResult Rig::multiply(const GemmCall& call, std::int64_t patience_ms) {
  CallResult result;
  pipeline::Job* job = pipeline::take_job(call, precision_);
  if (job == nullptr) return result;
  device::Task& task = pipeline::as_task(*job, *engine_);
  result.submitted = worker_->submit(task);
  if (!result.submitted) task.abandon(Status(StatusCode::cancelled, "closing"));
  result.outcome = pipeline::wait(*job, observe::now_ns() + patience_ms * kMillisecond);
  result.status = pipeline::status(*job);
  result.tiles = pipeline::tiles_written(*job);
  result.times = pipeline::times(*job);
  result.kernel = pipeline::kernel_name(*job);
  result.leftover = pipeline::leftover(*job);
  if (result.outcome == pipeline::Outcome::partial) {
    struct Rest {
      const GemmCall* call;
      int count;
    } rest{&call, 0};
    pipeline::for_each_region_left(
        *job,
        [](const pipeline::Region& region, void* context) {
          auto& left = *static_cast<Rest*>(context);
          GemmCall part = *left.call;
          const std::int64_t i = region.rows.begin, j = region.cols.begin;
          part.m = region.rows.extent;
          part.n = region.cols.extent;
          part.a += part.trans_a == Transpose::no ? i : i * part.lda;
          part.b += part.trans_b == Transpose::no ? j * part.ldb : j;
          part.c += i + j * part.ldc;
          reference_multiply(part);
          ++left.count;
        },
        &rest);
    result.regions_left = rest.count;
  }
  pipeline::let_go(*job);
  return result;
}

void Rig::on_worker(const std::function<void(device::Device&)>& body) {
  Waited task([&](device::Device* device, Status) {
    if (device != nullptr) body(*device);
  });
  if (worker_->submit(task)) task.wait();
}

std::int64_t calls_of(Rig& rig, Product& product) {
  rig.simulation().arm({});
  EXPECT_EQ(rig.multiply(product.call()).outcome, pipeline::Outcome::done);
  product.restore_c();
  return rig.simulation().calls();
}

std::int64_t fail_each_call_once(
    Rig& rig, Product& product, std::int64_t calls,
    const std::function<void(const CallResult& next, std::int64_t call)>& look_at_next) {
  std::int64_t met = 0;
  for (std::int64_t k = 1; k <= calls; ++k) {
    Fault fault;
    fault.fail_at = k;
    rig.simulation().arm(fault);
    const CallResult result = rig.multiply(product.call());
    EXPECT_EQ(product.check(), "") << "call " << k << " failed";
    met += result.status.ok() ? 0 : 1;
    product.restore_c();
    rig.simulation().arm({});
    const CallResult next = rig.multiply(product.call());
    EXPECT_EQ(next.outcome, pipeline::Outcome::done) << "after call " << k << ": " << next.status.what();
    EXPECT_EQ(product.check(), "") << "after call " << k;
    look_at_next(next, k);
    product.restore_c();
  }
  return met;
}

bool Rig::close_worker(std::int64_t patience_ms) {
  return worker_->close(observe::now_ns() + patience_ms * kMillisecond, device::AtClose::destroy_device);
}

}  // namespace gemmhoist::test
