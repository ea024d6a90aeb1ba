#include "device/cuda/plausible.hpp"
#include "device/cuda/result_status.hpp"
#include "driver_under_test.hpp"

namespace gemmhoist::test {

// The machine's driver, where it has one that our code runs on and a device that we may use.
DriverUnderTest driver_under_test() {
  using device::cuda::DriverTable;
  DriverUnderTest driver;
  driver.registry = kernels::all();
  driver.images = kernels::images();
  driver.big = {1500, 1300, 256};
  Status status;
  const DriverTable* table = device::cuda::driver(status);
  int version = 0, count = 0;
  if (driver.images.empty()) {
    driver.why_not = "no GPU: built without kernels";
  } else if (table == nullptr) {
    driver.why_not = std::string("no GPU: ") + status.what();
  } else if (const auto code = table->init(0); code != 0) {
    driver.why_not = "no GPU: cuInit answers " + std::to_string(code);
  } else if (table->driver_get_version(&version) != 0 || version < device::cuda::kOldestDriver) {
    driver.why_not = "no GPU: driver version " + std::to_string(version);
  } else if (table->device_get_count(&count) != 0 || count == 0) {
    driver.why_not = "no GPU: the driver counts none";
  } else {
    driver.table = table;
    driver.library = os::load_library("libcuda.so.1");
  }
  return driver;
}

}  // namespace gemmhoist::test
