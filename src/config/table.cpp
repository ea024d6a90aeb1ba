#include "config/table.hpp"

#include <cstddef>
#include <iterator>

#include "config/parse.hpp"

namespace gemmhoist::config {
namespace {

template <typename Value, Value Options::*member>
void store(Options& options, std::int64_t number) {
  options.*member = static_cast<Value>(number);
}

template <const char* Options::*member>
void store(Options& options, const char* text) {
  options.*member = text;
}

constexpr Row choice(OptionSpec spec, void (*store_number)(Options&, std::int64_t)) {
  return {spec, Kind::choice, 0, 0, store_number, nullptr};
}
constexpr Row integer(OptionSpec spec, std::int64_t least, std::int64_t most,
                      void (*store_number)(Options&, std::int64_t)) {
  return {spec, Kind::integer, least, most, store_number, nullptr};
}
constexpr Row path(OptionSpec spec, void (*store_text)(Options&, const char*)) {
  return {spec, Kind::path, 0, 0, nullptr, store_text};
}
constexpr Row list(OptionSpec spec, void (*store_text)(Options&, const char*)) {
  return {spec, Kind::list, 0, 0, nullptr, store_text};
}

// Order of enumerators and of `values` is the same: a choice is stored by its place.
constexpr Row kRows[] = {
    choice({"GEMMHOIST_ROUTE", "choice", "auto|cpu|gpu", "auto", "",
            "Where products go: decided call by call, always to the CPU BLAS, or to the GPU however small."},
           store<RouteMode, &Options::route>),
    choice({"GEMMHOIST_PRECISION", "choice", "fp32|bf16x6|tf32", "fp32", "",
            "Arithmetic on the GPU: strict IEEE single; bf16x6, on tensor cores and at least as accurate; "
            "tf32, with operands of 11 bits."},
           store<Precision, &Options::precision>),
    path({"GEMMHOIST_FALLBACK", "path", "PATH", "", "",
          "The CPU BLAS library to use instead of the one that is found."},
         store<&Options::fallback>),
    list({"GEMMHOIST_DEVICES", "list", "all|0,1,...", "0", "",
          "GPUs to use, by ordinal among those that CUDA_VISIBLE_DEVICES leaves visible."},
         store<&Options::devices>),
    // 1024: more threads than that copy no faster on any machine; 0 is the good choice nearly always.
    integer(
        {"GEMMHOIST_HOST_THREADS", "integer", "0..1024", "0", "",
         "Copy threads between the program's memory and pinned memory; 0: the CPUs of the process less two."},
        0, 1024, store<std::int32_t, &Options::host_threads>),
    // 16 MiB is the least that holds both rings with chunks large enough for the link's full rate.
    integer(
        {"GEMMHOIST_PINNED_MIB", "integer", "16..16384", "64", "MiB", "Pinned memory for staging, a device."},
        16, 16384, store<std::int64_t, &Options::pinned_mib>),
    integer({"GEMMHOIST_DEVICE_MIB", "integer", "0..1048576", "0", "MiB",
             "Device memory to use at most; 0: what is free, less a reserve."},
            0, 1048576, store<std::int64_t, &Options::device_mib>),
    choice({"GEMMHOIST_LOG", "choice", "off|summary|calls", "off", "",
            "What goes to stderr: nothing, a summary at exit, or that and one line a call."},
           store<LogLevel, &Options::log>),
    path({"GEMMHOIST_LOG_FILE", "path", "FILE", "", "",
          "Appends a JSON line a call, and one at exit, whatever GEMMHOIST_LOG says; %p is the process id."},
         store<&Options::log_file>),
    path({"GEMMHOIST_TRACE", "path", "FILE", "", "",
          "Writes a timeline in trace-event JSON at exit (opens in Perfetto); %p is the process id."},
         store<&Options::trace>),
    path({"GEMMHOIST_PROFILE", "path", "FILE", "", "",
          "Where the measured rates of this machine are kept between runs."},
         store<&Options::profile>),
    // A day: nobody waits longer, and the sum with a clock in nanoseconds cannot overflow.
    integer(
        {"GEMMHOIST_DEADLINE_MS", "integer", "0..86400000", "0", "ms",
         "Longest time that a call waits for the GPU before the CPU finishes it; 0: from its prediction."},
        0, 86400000, store<std::int64_t, &Options::deadline_ms>),
};
constexpr std::size_t kCount = std::size(kRows);

// The documented ranges and defaults are the ones in force: the texts are parsed and compared.
constexpr bool row_is_consistent(const Row& row) {
  const std::string_view values = row.spec.values, standard = row.spec.default_value;
  if (row.kind == Kind::choice) return find_choice(values, standard) >= 0;
  if (row.kind == Kind::path) return standard.empty();
  if (row.kind == Kind::list) return is_device_list(standard);
  const std::size_t dots = values.find("..");
  std::int64_t least = -1, most = -1, value = -1;
  return parse_integer(values.substr(0, dots), least) && parse_integer(values.substr(dots + 2), most) &&
         parse_integer(standard, value) && least == row.least && most == row.most && value >= least &&
         value <= most;
}
constexpr bool all_consistent() {
  for (const Row& row : kRows)
    if (!row_is_consistent(row)) return false;
  return true;
}
static_assert(all_consistent(), "a row's texts contradict what it checks");

struct Specs {
  OptionSpec of[kCount];
};
constexpr Specs collect_specs() {
  Specs specs{};
  for (std::size_t i = 0; i < kCount; ++i) specs.of[i] = kRows[i].spec;
  return specs;
}
constexpr Specs kSpecs = collect_specs();

}  // namespace

std::span<const Row> rows() noexcept {
  return kRows;
}

std::span<const OptionSpec> option_specs() noexcept {
  return kSpecs.of;
}

const Row* find_row(std::string_view name) noexcept {
  for (const Row& row : kRows)
    if (name == row.spec.name) return &row;
  return nullptr;
}

bool set_option(Options& options, const char* name, const char* value) noexcept {
  const Row* row = find_row(name);
  if (row == nullptr) return false;
  const std::string_view text = value;
  std::int64_t number = 0;
  switch (row->kind) {
    case Kind::choice:
      number = find_choice(row->spec.values, text);
      if (number < 0) return false;
      row->store_number(options, number);
      return true;
    case Kind::integer:
      if (!parse_integer(text, number) || number < row->least || number > row->most) return false;
      row->store_number(options, number);
      return true;
    case Kind::list:
      if (!is_device_list(text)) return false;
      break;
    case Kind::path:
      if (text.size() > kLongestPath) return false;
      break;
  }
  row->store_text(options, value);
  return true;
}

}  // namespace gemmhoist::config
