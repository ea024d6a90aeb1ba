#include "device/cuda/plausible.hpp"

#include <gtest/gtest.h>

#include "fake_driver.hpp"

namespace gemmhoist::device::cuda {
namespace {

TEST(Plausible, CudaVisibleDevicesThatHideEverything) {
  for (const char* value : {"", " ", "-1", "-1,0", ",0", " -1", "NoDevFiles"}) {
    EXPECT_TRUE(hides_all_devices(value)) << '"' << value << '"';
  }
}

TEST(Plausible, CudaVisibleDevicesThatTheDriverHasToJudge) {
  EXPECT_FALSE(hides_all_devices(nullptr));
  for (const char* value : {"0", "1,0", "99", "0,-1", "GPU-8932f937", "MIG-GPU-1/2/0", "bogus"}) {
    EXPECT_FALSE(hides_all_devices(value)) << '"' << value << '"';
  }
}

TEST(Plausible, ADriverThatTheProgramUsesAlreadyIsInSight) {
  test::FakeDriver::load();
  EXPECT_TRUE(driver_in_sight());
}

}  // namespace
}  // namespace gemmhoist::device::cuda
