// Line: one line of text, built without heap, locale or exceptions, and written by one write(2). printf is
// no help there: its %g asks the host's locale for the decimal point, which turns JSON into something else.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gemmhoist::os {

class Line {
 public:
  Line& text(const char* text) noexcept;
  Line& character(char c) noexcept;
  Line& integer(std::int64_t value) noexcept;
  Line& count(std::uint64_t value) noexcept;
  // value / 10^decimals, trailing zeros cut: fixed(12500, 3) is "12.5".
  Line& fixed(std::int64_t value, int decimals) noexcept;
  // Seconds as milliseconds with three significant digits, for people: 0.00786 is "7.86".
  Line& milliseconds(double seconds) noexcept;
  // Seconds as milliseconds to the nanosecond, for programs.
  Line& exact_milliseconds(double seconds) noexcept;
  // A float with nine significant digits, which name it uniquely; "null" for NaN and Inf, as JSON has no word
  // for them.
  Line& real(float value) noexcept;
  // `text` in double quotes, escaped for JSON; bytes that are no UTF-8 become U+FFFD.
  Line& json(const char* text) noexcept;
  // At most `most` bytes of a stranger's text, on one line: control characters become '?', "..." marks a cut.
  Line& quoted_value(const char* text, std::size_t most) noexcept;

  // True when something did not fit. The line is cut then.
  bool overflowed() const noexcept { return overflowed_; }
  std::size_t size() const noexcept { return size_; }
  const char* c_str() noexcept;  // without a newline
  // Adds the newline and writes all at once; false where that fails. A line that did not fit is written cut.
  bool write_to(int fd) noexcept;
  // As append_to_file; a line that did not fit is not written, as half a JSON object is none.
  bool append_to(const char* path) noexcept;

 private:
  static constexpr std::size_t kCapacity =
      800;  // the longest lines, a call or a summary as JSON, stay below 750
  char text_[kCapacity];
  std::size_t size_ = 0;
  bool overflowed_ = false;
};

}  // namespace gemmhoist::os
