#include "decide/profile_file.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <system_error>

#include "decide/decimal.hpp"

namespace gemmhoist::decide {
namespace {

constexpr std::string_view kVersionKey = "gemmhoist_profile";
constexpr std::string_view kVersion = "1";
constexpr std::string_view kMachineKey = "machine";
constexpr std::string_view kCpuKey = "cpu_flops_per_s.";
constexpr std::size_t kLongestMachine = 256;

// Every number of a profile but the CPU rates: one table for both directions.
struct Field {
  std::string_view key;
  double (*get)(const MachineProfile&) noexcept;
  void (*set)(MachineProfile&, double) noexcept;
  bool positive;  // zero makes no sense
  bool whole;
  bool late = false;  // files written before there was such a field are good without it
};

using P = MachineProfile;
constexpr double kLargestWhole = 1e6;

constexpr Field kFields[] = {
    {"h2d_latency_s", [](const P& p) noexcept { return p.h2d.latency_s; },
     [](P& p, double x) noexcept { p.h2d.latency_s = x; }, false, false},
    {"h2d_bytes_per_s", [](const P& p) noexcept { return p.h2d.bytes_per_s; },
     [](P& p, double x) noexcept { p.h2d.bytes_per_s = x; }, true, false},
    {"d2h_latency_s", [](const P& p) noexcept { return p.d2h.latency_s; },
     [](P& p, double x) noexcept { p.d2h.latency_s = x; }, false, false},
    {"d2h_bytes_per_s", [](const P& p) noexcept { return p.d2h.bytes_per_s; },
     [](P& p, double x) noexcept { p.d2h.bytes_per_s = x; }, true, false},
    {"host_copy_bytes_per_s", [](const P& p) noexcept { return p.host_copy_bytes_per_s; },
     [](P& p, double x) noexcept { p.host_copy_bytes_per_s = x; }, true, false},
    {"kernel_flops_per_s", [](const P& p) noexcept { return p.kernel_flops_per_s; },
     [](P& p, double x) noexcept { p.kernel_flops_per_s = x; }, true, false},
    {"bf16x6_flops_per_s", [](const P& p) noexcept { return p.bf16x6_flops_per_s; },
     [](P& p, double x) noexcept { p.bf16x6_flops_per_s = x; }, false, false, true},
    {"tf32_flops_per_s", [](const P& p) noexcept { return p.tf32_flops_per_s; },
     [](P& p, double x) noexcept { p.tf32_flops_per_s = x; }, false, false, true},
    {"call_fixed_s", [](const P& p) noexcept { return p.call_fixed_s; },
     [](P& p, double x) noexcept { p.call_fixed_s = x; }, false, false},
    {"start_s", [](const P& p) noexcept { return p.start_s; }, [](P& p, double x) noexcept { p.start_s = x; },
     false, false},
    {"end_s", [](const P& p) noexcept { return p.end_s; }, [](P& p, double x) noexcept { p.end_s = x; },
     false, false},
    {"sm_count", [](const P& p) noexcept { return static_cast<double>(p.sm_count); },
     [](P& p, double x) noexcept { p.sm_count = static_cast<std::int32_t>(x); }, false, true},
    {"host_threads", [](const P& p) noexcept { return static_cast<double>(p.host_threads); },
     [](P& p, double x) noexcept { p.host_threads = static_cast<std::int32_t>(x); }, true, true},
    {"measured", [](const P& p) noexcept { return p.measured ? 1.0 : 0.0; },
     [](P& p, double x) noexcept { p.measured = x != 0; }, false, true},
};
constexpr std::uint32_t bit_of(const Field& field) noexcept {
  return std::uint32_t{1} << (&field - kFields);
}
constexpr std::uint32_t kNeeded = [] {
  std::uint32_t needed = 0;
  for (const Field& field : kFields) needed |= field.late ? 0 : bit_of(field);
  return needed;
}();

class Writer {
 public:
  explicit Writer(std::span<char> out) noexcept : at_(out.data()), begin_(at_), end_(at_ + out.size()) {}

  void text(std::string_view s) noexcept {
    if (static_cast<std::size_t>(end_ - at_) < s.size()) return fail();
    std::copy(s.begin(), s.end(), at_);
    at_ += s.size();
  }
  void number(double x) noexcept {
    const std::size_t length = write_decimal(x, {at_, end_});
    if (length == 0) return fail();
    at_ += length;
  }
  void number(int x) noexcept { number(static_cast<double>(x)); }
  std::size_t length() const noexcept { return failed_ ? 0 : static_cast<std::size_t>(at_ - begin_); }

 private:
  void fail() noexcept {
    failed_ = true;
    at_ = end_;
  }
  char *at_, *begin_, *end_;
  bool failed_ = false;
};

bool legal_machine(std::string_view machine) noexcept {
  if (machine.empty() || machine.size() > kLongestMachine) return false;
  if (machine.front() == ' ' || machine.back() == ' ') return false;
  return std::none_of(machine.begin(), machine.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

// Splits "key = value"; false for anything else.
bool split(std::string_view line, std::string_view& key, std::string_view& value) noexcept {
  constexpr std::string_view kEquals = " = ";
  const std::size_t at = line.find(kEquals);
  if (at == std::string_view::npos) return false;
  key = line.substr(0, at);
  value = line.substr(at + kEquals.size());
  return !key.empty() && !value.empty();
}

bool next_line(std::string_view& text, std::string_view& line) noexcept {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) return false;
  line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return true;
}

bool read_index(std::string_view text, int& x) noexcept {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), x);
  return error == std::errc{} && end == text.data() + text.size();
}

bool read_cpu_rate(std::string_view cell, std::string_view value, CpuRates& rates) noexcept {
  const std::size_t dot = cell.find('.');
  if (dot == std::string_view::npos) return false;
  int bucket = 0, thinness = 0;
  if (!read_index(cell.substr(0, dot), bucket) || !read_index(cell.substr(dot + 1), thinness)) return false;
  if (bucket < 0 || bucket >= CpuRates::kBuckets || thinness < 0 || thinness >= CpuRates::kThinness)
    return false;
  double& rate = rates.flops_per_s[bucket][thinness];
  return rate == 0 && read_decimal(value, rate) && rate > 0;
}

bool read_field(std::string_view key, std::string_view value, MachineProfile& profile,
                std::uint32_t& seen) noexcept {
  const auto field = std::find_if(std::begin(kFields), std::end(kFields),
                                  [&](const Field& candidate) { return candidate.key == key; });
  if (field == std::end(kFields)) return false;
  const std::uint32_t bit = bit_of(*field);
  double x = 0;
  if ((seen & bit) != 0 || !read_decimal(value, x)) return false;
  if (field->positive && x == 0) return false;
  if (field->whole && (x > kLargestWhole || x != static_cast<double>(static_cast<std::int64_t>(x))))
    return false;
  field->set(profile, x);
  seen |= bit;
  return true;
}

}  // namespace

std::size_t print_profile(const MachineProfile& profile, std::string_view machine,
                          std::span<char> out) noexcept {
  if (!legal_machine(machine)) return 0;
  Writer writer(out);
  for (const std::string_view s : {kVersionKey, std::string_view(" = "), kVersion, std::string_view("\n"),
                                   kMachineKey, std::string_view(" = "), machine, std::string_view("\n")}) {
    writer.text(s);
  }
  for (const Field& field : kFields) {
    writer.text(field.key);
    writer.text(" = ");
    writer.number(field.get(profile));
    writer.text("\n");
  }
  for (int bucket = 0; bucket < CpuRates::kBuckets; ++bucket) {
    for (int thinness = 0; thinness < CpuRates::kThinness; ++thinness) {
      const double rate = profile.cpu.flops_per_s[bucket][thinness];
      if (!(rate > 0)) continue;
      writer.text(kCpuKey);
      writer.number(bucket);
      writer.text(".");
      writer.number(thinness);
      writer.text(" = ");
      writer.number(rate);
      writer.text("\n");
    }
  }
  return writer.length();
}

bool parse_profile(std::string_view text, std::string_view machine, MachineProfile& profile) noexcept {
  std::string_view line, key, value;
  if (!next_line(text, line) || !split(line, key, value) || key != kVersionKey || value != kVersion)
    return false;
  if (!next_line(text, line) || !split(line, key, value) || key != kMachineKey || value != machine)
    return false;
  MachineProfile read;
  std::uint32_t seen = 0;
  while (next_line(text, line)) {
    if (!split(line, key, value)) return false;
    const bool is_cpu = key.starts_with(kCpuKey);
    if (is_cpu ? !read_cpu_rate(key.substr(kCpuKey.size()), value, read.cpu)
               : !read_field(key, value, read, seen)) {
      return false;
    }
  }
  // A last line without its end was cut off, and so perhaps was its number.
  if (!text.empty() || (seen & kNeeded) != kNeeded) return false;
  profile = read;
  return true;
}

}  // namespace gemmhoist::decide
