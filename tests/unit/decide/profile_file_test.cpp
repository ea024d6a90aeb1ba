#include "decide/profile_file.hpp"

#include <gtest/gtest.h>

#include <clocale>
#include <random>
#include <sstream>
#include <string>

namespace gemmhoist::decide {
namespace {

constexpr std::string_view kMachine = "NVIDIA H200, driver 580.65, 16 threads";

std::string print(const MachineProfile& profile, std::string_view machine = kMachine) {
  char text[kProfileTextBytes];
  return {text, print_profile(profile, machine, text)};
}

MachineProfile random_profile(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<> uniform(1e-9, 1);
  MachineProfile p;
  p.h2d = {uniform(random), uniform(random) * 1e11};
  p.d2h = {uniform(random), uniform(random) * 1e11};
  p.host_copy_bytes_per_s = uniform(random) * 1e11;
  p.kernel_flops_per_s = uniform(random) * 1e14;
  p.bf16x6_flops_per_s = uniform(random) * 1e14;
  p.tf32_flops_per_s = uniform(random) * 1e15;
  p.call_fixed_s = uniform(random) / 3;
  p.start_s = uniform(random);
  p.end_s = 0;
  p.sm_count = static_cast<std::int32_t>(random() % 200);
  p.host_threads = 1 + static_cast<std::int32_t>(random() % 200);
  p.measured = random() % 2 != 0;
  for (auto& row : p.cpu.flops_per_s)
    for (double& rate : row) rate = random() % 3 != 0 ? 0 : uniform(random) * 1e12;
  return p;
}

bool same(const MachineProfile& x, const MachineProfile& y) {
  return x.h2d.latency_s == y.h2d.latency_s && x.h2d.bytes_per_s == y.h2d.bytes_per_s &&
         x.d2h.latency_s == y.d2h.latency_s && x.d2h.bytes_per_s == y.d2h.bytes_per_s &&
         x.host_copy_bytes_per_s == y.host_copy_bytes_per_s && x.kernel_flops_per_s == y.kernel_flops_per_s &&
         x.bf16x6_flops_per_s == y.bf16x6_flops_per_s && x.tf32_flops_per_s == y.tf32_flops_per_s &&
         x.call_fixed_s == y.call_fixed_s && x.start_s == y.start_s && x.end_s == y.end_s &&
         x.sm_count == y.sm_count && x.host_threads == y.host_threads && x.measured == y.measured &&
         x.cpu.flops_per_s == y.cpu.flops_per_s;
}

TEST(ProfileFile, ComesBackBitForBit) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const MachineProfile written = random_profile(seed);
    MachineProfile read;
    ASSERT_TRUE(parse_profile(print(written), kMachine, read)) << print(written);
    ASSERT_TRUE(same(written, read)) << print(written);
  }
}

TEST(ProfileFile, AFullTableFits) {
  MachineProfile full = random_profile(1);
  for (auto& row : full.cpu.flops_per_s) row.fill(1.2345678901234567e+123);
  MachineProfile read;
  const std::string machine(256, 'x');
  EXPECT_TRUE(parse_profile(print(full, machine), machine, read));
}

TEST(ProfileFile, IsTheSameInEveryLocale) {
  const std::string before = print(random_profile(7));
  // A locale with a decimal comma, where the machine has one; the first that it has.
  for (const char* name : {"de_DE.UTF-8", "fr_FR.UTF-8", "C.UTF-8"})
    if (std::setlocale(LC_ALL, name) != nullptr) break;
  MachineProfile read;
  EXPECT_EQ(print(random_profile(7)), before);
  EXPECT_TRUE(parse_profile(before, kMachine, read));
  EXPECT_TRUE(same(read, random_profile(7)));
  std::setlocale(LC_ALL, "C");
}

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), with);
}

TEST(ProfileFile, RejectsWhatIsNotItsOwn) {
  MachineProfile p;
  p.sm_count = 132;
  p.cpu.flops_per_s[20][2] = 5e11;
  const std::string good = print(p);
  const std::string bad[] = {
      "",
      "\n",
      "garbage\n",
      std::string(10000, '='),
      replaced(good, "gemmhoist_profile = 1", "gemmhoist_profile = 2"),
      replaced(good, "H200", "H100"),
      replaced(good, "sm_count = 132\n", ""),
      replaced(good, "sm_count = 132\n", "sm_count = 132\nsm_count = 132\n"),
      replaced(good, "sm_count = 132", "sm_count = 132.5"),
      replaced(good, "sm_count = 132", "sm_count = 1e12"),
      replaced(good, "sm_count = 132", "sm_count = nan"),
      replaced(good, "sm_count = 132", "sm_count = 132 "),
      replaced(good, "sm_count = 132", "sm_count = 0x84"),
      replaced(good, "sm_count = 132", "sm_counts = 132"),
      replaced(good, "sm_count = 132", "sm_count=132"),
      replaced(good, "start_s = 0.4", "start_s = -0.4"),
      replaced(good, "start_s = 0.4", "start_s = -0"),
      replaced(good, "start_s = 0.4", "start_s = inf"),
      replaced(good, "start_s = 0.4", "start_s = 1e999"),
      replaced(good, "start_s = 0.4", "start_s = 0,4"),
      replaced(good, "start_s = 0.4", "start_s = "),
      replaced(good, "host_threads = 1", "host_threads = 0"),
      replaced(good, "cpu_flops_per_s.20.2", "cpu_flops_per_s.32.2"),
      replaced(good, "cpu_flops_per_s.20.2", "cpu_flops_per_s.20.3"),
      replaced(good, "cpu_flops_per_s.20.2", "cpu_flops_per_s.-1.2"),
      replaced(good, "cpu_flops_per_s.20.2", "cpu_flops_per_s.20"),
      replaced(good, "5e+11", "0"),
      replaced(good, "5e+11", "-5e+11"),
      replaced(good, "5e+11\n", "5e+11\ncpu_flops_per_s.20.2 = 5e+11\n"),
      good + "more\n",
      good + "x",
      good.substr(0, good.size() - 1),
  };
  MachineProfile untouched = random_profile(3);
  for (const std::string& text : bad) {
    EXPECT_FALSE(parse_profile(text, kMachine, untouched)) << text;
    EXPECT_TRUE(same(untouched, random_profile(3)));
  }
  MachineProfile read;
  EXPECT_TRUE(parse_profile(good, kMachine, read));
  EXPECT_FALSE(parse_profile(good, "another", read));
}

// What a version without the faster precisions has saved, CPU rates that took hours to learn among it, lasts.
TEST(ProfileFile, OfAVersionWithoutTheFasterPrecisionsIsRead) {
  MachineProfile saved = random_profile(4);
  std::string text;
  std::istringstream lines(print(saved));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("bf16x6_flops_per_s") && !line.starts_with("tf32_flops_per_s")) text += line + '\n';
  }
  ASSERT_LT(text.size(), print(saved).size());
  MachineProfile read = random_profile(5);
  ASSERT_TRUE(parse_profile(text, kMachine, read));
  saved.bf16x6_flops_per_s = saved.tf32_flops_per_s = 0;  // not known, until they are measured
  EXPECT_TRUE(same(saved, read));
}

TEST(ProfileFile, SurvivesEveryTruncationAndMutation) {
  const std::string good = print(random_profile(11));
  MachineProfile read;
  for (std::size_t length = 0; length < good.size(); ++length) {
    const std::string_view start(good.data(), length);
    // A cut between two lines of CPU rates is a whole profile with fewer rates; every other is none.
    if (parse_profile(start, kMachine, read)) {
      EXPECT_EQ(start.back(), '\n');
    }
  }
  std::mt19937_64 random(5);
  for (int i = 0; i < 20000; ++i) {
    std::string text = good;
    text[random() % text.size()] = static_cast<char>(random());
    if (!parse_profile(text, kMachine, read)) continue;
    EXPECT_TRUE(std::isfinite(read.start_s) && read.start_s >= 0 && read.h2d.bytes_per_s > 0) << text;
  }
}

TEST(ProfileFile, PrintsNothingRatherThanHalf) {
  char small[100];
  EXPECT_EQ(print_profile(MachineProfile{}, kMachine, small), 0u);
  char text[kProfileTextBytes];
  EXPECT_EQ(print_profile(MachineProfile{}, "", text), 0u);
  EXPECT_EQ(print_profile(MachineProfile{}, "two\nlines", text), 0u);
  EXPECT_EQ(print_profile(MachineProfile{}, std::string(257, 'x'), text), 0u);
}

}  // namespace
}  // namespace gemmhoist::decide
