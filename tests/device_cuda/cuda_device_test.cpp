// The CUDA device on the fake driver: what it asks of the driver, in which order, and what it makes of the
// answers.
#include "device/cuda/cuda_device.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "device/cuda/result_status.hpp"
#include "device_product.hpp"
#include "driver_under_test.hpp"
#include "fake_driver.hpp"

namespace gemmhoist::device::cuda {
namespace {

using test::DeviceProduct;
using test::FakeDriver;
using test::first_of;

class CudaDeviceTest : public ::testing::Test {
 protected:
  std::unique_ptr<Device> open(std::int32_t ordinal = 0) {
    return open_device(*driver.table, ordinal, driver.registry, driver.images, status);
  }
  Status multiply(Device& device) {
    return DeviceProduct(33, 17, 20)
        .run(device, *first_of(device, KernelRole::gemm), *first_of(device, KernelRole::transpose), 1.0f);
  }
  static std::int64_t soon() { return observe::now_ns() + 1'000'000'000; }

  test::DriverUnderTest driver = test::driver_under_test();
  FakeDriver& fake = FakeDriver::load();
  Status status;
};

// --- opening ---

TEST_F(CudaDeviceTest, OpensWithTheFactsOfTheDevice) {
  auto device = open();
  ASSERT_NE(device, nullptr) << status.what();
  EXPECT_STREQ(device->properties().name, "Fake GPU");
  EXPECT_EQ(device->properties().arch, 90);
  EXPECT_EQ(device->properties().sm_count, 132);
  EXPECT_EQ(device->properties().memory_bytes, std::size_t{512} << 20);
  EXPECT_EQ(device->kernels().size(), driver.registry.size());
  std::size_t free_bytes = 0;
  EXPECT_TRUE(device->free_memory(free_bytes).ok());
  EXPECT_EQ(free_bytes, device->properties().memory_bytes);
}

TEST_F(CudaDeviceTest, RelaxesTheCaptureModeBeforeAnythingThatACaptureForbids) {
  auto device = open();
  ASSERT_NE(device, nullptr);
  const auto log = fake.log();
  const auto place = [&](const char* name) { return std::find(log.begin(), log.end(), name) - log.begin(); };
  EXPECT_LT(place("cuThreadExchangeStreamCaptureMode"), place("cuCtxCreate_v2"));
  EXPECT_LT(place("cuCtxCreate_v2"), place("cuModuleLoadData"));
  EXPECT_EQ(std::count(log.begin(), log.end(), "cuDevicePrimaryCtxRetain"), 0);
  EXPECT_EQ(std::count(log.begin(), log.end(), "cuStreamCreateWithPriority"), kStreams);
  EXPECT_EQ(fake.live("blocking streams"), 0) << "streams that the host's default stream would wait for";
}

TEST_F(CudaDeviceTest, GivesEverythingBackWhenClosed) {
  {
    auto device = open();
    ASSERT_NE(device, nullptr);
    DevicePointer pointer = 0;
    ASSERT_TRUE(device->allocate(1000, pointer).ok());
    ASSERT_TRUE(device->record(3, Stream::d2h).ok());
    EXPECT_EQ(fake.live("contexts"), 1);
  }
  for (const char* what : {"contexts", "allocations", "registrations", "modules", "streams", "events"}) {
    EXPECT_EQ(fake.live(what), 0) << what;
  }
}

TEST_F(CudaDeviceTest, ADriverOlderThanTwelveIsAbsent) {
  fake.set("version", 11080);
  EXPECT_EQ(open(), nullptr);
  EXPECT_EQ(status.code(), StatusCode::unavailable);
  EXPECT_EQ(fake.log().back(), "cuDriverGetVersion");
  fake.set("version", 12000);
  EXPECT_NE(open(), nullptr);
}

TEST_F(CudaDeviceTest, ADeviceThatIsHiddenForbiddenOrTakenIsAbsent) {
  fake.set("devices", 0);  // CUDA_VISIBLE_DEVICES=99 or a UUID of nobody
  EXPECT_EQ(open(), nullptr);
  EXPECT_EQ(status.code(), StatusCode::unavailable);
  EXPECT_EQ(status.native(), result::no_device);

  fake.set("devices", 1);
  EXPECT_EQ(open(1), nullptr);
  EXPECT_EQ(status.code(), StatusCode::unavailable);
  EXPECT_EQ(status.native(), result::invalid_device);

  fake.set("mode", kComputeModeProhibited);
  EXPECT_EQ(open(), nullptr);
  EXPECT_EQ(status.code(), StatusCode::unavailable);

  fake.set("mode", 3);  // exclusive, and another process has it
  fake.fail_function("cuCtxCreate_v2", 1, result::device_unavailable, 0);
  EXPECT_EQ(open(), nullptr);
  EXPECT_EQ(status.code(), StatusCode::unavailable);
  EXPECT_NE(open(), nullptr) << "exclusive, and free";
}

TEST_F(CudaDeviceTest, NoRoomForAContextMayPass) {
  fake.fail_function("cuCtxCreate_v2", 1, result::out_of_memory, 0);
  EXPECT_EQ(open(), nullptr);
  EXPECT_EQ(status.code(), StatusCode::out_of_memory);
  EXPECT_NE(open(), nullptr);
}

TEST_F(CudaDeviceTest, AnOpeningThatFailsAnywhereLeavesNothingBehind) {
  ASSERT_NE(open(), nullptr);
  const long calls = fake.calls();
  for (long k = 1; k < calls; ++k) {
    for (const Result code :
         {result::out_of_memory, result::unknown, result::launch_failed, result::invalid_value}) {
      fake.reset();
      fake.fail(k, code, 0);
      auto device = open();
      const bool reached = fake.calls() >= k;
      if (device == nullptr) {
        EXPECT_FALSE(status.ok());
        EXPECT_EQ(status.code() == StatusCode::out_of_memory, code == result::out_of_memory) << k;
      }
      // What may fail and still open: the closing of the first device, which the count includes.
      EXPECT_TRUE(device == nullptr || !reached ||
                  fake.log()[static_cast<std::size_t>(k - 1)] == "cuStreamQuery" ||
                  fake.log()[static_cast<std::size_t>(k - 1)] == "cuCtxDestroy_v2")
          << k << ' ' << code;
      device.reset();
      EXPECT_EQ(fake.live("contexts"), 0) << k << ' ' << code;
    }
  }
}

// --- work ---

TEST_F(CudaDeviceTest, MakesAProductWithEveryKernel) {
  auto device = open();
  ASSERT_NE(device, nullptr);
  for (const KernelDescriptor& kernel : device->kernels()) {
    if (kernel.role != KernelRole::gemm) continue;
    DeviceProduct product(130, 67, 45);
    ASSERT_TRUE(product.run(*device, kernel, *first_of(*device, KernelRole::transpose), -0.5f).ok())
        << kernel.name;
    EXPECT_LE(product.worst_error(-0.5f), 1.0) << kernel.name;
    EXPECT_GE(product.kernel_seconds(), 0.0);
  }
  EXPECT_EQ(fake.live("allocations"), 0);
  EXPECT_EQ(fake.live("registrations"), 0);
}

TEST_F(CudaDeviceTest, CopiesWithoutGapsAreOneRunAndOthersKeepTheGaps) {
  auto device = open();
  ASSERT_NE(device, nullptr);
  DevicePointer there = 0;
  ASSERT_TRUE(device->allocate(4096, there).ok());
  std::vector<char> host(2048, 'x');
  EXPECT_TRUE(device->copy_h2d(Stream::h2d, {host.data(), 128, there, 128, 128, 8}).ok());
  EXPECT_EQ(fake.log().back(), "cuMemcpyHtoDAsync_v2");
  EXPECT_TRUE(device->copy_h2d(Stream::h2d, {host.data(), 999, there, 77777, 64, 1}).ok());
  EXPECT_EQ(fake.log().back(), "cuMemcpyHtoDAsync_v2");
  EXPECT_TRUE(device->copy_d2h(Stream::d2h, {host.data(), 128, there, 128, 128, 8}).ok());
  EXPECT_EQ(fake.log().back(), "cuMemcpyDtoHAsync_v2");

  host.assign(2048, 'y');
  EXPECT_TRUE(device->copy_d2h(Stream::d2h, {host.data(), 200, there, 128, 100, 8}).ok());
  EXPECT_EQ(fake.log().back(), "cuMemcpy2DAsync_v2");
  for (std::size_t i = 0; i < host.size(); ++i) {
    const bool copied = i / 200 < 8 && i % 200 < 100;
    ASSERT_EQ(host[i], copied ? 'x' : 'y') << i;
  }

  const long before = fake.calls();
  EXPECT_TRUE(device->copy_h2d(Stream::h2d, {host.data(), 128, there, 128, 0, 8}).ok());
  EXPECT_TRUE(device->copy_h2d(Stream::h2d, {host.data(), 128, there, 128, 8, 0}).ok());
  EXPECT_EQ(fake.calls(), before) << "nothing to copy, nothing asked";
}

TEST_F(CudaDeviceTest, PitchesBeyondTheCopyEnginesLimitGoRowByRow) {
  fake.set("pitch", 256);
  auto device = open();
  ASSERT_NE(device, nullptr);
  DevicePointer there = 0;
  ASSERT_TRUE(device->allocate(4096, there).ok());
  std::vector<char> host(2100);
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<char>(i);
  const std::vector<char> original = host;
  EXPECT_TRUE(device->copy_h2d(Stream::h2d, {host.data(), 300, there, 128, 100, 7}).ok());
  host.assign(host.size(), 0);
  EXPECT_TRUE(device->copy_d2h(Stream::d2h, {host.data(), 300, there, 128, 100, 7}).ok());
  for (std::size_t i = 0; i < host.size(); ++i) ASSERT_EQ(host[i], i % 300 < 100 ? original[i] : 0) << i;
  EXPECT_TRUE(device->fill_zero(Stream::h2d, there, 512, 64, 8).ok());
}

TEST_F(CudaDeviceTest, FillsRowsAndLeavesTheGaps) {
  auto device = open();
  ASSERT_NE(device, nullptr);
  DevicePointer there = 0;
  ASSERT_TRUE(device->allocate(1024, there).ok());
  std::vector<unsigned char> host(1024, 0xab);
  const Copy2D whole{host.data(), 1024, there, 1024, 1024, 1};
  for (const std::size_t width : {std::size_t{100}, std::size_t{128}}) {
    host.assign(1024, 0xab);
    ASSERT_TRUE(device->copy_h2d(Stream::h2d, whole).ok());
    ASSERT_TRUE(device->fill_zero(Stream::prepare, there, 128, width, 5).ok());
    ASSERT_TRUE(device->copy_d2h(Stream::d2h, whole).ok());
    for (std::size_t i = 0; i < host.size(); ++i) {
      ASSERT_EQ(host[i], i / 128 < 5 && i % 128 < width ? 0 : 0xab) << i;
    }
  }
}

TEST_F(CudaDeviceTest, MemoryThatIsNotThereIsNoLoss) {
  auto device = open();
  ASSERT_NE(device, nullptr);
  DevicePointer pointer = 1;
  EXPECT_EQ(device->allocate(std::size_t{1} << 40, pointer).code(), StatusCode::out_of_memory);
  EXPECT_EQ(pointer, 0u);
  EXPECT_TRUE(multiply(*device).ok());
}

TEST_F(CudaDeviceTest, ClassifiesByTheBufferWhereTheDriverTellsNoRange) {
  fake.set("ranges", 0);
  auto device = open();
  ASSERT_NE(device, nullptr);
  std::vector<char> memory(4096);
  ASSERT_TRUE(device->pin(memory.data(), 2048).ok());
  ASSERT_TRUE(device->pin(memory.data() + 2048, 1024).ok());
  EXPECT_EQ(device->classify(memory.data() + 100, 8, 16, 100), HostMemory::pinned);
  EXPECT_EQ(device->classify(memory.data() + 2000, 8, 16, 20), HostMemory::pageable)
      << "over the seam of two";
  EXPECT_EQ(device->classify(memory.data() + 3000, 8, 16, 20), HostMemory::pageable);
  EXPECT_TRUE(device->unpin(memory.data()).ok());
  EXPECT_EQ(device->classify(memory.data() + 100, 8, 16, 100), HostMemory::pageable);
}

TEST_F(CudaDeviceTest, APointerThatTheDriverRefusesIsPageableAndNoLoss) {
  auto device = open();
  ASSERT_NE(device, nullptr);
  int somewhere = 0;
  for (const Result code : {result::invalid_context, result::invalid_value}) {
    fake.fail(1, code, 0);
    EXPECT_EQ(device->classify(&somewhere, 4, 4, 1), HostMemory::pageable);
    EXPECT_TRUE(multiply(*device).ok());
  }
}

TEST_F(CudaDeviceTest, AnEventThatNobodyRecordedIsAMistakeNotAHang) {
  auto device = open();
  ASSERT_NE(device, nullptr);
  EventState state = EventState::reached;
  EXPECT_EQ(device->query(5, state).code(), StatusCode::device_error);
  EXPECT_EQ(device->wait(Stream::d2h, 5).code(), StatusCode::device_error);
  ASSERT_TRUE(device->record(6, Stream::h2d).ok());
  EXPECT_EQ(device->query(5, state).code(), StatusCode::device_error);
  EXPECT_TRUE(device->query(6, state).ok());
  EXPECT_EQ(state, EventState::reached);
  EXPECT_EQ(device->record(0xffffffffu, Stream::h2d).code(), StatusCode::device_error);
}

TEST_F(CudaDeviceTest, AnUnknownKernelAndAnEmptyLaunchAreRefused) {
  auto device = open();
  ASSERT_NE(device, nullptr);
  KernelDescriptor stranger = *first_of(*device, KernelRole::gemm);
  stranger.name = "sgemm_of_nobody";
  GemmKernelParams params{};
  params.m = params.n = 1;
  EXPECT_EQ(device->launch(Stream::compute0, stranger, params).code(), StatusCode::unsupported);
  params.m = 0;
  EXPECT_EQ(device->launch(Stream::compute0, *first_of(*device, KernelRole::gemm), params).code(),
            StatusCode::unsupported);
}

// --- failing ---

TEST_F(CudaDeviceTest, DrainEndsAtItsDeadlineAndAHungDeviceDoesNotHangItsClosing) {
  auto device = open();
  ASSERT_NE(device, nullptr);
  fake.set("hang", 1);
  const std::int64_t begin = observe::now_ns();
  EXPECT_EQ(device->drain(begin + 50'000'000).code(), StatusCode::timed_out);
  EXPECT_GE(observe::now_ns() - begin, 50'000'000);
  EXPECT_LT(observe::now_ns() - begin, 1'000'000'000);
  ASSERT_TRUE(device->record(0, Stream::d2h).ok());
  EventState state = EventState::reached;
  EXPECT_TRUE(device->query(0, state).ok());
  EXPECT_EQ(state, EventState::pending);
  device.reset();  // bounded; the context stays to the end of the process
  EXPECT_EQ(fake.live("contexts"), 1);
  EXPECT_LT(observe::now_ns() - begin, 4'000'000'000);
}

TEST_F(CudaDeviceTest, AfterALossNothingIsAskedButTheContextsEnd) {
  auto device = open();
  ASSERT_NE(device, nullptr);
  ASSERT_TRUE(device->record(0, Stream::h2d).ok());
  fake.fail_function("cuMemAlloc_v2", 1, result::illegal_address, 1);
  DevicePointer pointer = 0;
  EXPECT_EQ(device->allocate(100, pointer).code(), StatusCode::device_lost);
  const long calls = fake.calls();

  char byte = 0;
  std::size_t bytes = 0;
  double seconds = 0;
  EventState state = EventState::pending;
  const KernelDescriptor& kernel = *first_of(*device, KernelRole::gemm);
  for (const Status& answer :
       {device->free_memory(bytes), device->allocate(1, pointer), device->release(1), device->pin(&byte, 1),
        device->unpin(&byte), device->copy_h2d(Stream::h2d, {&byte, 1, 1, 1, 1, 1}),
        device->copy_d2h(Stream::d2h, {&byte, 1, 1, 1, 1, 1}), device->fill_zero(Stream::h2d, 1, 4, 4, 1),
        device->launch(Stream::compute0, kernel, GemmKernelParams{}),
        device->launch(Stream::compute0, kernel, TransposeKernelParams{}), device->record(0, Stream::h2d),
        device->wait(Stream::h2d, 0), device->query(0, state), device->elapsed_seconds(0, 0, seconds),
        device->drain(soon())}) {
    EXPECT_EQ(answer.code(), StatusCode::device_lost);
    EXPECT_EQ(answer.native(), result::illegal_address) << "the first cause";
  }
  EXPECT_EQ(device->classify(&byte, 1, 1, 1), HostMemory::pageable);
  EXPECT_EQ(fake.calls(), calls);
  device.reset();
  EXPECT_EQ(fake.calls(), calls + 1);
  EXPECT_EQ(fake.log().back(), "cuCtxDestroy_v2");
}

TEST_F(CudaDeviceTest, ADriverThatHasShutDownIsNotCalledAgain) {
  auto device = open();
  ASSERT_NE(device, nullptr);
  fake.fail(1, result::deinitialized, 1);
  EXPECT_EQ(device->drain(soon()).code(), StatusCode::device_lost);
  const long calls = fake.calls();
  device.reset();
  EXPECT_EQ(fake.calls(), calls);
}

// Every call of a whole product fails in turn: some status says so (no failure is swallowed) unless the call
// only gave something back; and a device that was not lost makes the next product right.
TEST_F(CudaDeviceTest, NoFailureIsSwallowedAndATransientOneLeavesTheDeviceGood) {
  auto device = open();
  ASSERT_NE(device, nullptr);
  ASSERT_TRUE(multiply(*device).ok());  // makes the events
  const long before = fake.calls();
  ASSERT_TRUE(multiply(*device).ok());
  const long calls = fake.calls() - before;
  const auto log = fake.log();
  const auto cleaning =
      std::find(log.begin() + before, log.end(), "cuMemFree_v2") - (log.begin() + before) - kStreams;
  for (long k = 1; k <= calls; ++k) {
    for (const Result code : {result::out_of_memory, result::invalid_value}) {
      fake.fail(k, code, 0);
      const Status answer = multiply(*device);
      EXPECT_EQ(answer.ok(), k > cleaning) << k << ' ' << log[static_cast<std::size_t>(before + k - 1)];
      EXPECT_TRUE(answer.ok() || answer.native() == code) << k;
      fake.fail(0, 0, 0);
      EXPECT_TRUE(multiply(*device).ok()) << k;
    }
  }
}

}  // namespace
}  // namespace gemmhoist::device::cuda
