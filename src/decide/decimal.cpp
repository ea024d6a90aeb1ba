#include "decide/decimal.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <system_error>

#include "core/powers.hpp"

namespace gemmhoist::decide {
namespace {

// Seventeen digits name a double with a margin of 2^-57 of it; products of at most ten roundings to the 64
// bits of a long double stay a hundred times below that.
static_assert(std::numeric_limits<long double>::digits >= 64);
constexpr int kDigits = 17;
constexpr int kMostExponent = 400;  // beyond any double, within any long double

long double power_of_ten(int exponent) noexcept {
  long double power = 1, square = 10;
  for (int rest = exponent < 0 ? -exponent : exponent; rest > 0; rest /= 2, square *= square)
    if (rest % 2 != 0) power *= square;
  return exponent < 0 ? 1 / power : power;
}

long double scaled(long double x, int exponent) noexcept {
  return exponent < 0 ? x / power_of_ten(-exponent) : x * power_of_ten(exponent);
}

double value_of(std::uint64_t digits, int exponent) noexcept {
  return static_cast<double>(scaled(static_cast<long double>(digits), exponent));
}

std::uint64_t whole_power_of_ten(int exponent) noexcept {
  std::uint64_t power = 1;
  for (; exponent > 0; --exponent) power *= 10;
  return power;
}

struct Decimal {
  std::uint64_t digits;
  int exponent;  // of the last digit
};

Decimal without_zeros(Decimal number) noexcept {
  for (; number.digits % 10 == 0; ++number.exponent) number.digits /= 10;
  return number;
}

Decimal shortest(double x) noexcept {
  // log10(2) = 0.30103; one too small at times.
  int first = static_cast<int>(static_cast<double>(exponent_of(x)) * 0.30103) - 1;
  while (x >= scaled(1, first + 1)) ++first;
  const auto all = static_cast<std::uint64_t>(scaled(x, kDigits - 1 - first) + 0.5L);
  for (int dropped = kDigits - 1; dropped > 0; --dropped) {
    const std::uint64_t unit = whole_power_of_ten(dropped);
    const Decimal found = without_zeros({(all + unit / 2) / unit, first - (kDigits - 1) + dropped});
    if (value_of(found.digits, found.exponent) == x) return found;
  }
  return without_zeros({all, first - (kDigits - 1)});
}

class Text {
 public:
  explicit Text(std::span<char> out) noexcept : out_(out) {}
  void character(char c) noexcept {
    if (size_ < out_.size()) out_[size_] = c;
    ++size_;
  }
  void characters(std::string_view text) noexcept {
    for (const char c : text) character(c);
  }
  void repeat(char c, int count) noexcept {
    for (; count > 0; --count) character(c);
  }
  std::size_t length() const noexcept { return size_ <= out_.size() ? size_ : 0; }

 private:
  std::span<char> out_;
  std::size_t size_ = 0;
};

}  // namespace

std::size_t write_decimal(double x, std::span<char> out) noexcept {
  Text text(out);
  if (!(x > 0)) {
    text.character('0');
    return text.length();
  }
  const Decimal number = shortest(x);
  char buffer[20];
  const std::string_view digits(buffer, std::to_chars(buffer, buffer + sizeof buffer, number.digits).ptr);
  const int count = static_cast<int>(digits.size());
  const int first = number.exponent + count - 1;
  if (number.exponent >= 0 && first < 9) {
    text.characters(digits);
    text.repeat('0', number.exponent);
  } else if (number.exponent < 0 && first >= 0) {
    text.characters(digits.substr(0, static_cast<std::size_t>(first) + 1));
    text.character('.');
    text.characters(digits.substr(static_cast<std::size_t>(first) + 1));
  } else if (first < 0 && first >= -4) {
    text.characters("0.");
    text.repeat('0', -first - 1);
    text.characters(digits);
  } else {
    text.characters(digits.substr(0, 1));
    if (count > 1) text.character('.');
    text.characters(digits.substr(1));
    text.character('e');
    text.character(first < 0 ? '-' : '+');
    const int magnitude = first < 0 ? -first : first;
    if (magnitude < 10) text.character('0');
    text.characters({buffer, std::to_chars(buffer, buffer + sizeof buffer, magnitude).ptr});
  }
  return text.length();
}

bool read_decimal(std::string_view text, double& x) noexcept {
  std::uint64_t digits = 0;
  int seen = 0, behind = 0;
  bool point = false;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (; at != end && (*at == '.' || (*at >= '0' && *at <= '9')); ++at) {
    if (*at == '.') {
      if (point || seen == 0) return false;
      point = true;
      continue;
    }
    digits = digits * 10 + static_cast<std::uint64_t>(*at - '0');
    ++seen;
    if (point) ++behind;
    // Nineteen digits fit into 64 bits. Zeros behind "0." are none of them.
    if (digits >= 1'000'000'000'000'000'000U || seen > 40) return false;
  }
  if (seen == 0 || (point && behind == 0)) return false;
  int exponent = 0;
  if (at != end) {
    if (*at++ != 'e') return false;
    if (at != end && *at == '+') ++at;
    const auto [stop, error] = std::from_chars(at, end, exponent);
    if (error != std::errc{} || stop != end) return false;
  }
  if (exponent < -kMostExponent || exponent > kMostExponent) return false;
  const double value = value_of(digits, exponent - behind);
  if (!(value <= std::numeric_limits<double>::max())) return false;
  x = value;
  return true;
}

}  // namespace gemmhoist::decide
