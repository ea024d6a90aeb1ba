// The CUDA device on the machine's GPU.
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "device_product.hpp"
#include "driver_under_test.hpp"
#include "fault_table.hpp"
#include "pipeline_harness.hpp"

extern char** environ;

namespace gemmhoist::test {
namespace {

using device::cuda::open_device;
namespace result = device::cuda::result;

std::string beside_this_binary(const char* name) {
  char self[4096];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
  const std::string path(self, length > 0 ? static_cast<std::size_t>(length) : 0);
  return path.substr(0, path.rfind('/') + 1) + name;
}

// A child whose standard input and output are ours; it ends when its input closes.
class Child {
 public:
  Child(const std::string& path, const char* argument) {
    int to_child[2], from_child[2];
    if (pipe(to_child) != 0 || pipe(from_child) != 0) return;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to_child[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, from_child[1], STDOUT_FILENO);
    for (const int fd : {to_child[0], to_child[1], from_child[0], from_child[1]}) {
      posix_spawn_file_actions_addclose(&actions, fd);
    }
    char* arguments[] = {const_cast<char*>(path.c_str()), const_cast<char*>(argument), nullptr};
    if (posix_spawn(&pid_, path.c_str(), &actions, nullptr, arguments, environ) != 0) pid_ = -1;
    posix_spawn_file_actions_destroy(&actions);
    close(to_child[0]);
    close(from_child[1]);
    input_ = to_child[1];
    output_ = from_child[0];
  }
  ~Child() { end(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  bool says(const std::string& line) {
    std::string read_so_far;
    char byte = 0;
    while (read(output_, &byte, 1) == 1 && byte != '\n') read_so_far += byte;
    return read_so_far == line;
  }
  void end() {
    if (pid_ <= 0) return;
    close(input_);
    close(output_);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
  int input_ = -1, output_ = -1;
};

class GpuDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    driver = driver_under_test();
    SKIP_WITHOUT_DRIVER(driver);
  }
  std::unique_ptr<device::Device> open(Status& status) {
    return open_device(*driver.table, 0, driver.registry, driver.images, status);
  }
  DriverUnderTest driver;
};

TEST_F(GpuDevice, OpensWithItsFactsAndEveryKernelForItsArchitecture) {
  on_thread([&] {
    Status status;
    auto device = open(status);
    ASSERT_NE(device, nullptr) << status.what() << ' ' << status.native();
    const device::DeviceProperties& facts = device->properties();
    EXPECT_GE(facts.arch, 75);
    EXPECT_GT(facts.sm_count, 0);
    EXPECT_GT(facts.memory_bytes, std::size_t{1} << 30);
    std::size_t free_bytes = 0;
    EXPECT_TRUE(device->free_memory(free_bytes).ok());
    EXPECT_LE(free_bytes, facts.memory_bytes);
    const auto wanted =
        std::count_if(driver.registry.begin(), driver.registry.end(),
                      [&](const KernelDescriptor& kernel) { return kernel.min_arch <= facts.arch; });
    EXPECT_EQ(static_cast<long>(device->kernels().size()), wanted);
  });
}

TEST_F(GpuDevice, EveryKernelIsRightRoundItsTile) {
  on_thread([&] {
    Status status;
    auto device = open(status);
    ASSERT_NE(device, nullptr) << status.what();
    const KernelDescriptor* transpose = first_of(*device, KernelRole::transpose);
    ASSERT_NE(transpose, nullptr);
    for (const KernelDescriptor& kernel : device->kernels()) {
      if (kernel.role != KernelRole::gemm || kernel.precision != Precision::fp32) continue;
      for (const int more : {-1, 0, 1}) {
        DeviceProduct product(kernel.tile_m + more, kernel.tile_n - more, kernel.tile_k * 2 + more);
        const Status answer = product.run(*device, kernel, *transpose, 0.75f);
        ASSERT_TRUE(answer.ok()) << kernel.name << ' ' << answer.what() << ' ' << answer.native();
        EXPECT_LE(product.worst_error(0.75f), 1.0) << kernel.name;
      }
    }
  });
}

// A lazy load inside the first launch would be milliseconds; the launch itself is microseconds.
TEST_F(GpuDevice, TheFirstLaunchLoadsNothing) {
  on_thread([&] {
    Status status;
    auto device = open(status);
    ASSERT_NE(device, nullptr) << status.what();
    const KernelDescriptor* transpose = first_of(*device, KernelRole::transpose);
    ASSERT_NE(transpose, nullptr);
    device::DevicePointer memory = 0;
    ASSERT_TRUE(device->allocate(1 << 20, memory).ok());
    const TransposeKernelParams params{
        reinterpret_cast<float*>(memory), reinterpret_cast<float*>(memory + (1 << 19)), 64, 64, 64, 64};
    const auto seconds = [&] {
      const std::int64_t begin = observe::now_ns();
      EXPECT_TRUE(device->launch(device::Stream::prepare, *transpose, params).ok());
      const double taken = 1e-9 * static_cast<double>(observe::now_ns() - begin);
      EXPECT_TRUE(device->drain(observe::now_ns() + 1'000'000'000).ok());
      return taken;
    };
    const double first = seconds();
    const double second = seconds();
    std::printf("first launch %.1f us, second %.1f us\n", first * 1e6, second * 1e6);
    EXPECT_LT(first, 2e-3);
  });
}

// What an event costs with and without its time stamp: the reason for having one kind of event only.
TEST_F(GpuDevice, EventsWithTimeStampsCostNoMore) {
  on_thread([&] {
    Status status;
    auto device = open(status);
    ASSERT_NE(device, nullptr) << status.what();
    const device::cuda::DriverTable& cuda = *driver.table;
    device::cuda::StreamRef stream = nullptr;
    ASSERT_EQ(cuda.stream_create_with_priority(&stream, 1, 0), 0);
    constexpr int kRecords = 20000;
    const auto microseconds = [&](unsigned flags) {
      device::cuda::EventRef event = nullptr;
      EXPECT_EQ(cuda.event_create(&event, flags), 0);
      double best = 1e9;
      for (int round = 0; round < 5; ++round) {
        const std::int64_t begin = observe::now_ns();
        for (int i = 0; i < kRecords; ++i) EXPECT_EQ(cuda.event_record(event, stream), 0);
        while (cuda.stream_query(stream) == result::not_ready) {
        }
        best = std::min(best, 1e-3 * static_cast<double>(observe::now_ns() - begin) / kRecords);
      }
      return best;
    };
    const double with = microseconds(0);
    const double without = microseconds(2);  // CU_EVENT_DISABLE_TIMING
    std::printf("an event with time stamp %.2f us, without %.2f us\n", with, without);
    EXPECT_LT(with, without + 2.0);
  });
}

TEST_F(GpuDevice, TransientFailuresLeaveTheDeviceGood) {
  on_thread([&] {
    const device::cuda::DriverTable& table = fault_table(*driver.table);
    faults().disarm();
    Status status;
    auto device = open_device(table, 0, driver.registry, driver.images, status);
    ASSERT_NE(device, nullptr) << status.what();
    const auto multiply = [&](DeviceProduct& product) {
      return product.run(*device, *first_of(*device, KernelRole::gemm),
                         *first_of(*device, KernelRole::transpose), 1);
    };
    DeviceProduct product(129, 257, 65);
    ASSERT_TRUE(multiply(product).ok());
    long k = 1;
    for (bool struck = true; struck; ++k) {
      faults().arm(k, result::invalid_value, false);
      static_cast<void>(multiply(product));
      struck = faults().struck;
      faults().disarm();
      ASSERT_TRUE(multiply(product).ok()) << k;
      EXPECT_LE(product.worst_error(1), 1.0) << k;
    }
    EXPECT_GT(k, 20);
  });
}

// A program on the CUDA runtime: its last error, its current device and its memory are its own, and we
// survive its cudaDeviceReset.
TEST_F(GpuDevice, TheRuntimesStateIsTheHostsOwn) {
  void* runtime = nullptr;
  for (const char* name : {"libcudart.so.13", "libcudart.so.12", "/usr/local/cuda/lib64/libcudart.so"}) {
    if (runtime == nullptr) runtime = os::load_library(name);
  }
  if (runtime == nullptr) GTEST_SKIP() << "no CUDA runtime on this machine";
  const auto function = [&](const char* name) { return os::find_symbol(runtime, name); };
  auto* set_device = reinterpret_cast<int (*)(int)>(function("cudaSetDevice"));
  auto* get_device = reinterpret_cast<int (*)(int*)>(function("cudaGetDevice"));
  auto* allocate = reinterpret_cast<int (*)(void**, std::size_t)>(function("cudaMalloc"));
  auto* last_error = reinterpret_cast<int (*)()>(function("cudaPeekAtLastError"));
  auto* reset = reinterpret_cast<int (*)()>(function("cudaDeviceReset"));
  ASSERT_EQ(set_device(0), 0);
  void* memory = nullptr;
  ASSERT_EQ(allocate(&memory, 1 << 20), 0);
  ASSERT_EQ(allocate(&memory, std::size_t{1} << 50), 2) << "cudaErrorMemoryAllocation, on purpose";

  PipelineHarness harness(driver, *driver.table, {2, std::int64_t{16} << 20, std::int64_t{256} << 20});
  ASSERT_TRUE(harness.status().ok()) << harness.status().what();
  Product product(600, 500, 400, Transpose::no, Transpose::no, 0.5f);
  EXPECT_EQ(harness.multiply(product.fresh()).outcome, pipeline::Outcome::done);
  EXPECT_EQ(product.complaint(), "");

  EXPECT_EQ(last_error(), 2);
  int current = -1;
  EXPECT_EQ(get_device(&current), 0);
  EXPECT_EQ(current, 0);

  EXPECT_EQ(reset(), 0);
  EXPECT_EQ(harness.multiply(product.fresh()).outcome, pipeline::Outcome::done);
  EXPECT_EQ(product.complaint(), "");
}

// Case: another process leaves 200 MB of the GPU. Products beyond that are right, and when the process ends
// the whole GPU is to be had again.
TEST_F(GpuDevice, AnotherProcessLeavesLittleMemory) {
  Child hog(beside_this_binary("memory_hog"), "200");
  if (!hog.says("ready")) GTEST_SKIP() << "memory_hog could not fill the GPU";
  Product product(6000, 5000, 200, Transpose::no, Transpose::yes, 0.5f);  // C alone has 120 MB
  {
    PipelineHarness harness(driver, *driver.table, {4, std::int64_t{16} << 20, 0});
    if (harness.status().ok()) {
      harness.multiply(product.fresh());
      EXPECT_EQ(product.complaint(), "");
    } else {
      EXPECT_EQ(harness.status().code(), StatusCode::out_of_memory) << harness.status().what();
    }
  }
  hog.end();
  PipelineHarness harness(driver, *driver.table, {4, std::int64_t{16} << 20, 0});
  ASSERT_TRUE(harness.status().ok()) << harness.status().what();
  EXPECT_EQ(harness.multiply(product.fresh()).outcome, pipeline::Outcome::done);
  EXPECT_EQ(product.complaint(), "");
}

}  // namespace
}  // namespace gemmhoist::test
