// Options: every setting of the library, from GEMMHOIST_* variables, read once and then immutable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/kernel_descriptor.hpp"

namespace gemmhoist::config {

enum class RouteMode : std::uint8_t { automatic, cpu, gpu };
enum class LogLevel : std::uint8_t { off, summary, calls };

// Strings are copies of the environment's, as it was at the first call of options(); empty string: not set.
struct Options {
  RouteMode route = RouteMode::automatic;
  Precision precision = Precision::fp32;
  const char* fallback = "";      // path of a BLAS library
  const char* devices = "0";      // "all" or a comma-separated list of ordinals, validated
  std::int32_t host_threads = 0;  // copy threads; 0: chosen from the process' CPUs
  std::int64_t pinned_mib = 64;
  std::int64_t device_mib = 0;  // 0: as much as is free, less a reserve
  LogLevel log = LogLevel::off;
  const char* log_file = "";     // JSON lines; "%p" is the process id
  const char* trace = "";        // trace-event JSON; "%p" is the process id
  const char* profile = "";      // machine profile
  std::int64_t deadline_ms = 0;  // of one call on the GPU; 0: from its prediction
};

// One row of the table: what `gemmhoist options`, the README and the parser share.
struct OptionSpec {
  const char* name;    // "GEMMHOIST_ROUTE"
  const char* type;    // "choice", "integer", "path", "list"
  const char* values;  // "auto|cpu|gpu", "0..1024", ...
  const char* default_value;
  const char* unit;  // "" or "MiB", "ms", ...
  const char* doc;   // one sentence
};

std::span<const OptionSpec> option_specs() noexcept;

// The process' options: parsed at the first call, from the environment (none in a program with raised
// privileges, as secure_getenv has it). A bad value is reported once, in one line on stderr that names
// setting, value and allowed range; its default stays. So is a GEMMHOIST_ name that is no option
// (GEMMHOIST_TEST_ and GEMMHOIST_SIM_ names are left to tests). Needs little stack, allocates nothing from
// the heap, and is safe from any thread, from constructors and in a forked child. The first call reads
// `environ` and must not race with setenv: the load hook makes it.
const Options& options() noexcept;

// Parses `value` for `name` into `options`; false when the name is unknown or the value is not allowed.
// Strings are kept by pointer: `value` must outlive `options`.
[[nodiscard]] bool set_option(Options& options, const char* name, const char* value) noexcept;

}  // namespace gemmhoist::config
