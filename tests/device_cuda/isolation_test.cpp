// What the host program may rely on, each promise a test: the device works on a thread of ours while the host
// uses the driver by itself.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <thread>

#include "device_product.hpp"
#include "driver_under_test.hpp"

namespace gemmhoist::test {
namespace {

using device::HostMemory;
using device::cuda::Context;
using device::cuda::DevicePtr;
using device::cuda::open_device;
using device::cuda::Result;
using device::cuda::StreamRef;

// The host: a program with the primary context current on its own thread, as the CUDA runtime makes it.
class Isolation : public ::testing::Test {
 protected:
  void SetUp() override {
    driver = driver_under_test();
    SKIP_WITHOUT_DRIVER(driver);
    ASSERT_EQ(driver.table->init(0), 0);
    retain = driver_function<Result(Context*, int)>(driver, "cuDevicePrimaryCtxRetain");
    reset = driver_function<Result(int)>(driver, "cuDevicePrimaryCtxReset_v2");
    set_current = driver_function<Result(Context)>(driver, "cuCtxSetCurrent");
    get_current = driver_function<Result(Context*)>(driver, "cuCtxGetCurrent");
    ASSERT_EQ(retain(&primary, 0), 0);
    ASSERT_EQ(set_current(primary), 0);
  }
  void TearDown() override {
    if (driver.table == nullptr) return;
    static_cast<void>(set_current(nullptr));
    static_cast<void>(driver_function<Result(int)>(driver, "cuDevicePrimaryCtxRelease_v2")(0));
  }

  std::unique_ptr<device::Device> open() {
    Status status;
    auto device = open_device(*driver.table, 0, driver.registry, driver.images, status);
    EXPECT_TRUE(status.ok()) << status.what() << ' ' << status.native();
    return device;
  }
  // One product on `device`, right or the test fails.
  static void multiply(device::Device& device) {
    DeviceProduct product(65, 47, 33);
    const Status status = product.run(device, *first_of(device, KernelRole::gemm),
                                      *first_of(device, KernelRole::transpose), 1.5f);
    ASSERT_TRUE(status.ok()) << status.what() << ' ' << status.native();
    EXPECT_LE(product.worst_error(1.5f), 1.0);
  }

  DriverUnderTest driver;
  Context primary = nullptr;
  Result (*retain)(Context*, int) = nullptr;
  Result (*reset)(int) = nullptr;
  Result (*set_current)(Context) = nullptr;
  Result (*get_current)(Context*) = nullptr;
};

TEST_F(Isolation, TheHostsCurrentContextIsItsOwn) {
  on_thread([&] {
    auto device = open();
    ASSERT_NE(device, nullptr);
    multiply(*device);
    Context ours = nullptr;
    EXPECT_EQ(get_current(&ours), 0);
    EXPECT_NE(ours, primary);
    EXPECT_NE(ours, nullptr);
  });
  Context now = nullptr;
  EXPECT_EQ(get_current(&now), 0);
  EXPECT_EQ(now, primary);
}

TEST_F(Isolation, AThreadWithoutAContextStaysWithoutOne) {
  std::thread host([&] {
    on_thread([&] {
      auto device = open();
      ASSERT_NE(device, nullptr);
      multiply(*device);
    });
    Context now = primary;
    EXPECT_EQ(get_current(&now), 0);
    EXPECT_EQ(now, nullptr);
  });
  host.join();
}

TEST_F(Isolation, ACaptureOfTheHostInGlobalModeIsNotBroken) {
  auto* create = driver_function<Result(StreamRef*, unsigned)>(driver, "cuStreamCreate");
  auto* begin = driver_function<Result(StreamRef, int)>(driver, "cuStreamBeginCapture_v2");
  auto* end = driver_function<Result(StreamRef, void**)>(driver, "cuStreamEndCapture");
  auto* destroy = driver_function<Result(void*)>(driver, "cuGraphDestroy");
  StreamRef stream = nullptr;
  ASSERT_EQ(create(&stream, 1), 0);
  ASSERT_EQ(begin(stream, 0), 0);  // CU_STREAM_CAPTURE_MODE_GLOBAL

  on_thread([&] {
    auto device = open();
    ASSERT_NE(device, nullptr);
    multiply(*device);
    device.reset();
  });

  void* graph = nullptr;
  ASSERT_EQ(end(stream, &graph), 0) << "the capture was invalidated";
  ASSERT_NE(graph, nullptr);
  EXPECT_EQ(destroy(graph), 0);
}

TEST_F(Isolation, WorksOnAfterTheHostHasResetItsDevice) {
  std::atomic<int> turn{0};
  std::thread worker([&] {
    auto device = open();
    if (device != nullptr) multiply(*device);
    turn = 1;
    while (turn != 2) std::this_thread::yield();
    if (device != nullptr) multiply(*device);
  });
  while (turn != 1) std::this_thread::yield();
  EXPECT_EQ(reset(0), 0);
  turn = 2;
  worker.join();
}

TEST_F(Isolation, TheHostWorksOnAfterOurDeviceIsClosed) {
  DevicePtr memory = 0;
  ASSERT_EQ(driver.table->mem_alloc(&memory, 4096), 0);
  on_thread([&] {
    auto device = open();
    ASSERT_NE(device, nullptr);
    multiply(*device);
  });
  EXPECT_EQ(driver.table->mem_free(memory), 0);
}

TEST_F(Isolation, MemoryThatTheHostPinnedIsKnownAndCopiedFrom) {
  auto* host_alloc = driver_function<Result(void**, std::size_t, unsigned)>(driver, "cuMemHostAlloc");
  auto* host_free = driver_function<Result(void*)>(driver, "cuMemFreeHost");
  auto* managed_alloc =
      driver_function<Result(DevicePtr*, std::size_t, unsigned)>(driver, "cuMemAllocManaged");
  constexpr std::size_t kBytes = 1 << 20;
  constexpr std::size_t kMiddle = kBytes / 4;

  void* pinned = nullptr;
  ASSERT_EQ(host_alloc(&pinned, kBytes, 0), 0);
  DevicePtr managed = 0, on_device = 0;
  ASSERT_EQ(managed_alloc(&managed, kBytes, 1), 0);
  ASSERT_EQ(driver.table->mem_alloc(&on_device, kBytes), 0);
  // Registered in its middle half alone.
  auto* mapped =
      static_cast<char*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(mapped, MAP_FAILED);
  ASSERT_EQ(driver.table->mem_host_register(mapped + kMiddle, kBytes / 2, 0), 0);
  std::vector<char> ordinary(kBytes);

  on_thread([&] {
    auto device = open();
    ASSERT_NE(device, nullptr);
    auto* alloc = static_cast<char*>(pinned);
    EXPECT_EQ(device->classify(alloc, 100, 4096, 256), HostMemory::pinned);
    EXPECT_EQ(device->classify(alloc + 12, 1000, 1000, 10), HostMemory::pinned) << "from its middle";
    EXPECT_EQ(device->classify(alloc, 4096, 4096, 256), HostMemory::pinned) << "to its last byte";

    EXPECT_EQ(device->classify(mapped + kMiddle, 4096, 4096, kBytes / 2 / 4096), HostMemory::pinned);
    EXPECT_EQ(device->classify(mapped + kMiddle + 4100, 8, 64, 100), HostMemory::pinned);
    EXPECT_EQ(device->classify(mapped + kMiddle + 4096, 4096, 4096, kBytes / 2 / 4096), HostMemory::pageable)
        << "runs beyond the registration";
    EXPECT_EQ(device->classify(mapped + kMiddle - 4096, 4096, 4096, 4), HostMemory::pageable)
        << "begins before it";
    EXPECT_EQ(device->classify(mapped, 4, 4096, 1), HostMemory::pageable);

    EXPECT_EQ(device->classify(reinterpret_cast<void*>(managed), 4096, 4096, 256), HostMemory::pinned);
    EXPECT_EQ(device->classify(reinterpret_cast<void*>(on_device), 64, 64, 1), HostMemory::device);
    EXPECT_EQ(device->classify(ordinary.data(), 64, 64, 1), HostMemory::pageable);
    int on_stack = 0;
    EXPECT_EQ(device->classify(&on_stack, sizeof(on_stack), 64, 1), HostMemory::pageable);
    EXPECT_EQ(device->classify(nullptr, 64, 64, 1), HostMemory::pageable);
    EXPECT_EQ(device->classify(alloc, 64, SIZE_MAX / 2, 8), HostMemory::pageable) << "a span that wraps";

    // Copies from each kind that counts as pinned, there and back.
    for (char* source : {alloc, mapped + kMiddle, reinterpret_cast<char*>(managed)}) {
      for (int i = 0; i < 3000; ++i) source[i] = static_cast<char>(i * 7);
      device::DevicePointer there = 0;
      ASSERT_TRUE(device->allocate(8192, there).ok());
      ASSERT_TRUE(device->copy_h2d(device::Stream::h2d, {source, 300, there, 512, 100, 10}).ok());
      ASSERT_TRUE(device->drain(observe::now_ns() + 10'000'000'000).ok());
      std::memset(source, 0, 3000);
      ASSERT_TRUE(device->copy_d2h(device::Stream::d2h, {source, 300, there, 512, 100, 10}).ok());
      ASSERT_TRUE(device->drain(observe::now_ns() + 10'000'000'000).ok());
      for (int i = 0; i < 3000; ++i) {
        ASSERT_EQ(source[i], i % 300 < 100 ? static_cast<char>(i * 7) : 0) << i;
      }
      ASSERT_TRUE(device->release(there).ok());
    }
  });

  EXPECT_EQ(driver.table->mem_host_unregister(mapped + kMiddle), 0) << "the program's own unregister";
  EXPECT_EQ(munmap(mapped, kBytes), 0);
  EXPECT_EQ(driver.table->mem_free(on_device), 0);
  EXPECT_EQ(driver.table->mem_free(managed), 0);
  EXPECT_EQ(host_free(pinned), 0);
}

}  // namespace
}  // namespace gemmhoist::test
