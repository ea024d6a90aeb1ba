// The driver that a test runs on: the fake one in device_cuda_test, the machine's in gpu_tests. Tests of what
// both must do are compiled into both.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>

#include "device/cuda/cuda_device.hpp"
#include "device/cuda/driver_table.hpp"
#include "os/os.hpp"

namespace gemmhoist::test {

struct DriverUnderTest {
  const device::cuda::DriverTable* table = nullptr;  // null: none on this machine
  void* library = nullptr;
  std::span<const KernelDescriptor> registry;
  std::span<const kernels::Image> images;
  std::string why_not;
  struct {
    std::int64_t m, n, k;
  } big{};  // a product of several panels and tiles
};

// Defined once a test binary. Ready for a test: a fake driver is reset.
DriverUnderTest driver_under_test();

// A function of the driver that only a host program calls, by its exported name.
template <typename Signature>
Signature* driver_function(const DriverUnderTest& driver, const char* symbol) {
  auto* function = reinterpret_cast<Signature*>(os::find_symbol(driver.library, symbol));
  EXPECT_NE(function, nullptr) << symbol;
  return function;
}

// Runs `body` on a thread of its own, as the worker would, and waits for it.
inline void on_thread(const std::function<void()>& body) {
  std::thread thread(body);
  thread.join();
}

}  // namespace gemmhoist::test

#define SKIP_WITHOUT_DRIVER(driver) \
  if ((driver).table == nullptr) GTEST_SKIP() << (driver).why_not
