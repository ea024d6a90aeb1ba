#include "device/cuda/driver_table.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>

#include "device/cuda/result_status.hpp"
#include "fake_driver.hpp"
#include "fault_table.hpp"

namespace gemmhoist::device::cuda {
namespace {

using test::FakeDriver;

TEST(DriverTable, HasEveryEntryOfTheStructFilledAndNoSymbolTwice) {
  DriverTable table;
  ASSERT_TRUE(fill_table(table, FakeDriver::load().library(), os::find_symbol).ok());
  std::set<std::string> symbols;
  std::size_t entries = 0;
  for_each_entry([&](auto member, const char* symbol, bool) {
    EXPECT_NE(table.*member, nullptr) << symbol;
    EXPECT_TRUE(symbols.insert(symbol).second) << symbol;
    ++entries;
  });
  EXPECT_EQ(entries * sizeof(void*), sizeof(DriverTable));
}

const char* missing_symbol = "";
void* resolve_all_but_one(void* library, const char* symbol) {
  return std::strcmp(symbol, missing_symbol) == 0 ? nullptr : os::find_symbol(library, symbol);
}

TEST(DriverTable, IsUnavailableWithoutAnyOneOfItsSymbolsAndNamesIt) {
  for_each_entry([](auto member, const char* symbol, bool required) {
    missing_symbol = symbol;
    DriverTable table;
    const Status status = fill_table(table, FakeDriver::load().library(), resolve_all_but_one);
    EXPECT_EQ(table.*member, nullptr);
    EXPECT_EQ(status.ok(), !required) << symbol;
    if (required) {
      EXPECT_EQ(status.code(), StatusCode::unavailable);
      EXPECT_STREQ(status.what(), symbol);
    }
  });
}

TEST(DriverTable, OfTheProcessIsTheLibraryBySoname) {
  FakeDriver& fake = FakeDriver::load();
  Status status;
  const DriverTable* table = driver(status);
  ASSERT_NE(table, nullptr) << status.what();
  EXPECT_EQ(table->init, fake.table.init);
  EXPECT_EQ(driver(status), table);
  EXPECT_EQ(driver_if_loaded(), table);
}

TEST(FaultTable, WrapsEveryEntry) {
  const DriverTable& table = test::fault_table(FakeDriver::load().table);
  for_each_entry([&](auto member, const char* symbol, bool) {
    EXPECT_NE(table.*member, nullptr) << symbol;
    EXPECT_NE(table.*member, FakeDriver::load().table.*member) << symbol;
  });
}

TEST(ResultStatus, TellsAbsentFromBrokenByPhase) {
  const auto opening = [](Result code) { return to_status(code, "f", Phase::opening).code(); };
  const auto running = [](Result code) { return to_status(code, "f", Phase::running).code(); };

  EXPECT_EQ(opening(result::success), StatusCode::ok);
  EXPECT_EQ(running(result::success), StatusCode::ok);
  EXPECT_EQ(opening(result::out_of_memory), StatusCode::out_of_memory);
  EXPECT_EQ(running(result::out_of_memory), StatusCode::out_of_memory);

  for (const Result code :
       {result::no_device, result::invalid_device, result::device_unavailable, result::stub_library,
        result::system_driver_mismatch, result::compat_not_supported, result::no_binary_for_gpu,
        result::invalid_ptx, result::unsupported_ptx_version, result::jit_compiler_not_found,
        result::operating_system, result::not_permitted, result::device_not_licensed, result::invalid_image,
        result::unknown}) {
    EXPECT_EQ(opening(code), StatusCode::unavailable) << code;
  }
  for (const Result code :
       {result::illegal_address, result::launch_failed, result::ecc_uncorrectable,
        result::hardware_stack_error, result::context_is_destroyed, result::device_unavailable,
        result::deinitialized, result::launch_timeout, result::illegal_instruction,
        result::misaligned_address, result::invalid_address_space, result::invalid_pc, result::device_assert,
        result::nvlink_uncorrectable, result::unknown, result::mps_client_terminated}) {
    EXPECT_EQ(running(code), StatusCode::device_lost) << code;
  }
  for (const Result code : {result::invalid_value, result::invalid_handle, result::launch_out_of_resources,
                            result::not_supported, 12345}) {
    EXPECT_EQ(running(code), StatusCode::device_error) << code;
  }
  EXPECT_EQ(to_status(result::launch_failed, "cuLaunchKernel", Phase::running).native(), 719);
  EXPECT_STREQ(to_status(result::launch_failed, "cuLaunchKernel", Phase::running).what(), "cuLaunchKernel");
}

}  // namespace
}  // namespace gemmhoist::device::cuda
