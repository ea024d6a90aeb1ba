#include "driver_under_test.hpp"
#include "fake_driver.hpp"

namespace gemmhoist::test {

DriverUnderTest driver_under_test() {
  static const kernels::Image images[] = {{"sm_90a", "any kernel", 11, 90, 0}};
  FakeDriver& fake = FakeDriver::load();
  fake.reset();
  DriverUnderTest driver;
  driver.table = &fake.table;
  driver.library = fake.library();
  driver.registry = kernels::known();
  driver.images = images;
  driver.big = {1030, 520, 20};
  return driver;
}

}  // namespace gemmhoist::test
