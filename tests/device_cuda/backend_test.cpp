// The backend as dispatch sees it. Its answers are kept for the life of the process, so each question is
// asked in a child of its own.
#include "device/backend.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include "fake_driver.hpp"
#include "kernels/registry.hpp"

namespace gemmhoist::device {
namespace {

using ::testing::ExitedWithCode;

std::string selection() {
  std::int32_t ordinals[4] = {-1, -1, -1, -1};
  const int count = selected_devices(ordinals, 4);
  std::string text;
  for (int i = 0; i < count; ++i) text += std::to_string(ordinals[i]) + ";";
  return text;
}

[[noreturn]] void say(const std::string& text) {
  std::fprintf(stderr, "<%s>", text.c_str());
  std::exit(0);
}

TEST(Backend, IsCuda) {
  EXPECT_STREQ(backend_name(), "cuda");
}

TEST(Backend, SelectsTheDevicesNamed) {
  EXPECT_EXIT(say(selection()), ExitedWithCode(0), "<0;>") << "by default";
  const auto with = [](const char* list) {
    setenv("GEMMHOIST_DEVICES", list, 1);
    say(selection());
  };
  EXPECT_EXIT(with("2"), ExitedWithCode(0), "<2;>");
  EXPECT_EXIT(with("3,0"), ExitedWithCode(0), "<3;0;>");
  EXPECT_EXIT(with("0,1,2,3,4,5"), ExitedWithCode(0), "<0;1;2;3;>") << "as many as there is room for";
  EXPECT_EXIT(with("all"), ExitedWithCode(0), "<0;>") << "the driver has not been asked yet";
}

TEST(Backend, AllDevicesAreCountedOnceTheDriverIsUp) {
  const auto ask = [] {
    setenv("GEMMHOIST_DEVICES", "all", 1);
    setenv("FAKE_CUDA", "devices=3", 1);
    test::FakeDriver::load();
    Status status;
    const auto device = make_device(0, status);
    say(selection());
  };
  EXPECT_EXIT(ask(), ExitedWithCode(0), "<0;1;2;>");
}

TEST(Backend, IsPlausibleWhereADriverIsAndDevicesAreNotHidden) {
  const auto ask = [](const char* visible) {
    setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    test::FakeDriver::load();
    errno = 77;
    const bool plausible = backend_plausible();
    setenv("CUDA_VISIBLE_DEVICES", "-1", 1);
    say(std::string(plausible ? "yes" : "no") + (backend_plausible() == plausible ? " kept " : " changed ") +
        std::to_string(errno));
  };
  const char* with_code = kernels::images().empty() ? "<no kept 77>" : "<yes kept 77>";
  EXPECT_EXIT(ask("0"), ExitedWithCode(0), with_code);
  EXPECT_EXIT(ask(""), ExitedWithCode(0), "<no kept 77>");
  EXPECT_EXIT(ask("-1"), ExitedWithCode(0), "<no kept 77>");
}

TEST(Backend, ADriverThatIsNoUseIsAbsent) {
  const auto ask = [](const char* fake) {
    setenv("FAKE_CUDA", fake, 1);
    test::FakeDriver::load();
    Status status;
    const auto device = make_device(0, status);
    say(std::string(device == nullptr ? "none " : "one ") + to_string(status.code()));
  };
  EXPECT_EXIT(ask("version=11040"), ExitedWithCode(0), "<none unavailable>");
  EXPECT_EXIT(ask("init=100"), ExitedWithCode(0), "<none unavailable>");
  EXPECT_EXIT(ask("init=999"), ExitedWithCode(0), "<none unavailable>");
  EXPECT_EXIT(ask("devices=0"), ExitedWithCode(0), "<none unavailable>");
  EXPECT_EXIT(ask("mode=2"), ExitedWithCode(0), "<none unavailable>");
}

}  // namespace
}  // namespace gemmhoist::device
