// A worker, a CUDA device on a given driver table, an engine: what dispatch puts together, with the seam for
// faults left open. A call is finished as dispatch finishes it: what the pipeline left is made by the CPU.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <future>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "device/cuda/cuda_device.hpp"
#include "device/worker.hpp"
#include "driver_under_test.hpp"
#include "observe/trace.hpp"
#include "pipeline/pipeline.hpp"

namespace gemmhoist::test {

// A task that runs a function and says how it went.
class FunctionTask final : public device::Task {
 public:
  explicit FunctionTask(std::function<Status(device::Device&)> body) : body_(std::move(body)) {}
  void run(device::Device& device) noexcept override { done_.set_value(body_(device)); }
  void abandon(Status why) noexcept override { done_.set_value(why); }
  Status result() { return done_.get_future().get(); }

 private:
  std::function<Status(device::Device&)> body_;
  std::promise<Status> done_;
};

class PipelineHarness {
 public:
  PipelineHarness(const DriverUnderTest& driver, const device::cuda::DriverTable& table,
                  const pipeline::EngineOptions& options)
      : precision_(options.precision) {
    current().driver = driver;
    current().table = &table;
    FunctionTask start([&](device::Device& device) {
      const Status made = pipeline::make_engine(device, options, engine_);
      if (!made.ok()) return made;
      MachineProfile profile;
      if (precision_ != Precision::fp32) {  // which then has no chance
        profile.kernel_flops_per_s = 1e8;
        set_flops_per_s(profile, precision_, 1e14);
      }
      pipeline::set_profile(*engine_, profile);
      return made;
    });
    worker_ = device::start_worker(open, 0, start);
    status_ = start.result();
  }

  // The device is destroyed, lost or not, and with it all that it holds.
  ~PipelineHarness() {
    if (engine_ != nullptr) {
      FunctionTask stop([&](device::Device& device) {
        pipeline::close_engine(engine_, &device);
        return Status();
      });
      if (worker_->submit(stop)) static_cast<void>(stop.result());
    }
    const bool parked = worker_->close(observe::now_ns() + 20'000'000'000, device::AtClose::destroy_device);
    EXPECT_TRUE(parked);
    if (parked) delete worker_;
  }

  Status status() const { return status_; }  // of opening

  struct Answer {
    pipeline::Outcome outcome;
    Status status;
    std::string kernel;
    pipeline::Leftover leftover;
  };

  // Makes C whole, by the pipeline and what the CPU adds.
  Answer multiply(const GemmCall& call) {
    pipeline::Job* job = pipeline::take_job(call, precision_);
    EXPECT_NE(job, nullptr);
    device::Task& task = pipeline::as_task(*job, *engine_);
    if (!worker_->submit(task)) task.abandon(Status(StatusCode::cancelled, "worker"));
    Answer answer{};
    answer.outcome = pipeline::wait(*job, observe::now_ns() + 60'000'000'000);
    answer.status = pipeline::status(*job);
    answer.kernel = pipeline::kernel_name(*job);
    answer.leftover = pipeline::leftover(*job);
    if (answer.outcome == pipeline::Outcome::partial) {
      GemmCall rest = call;
      pipeline::for_each_region_left(*job, finish, &rest);
    }
    pipeline::let_go(*job);
    return answer;
  }

 private:
  struct Current {
    DriverUnderTest driver;
    const device::cuda::DriverTable* table;
  };
  static Current& current() {
    static auto* it = new Current;
    return *it;
  }
  static std::unique_ptr<device::Device> open(std::int32_t ordinal, Status& status) noexcept {
    const Current& c = current();
    return device::cuda::open_device(*c.table, ordinal, c.driver.registry, c.driver.images, status);
  }

  static void finish(const pipeline::Region& region, void* context) {
    const GemmCall& call = *static_cast<const GemmCall*>(context);
    for (std::int64_t j = region.cols.begin; j < region.cols.end(); ++j) {
      std::vector<float> sum(static_cast<std::size_t>(region.rows.extent), 0.0f);
      for (std::int64_t p = 0; p < call.k; ++p) {
        const float b = call.trans_b == Transpose::no ? call.b[p + j * call.ldb] : call.b[j + p * call.ldb];
        for (std::int64_t i = 0; i < region.rows.extent; ++i) {
          const std::int64_t row = region.rows.begin + i;
          const float a =
              call.trans_a == Transpose::no ? call.a[row + p * call.lda] : call.a[p + row * call.lda];
          sum[static_cast<std::size_t>(i)] += a * b;
        }
      }
      for (std::int64_t i = 0; i < region.rows.extent; ++i) {
        float& c = call.c[region.rows.begin + i + j * call.ldc];
        c = call.alpha * sum[static_cast<std::size_t>(i)] + (call.beta == 0 ? 0.0f : call.beta * c);
      }
    }
  }

  const Precision precision_;
  device::Worker* worker_ = nullptr;
  pipeline::Engine* engine_ = nullptr;
  Status status_;
};

// Operands of one product, its exact result, and a C that starts afresh for every attempt, with guards
// between columns.
class Product {
 public:
  Product(std::int64_t m, std::int64_t n, std::int64_t k, Transpose trans_a, Transpose trans_b, float beta) {
    call_ = {trans_a, trans_b, m, n, k, 1.25f, nullptr, 0, nullptr, 0, beta, nullptr, m + 3};
    call_.lda = (trans_a == Transpose::no ? m : k) + 1;
    call_.ldb = (trans_b == Transpose::no ? k : n) + 2;
    a_ = random(call_.lda * (trans_a == Transpose::no ? k : m));
    b_ = random(call_.ldb * (trans_b == Transpose::no ? n : k));
    original_ = random(call_.ldc * n);
    call_.a = a_.data();
    call_.b = b_.data();
    make_expected();
  }

  // Of A and B, so that what tf32 makes is as good as what fp32 does.
  void keep_significant_bits(int bits) {
    const auto mask = ~std::uint32_t{0} << (24 - bits);
    for (std::vector<float>* operand : {&a_, &b_})
      for (float& value : *operand) value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & mask);
    make_expected();
  }
  // A(0, 0), which is in no range that six products make.
  void make_first_subnormal() {
    a_[0] = 0x1p-140f;
    make_expected();
  }

  const GemmCall& fresh() {
    c_ = original_;
    if (call_.beta == 0) {
      for (std::int64_t j = 0; j < call_.n; ++j) {
        std::fill_n(c_.begin() + j * call_.ldc, call_.m, std::nanf(""));
      }
    }
    call_.c = c_.data();
    return call_;
  }

  // The first element out of bounds, or "".
  std::string complaint() const {
    for (std::int64_t j = 0; j < call_.n; ++j) {
      for (std::int64_t i = 0; i < call_.ldc; ++i) {
        const auto at = static_cast<std::size_t>(i + j * call_.ldc);
        const bool inside = i < call_.m;
        const bool good = inside ? std::abs(static_cast<double>(c_[at]) - expected_[at]) <= bound_[at]
                                 : c_[at] == original_[at];
        if (good) continue;
        return "C[" + std::to_string(i) + ", " + std::to_string(j) + "] is " + std::to_string(c_[at]) +
               (inside ? ", not " + std::to_string(expected_[at]) : ", outside the matrix");
      }
    }
    return "";
  }

 private:
  std::vector<float> random(std::int64_t count) {
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) value = uniform(generator_);
    return values;
  }

  void make_expected() {
    expected_.assign(original_.size(), 0);
    bound_.assign(original_.size(), 0);
    std::vector<double> sum(static_cast<std::size_t>(call_.m)), magnitude(sum.size());
    for (std::int64_t j = 0; j < call_.n; ++j) {
      std::fill(sum.begin(), sum.end(), 0.0);
      std::fill(magnitude.begin(), magnitude.end(), 0.0);
      for (std::int64_t p = 0; p < call_.k; ++p) {
        const double b =
            call_.trans_b == Transpose::no ? call_.b[p + j * call_.ldb] : call_.b[j + p * call_.ldb];
        for (std::int64_t i = 0; i < call_.m; ++i) {
          const double a =
              call_.trans_a == Transpose::no ? call_.a[i + p * call_.lda] : call_.a[p + i * call_.lda];
          sum[static_cast<std::size_t>(i)] += a * b;
          magnitude[static_cast<std::size_t>(i)] += std::abs(a * b);
        }
      }
      for (std::int64_t i = 0; i < call_.m; ++i) {
        const auto at = static_cast<std::size_t>(i + j * call_.ldc);
        const double c0 = call_.beta == 0 ? 0.0 : static_cast<double>(call_.beta) * original_[at];
        const double alpha = call_.alpha;
        expected_[at] = alpha * sum[static_cast<std::size_t>(i)] + c0;
        bound_[at] = static_cast<double>(call_.k + 3) *
                     (std::ldexp(alpha * magnitude[static_cast<std::size_t>(i)] + std::abs(c0), -24) +
                      std::ldexp(1 + alpha + std::abs(static_cast<double>(call_.beta)), -149));
      }
    }
  }

  std::mt19937 generator_{20240229};
  GemmCall call_;
  std::vector<float> a_, b_, c_, original_;
  std::vector<double> expected_, bound_;
};

}  // namespace gemmhoist::test
