#include "os/line.hpp"

#include <gtest/gtest.h>

#include <cfloat>
#include <clocale>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>

namespace gemmhoist::os {
namespace {

template <typename Build>
std::string built(Build build) {
  Line line;
  build(line);
  return line.c_str();
}

std::string fixed(std::int64_t value, int decimals) {
  return built([&](Line& line) { line.fixed(value, decimals); });
}
std::string milliseconds(double seconds) {
  return built([&](Line& line) { line.milliseconds(seconds); });
}
std::string real(float value) {
  return built([&](Line& line) { line.real(value); });
}
std::string json(const char* text) {
  return built([&](Line& line) { line.json(text); });
}

TEST(Line, Integers) {
  EXPECT_EQ(built([](Line& l) { l.integer(0).character(' ').integer(-7); }), "0 -7");
  EXPECT_EQ(built([](Line& l) { l.integer(std::numeric_limits<std::int64_t>::min()); }),
            "-9223372036854775808");
  EXPECT_EQ(built([](Line& l) { l.count(std::numeric_limits<std::uint64_t>::max()); }),
            "18446744073709551615");
}

TEST(Line, FixedPoint) {
  EXPECT_EQ(fixed(12500, 3), "12.5");
  EXPECT_EQ(fixed(12000, 3), "12");
  EXPECT_EQ(fixed(5, 6), "0.000005");
  EXPECT_EQ(fixed(-1005, 3), "-1.005");
  EXPECT_EQ(fixed(7, 0), "7");
}

TEST(Line, MillisecondsForPeopleHaveThreeDigits) {
  EXPECT_EQ(milliseconds(0.0078649), "7.86");
  EXPECT_EQ(milliseconds(0.118), "118");
  EXPECT_EQ(milliseconds(0.0312e-3), "0.0312");
  EXPECT_EQ(milliseconds(1.23456), "1235");  // whole milliseconds stay
  EXPECT_EQ(milliseconds(0.9996e-3), "1");
  EXPECT_EQ(milliseconds(0), "0");
  EXPECT_EQ(milliseconds(std::nan("")), "0");
  EXPECT_EQ(milliseconds(-1), "0");
  EXPECT_EQ(milliseconds(1e300), "1152921504607");
}

TEST(Line, ExactMilliseconds) {
  EXPECT_EQ(built([](Line& l) { l.exact_milliseconds(0.001234567); }), "1.234567");
}

TEST(Line, RealNamesEveryFloat) {
  EXPECT_EQ(real(0.0f), "0");
  EXPECT_EQ(real(-0.0f), "-0");
  EXPECT_EQ(real(1.0f), "1");
  EXPECT_EQ(real(-2.5f), "-2.5");
  EXPECT_EQ(real(1e9f), "1e9");
  EXPECT_EQ(real(0.001f), "0.00100000005");
  EXPECT_EQ(real(std::nanf("")), "null");
  EXPECT_EQ(real(-INFINITY), "null");
  std::mt19937 random(7);
  for (int i = 0; i < 200000; ++i) {
    const auto bits = static_cast<std::uint32_t>(random());
    float value;
    std::memcpy(&value, &bits, sizeof value);
    if (!std::isfinite(value)) continue;
    ASSERT_EQ(std::strtof(real(value).c_str(), nullptr), value) << real(value);
  }
  for (const float edge : {FLT_TRUE_MIN, FLT_MIN, FLT_MAX, 99999.9999f, 0.0001f, 0.00009999f})
    EXPECT_EQ(std::strtof(real(edge).c_str(), nullptr), edge) << real(edge);
}

TEST(Line, JsonEscapes) {
  EXPECT_EQ(json("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(json("tab\tnl\n\x01"), R"("tab\u0009nl\u000a\u0001")");
  EXPECT_EQ(json("gr\xC3\xB6\xC3\x9F"
                 "e"),
            "\"gr\xC3\xB6\xC3\x9F"
            "e\"");
  EXPECT_EQ(json("bad\xFF\xC3"), R"("bad\ufffd\ufffd")");
  EXPECT_EQ(json("\xED\xA0\x80"), R"("\ufffd\ufffd\ufffd")");  // a surrogate
}

TEST(Line, AStrangersTextStaysOnOneLine) {
  EXPECT_EQ(built([](Line& l) { l.quoted_value("a\nb\x7F", 10); }), "a?b?");
  EXPECT_EQ(built([](Line& l) { l.quoted_value("abcdef", 3); }), "abc...");
  EXPECT_EQ(built([](Line& l) { l.quoted_value("abc", 3); }), "abc");
}

TEST(Line, OverflowIsTold) {
  Line line;
  for (int i = 0; i < 799; ++i) line.character('x');
  EXPECT_FALSE(line.overflowed());
  line.character('y');
  EXPECT_TRUE(line.overflowed());
  EXPECT_EQ(std::strlen(line.c_str()), 799u);
  EXPECT_FALSE(line.append_to("/dev/null"));
}

// The reason why printf is not used. Where a locale with a decimal comma is installed, it is in force here.
TEST(Line, LocaleDoesNotMatter) {
  const char* comma = nullptr;
  for (const char* name : {"de_DE.UTF-8", "de_DE", "fr_FR.UTF-8", "nl_NL.UTF-8"})
    if (comma == nullptr) comma = std::setlocale(LC_ALL, name);
  EXPECT_EQ(milliseconds(0.0078649), "7.86");
  EXPECT_EQ(real(-2.5f), "-2.5");
  std::setlocale(LC_ALL, "C");
  if (comma == nullptr) GTEST_SKIP() << "no locale with a decimal comma is installed";
}

}  // namespace
}  // namespace gemmhoist::os
