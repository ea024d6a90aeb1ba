#include "decide/decimal.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <random>
#include <string>

namespace gemmhoist::decide {
namespace {

std::string written(double x) {
  char text[kDecimalBytes];
  return {text, write_decimal(x, text)};
}

TEST(Decimal, LooksAsAPersonWouldWriteIt) {
  EXPECT_EQ(written(0), "0");
  EXPECT_EQ(written(1), "1");
  EXPECT_EQ(written(0.4), "0.4");
  EXPECT_EQ(written(132), "132");
  EXPECT_EQ(written(0.000125), "0.000125");
  EXPECT_EQ(written(7.5e-6), "7.5e-06");
  EXPECT_EQ(written(5e11), "5e+11");
  EXPECT_EQ(written(55.25), "55.25");
  EXPECT_EQ(written(std::numeric_limits<double>::max()), "1.7976931348623157e+308");
}

TEST(Decimal, EveryNumberComesBack) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200'000; ++i) {
    const double x = std::bit_cast<double>(random() >> 1);
    if (!std::isnormal(x)) continue;
    double read = 0;
    ASSERT_TRUE(read_decimal(written(x), read)) << written(x);
    ASSERT_EQ(read, x) << written(x);
    // To others it is the same number, or, where two are all but equally near, its neighbour.
    const std::string text = written(x);
    double standard = 0;
    std::from_chars(text.data(), text.data() + text.size(), standard);
    ASSERT_GE(standard, std::nextafter(x, 0)) << text;
    ASSERT_LE(standard, std::nextafter(x, HUGE_VAL)) << text;
  }
}

TEST(Decimal, RefusesWhatIsNoPlainNumber) {
  double x = 7;
  for (const char* text : {"",
                           ".",
                           "1.",
                           ".5",
                           "-1",
                           "+1",
                           " 1",
                           "1 ",
                           "1e",
                           "1e+",
                           "1e999",
                           "1e401",
                           "inf",
                           "nan",
                           "0x1",
                           "1,5",
                           "1.2.3",
                           "1e5.",
                           "12345678901234567890123456789",
                           "1f"}) {
    EXPECT_FALSE(read_decimal(text, x)) << text;
  }
  EXPECT_EQ(x, 7);
}

TEST(Decimal, WritesNothingPastItsRoom) {
  char text[4] = {'x', 'x', 'x', 'x'};
  EXPECT_EQ(write_decimal(1.25, {text, 3}), 0u);
  EXPECT_EQ(text[3], 'x');
  EXPECT_EQ(write_decimal(1.25, {text, 4}), 4u);
}

}  // namespace
}  // namespace gemmhoist::decide
