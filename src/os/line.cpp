#include "os/line.hpp"

#include <bit>
#include <cstring>

#include "os/os.hpp"

namespace gemmhoist::os {
namespace {

constexpr std::int64_t kMostNanoseconds = std::int64_t{1} << 60;

std::int64_t nanoseconds(double seconds) noexcept {
  if (!(seconds > 0)) return 0;
  if (seconds >= 1e9) return kMostNanoseconds;
  return static_cast<std::int64_t>(seconds * 1e9 + 0.5);
}

// Bytes of the UTF-8 sequence at `text`, 0 where there is none (overlong forms and surrogates included).
std::size_t utf8_length(const unsigned char* text) noexcept {
  const unsigned lead = text[0];
  const std::size_t length = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (length == 0 || lead > 0xF4) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((text[i] & 0xC0) != 0x80) return 0;
  if (lead == 0xE0 && text[1] < 0xA0) return 0;
  if (lead == 0xED && text[1] >= 0xA0) return 0;
  if (lead == 0xF0 && text[1] < 0x90) return 0;
  if (lead == 0xF4 && text[1] >= 0x90) return 0;
  return length;
}

}  // namespace

Line& Line::character(char c) noexcept {
  if (size_ + 2 > kCapacity) {  // one byte stays for the newline or the terminator
    overflowed_ = true;
  } else {
    text_[size_++] = c;
  }
  return *this;
}

Line& Line::text(const char* text) noexcept {
  for (; *text != '\0'; ++text) character(*text);
  return *this;
}

Line& Line::count(std::uint64_t value) noexcept {
  char digits[20];
  int n = 0;
  do {
    digits[n++] = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  while (n > 0) character(digits[--n]);
  return *this;
}

Line& Line::integer(std::int64_t value) noexcept {
  if (value < 0) character('-');
  const auto magnitude = static_cast<std::uint64_t>(value);
  return count(value < 0 ? 0 - magnitude : magnitude);
}

Line& Line::fixed(std::int64_t value, int decimals) noexcept {
  if (value < 0) character('-');
  std::uint64_t magnitude = static_cast<std::uint64_t>(value);
  if (value < 0) magnitude = 0 - magnitude;
  std::uint64_t unit = 1;
  for (int i = 0; i < decimals; ++i) unit *= 10;
  count(magnitude / unit);
  std::uint64_t rest = magnitude % unit;
  if (rest == 0) return *this;
  character('.');
  while (rest != 0) {
    unit /= 10;
    character(static_cast<char>('0' + rest / unit));
    rest %= unit;
  }
  return *this;
}

Line& Line::milliseconds(double seconds) noexcept {
  const std::int64_t ns = nanoseconds(seconds);
  std::int64_t step = 1;  // of the third significant digit; whole milliseconds are never rounded away
  while (ns / step >= 1000 && step < 1'000'000) step *= 10;
  return fixed((ns + step / 2) / step * step, 6);
}

Line& Line::exact_milliseconds(double seconds) noexcept {
  return fixed(nanoseconds(seconds), 6);
}

// Scaled in double arithmetic, whose error (1e-14) is far below half of the ninth digit's.
Line& Line::real(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7F800000u) == 0x7F800000u) return text("null");
  if (bits >> 31 != 0) character('-');
  double scaled = std::bit_cast<float>(bits & 0x7FFFFFFFu);
  if ((bits & 0x7FFFFFFFu) == 0) return character('0');
  int exponent = 8;  // value = scaled * 10^(exponent - 8)
  for (; scaled >= 1e9; ++exponent) scaled /= 10;
  for (; scaled < 1e8; --exponent) scaled *= 10;
  auto digits = static_cast<std::int64_t>(scaled + 0.5);
  if (digits == 1'000'000'000) {
    digits /= 10;
    ++exponent;
  }
  if (exponent >= 0 && exponent <= 8) return fixed(digits, 8 - exponent);
  if (exponent < 0 && exponent >= -4) {
    return fixed(digits, 8 - exponent);  // 0.0001...: up to twelve decimals
  }
  fixed(digits, 8);
  return character('e').integer(exponent);
}

Line& Line::json(const char* value) noexcept {
  constexpr char kHex[] = "0123456789abcdef";
  character('"');
  const auto* p = reinterpret_cast<const unsigned char*>(value);
  while (*p != 0) {
    const std::size_t length = utf8_length(p);
    if (length == 0) {
      text("\\ufffd");
      ++p;
    } else if (*p == '"' || *p == '\\') {
      character('\\').character(static_cast<char>(*p++));
    } else if (*p < 0x20) {
      text("\\u00").character(kHex[*p >> 4]).character(kHex[*p & 15]);
      ++p;
    } else {
      for (std::size_t i = 0; i < length; ++i) character(static_cast<char>(*p++));
    }
  }
  return character('"');
}

Line& Line::quoted_value(const char* value, std::size_t most) noexcept {
  for (std::size_t i = 0; value[i] != '\0'; ++i) {
    if (i == most) return text("...");
    const auto c = static_cast<unsigned char>(value[i]);
    character(c < 0x20 || c == 0x7F ? '?' : value[i]);
  }
  return *this;
}

const char* Line::c_str() noexcept {
  text_[size_] = '\0';
  return text_;
}

bool Line::write_to(int fd) noexcept {
  text_[size_] = '\n';
  return write_all(fd, text_, size_ + 1);
}

bool Line::append_to(const char* path) noexcept {
  if (overflowed_) return false;
  text_[size_] = '\n';
  return append_to_file(path, text_, size_ + 1);
}

}  // namespace gemmhoist::os
