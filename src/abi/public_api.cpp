// The public C interface of gemmhoist.h.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "dispatch/dispatch.hpp"
#include "gemmhoist/gemmhoist.h"
#include "observe/counters.hpp"

#define GEMMHOIST_EXPORT __attribute__((visibility("default")))

namespace {

using gemmhoist::observe::Counter;

constexpr std::size_t kCounters = static_cast<std::size_t>(Counter::count_);

// The numbers as text, from the header's macros: the preprocessor expands an argument before it is quoted
// only by way of a second macro.
#define GEMMHOIST_QUOTE_(x) #x
#define GEMMHOIST_QUOTE(x) GEMMHOIST_QUOTE_(x)
constexpr const char* kVersion = GEMMHOIST_QUOTE(GEMMHOIST_VERSION_MAJOR) "." GEMMHOIST_QUOTE(
    GEMMHOIST_VERSION_MINOR) "." GEMMHOIST_QUOTE(GEMMHOIST_VERSION_PATCH);

}  // namespace

extern "C" {

GEMMHOIST_EXPORT const char* gemmhoist_version(void) {
  return kVersion;
}

GEMMHOIST_EXPORT int gemmhoist_stat(const char* name, std::uint64_t* value) {
  if (name == nullptr || value == nullptr) return -1;
  for (std::size_t i = 0; i < kCounters; ++i) {
    const auto counter = static_cast<Counter>(i);
    if (std::strcmp(name, gemmhoist::observe::name(counter)) != 0) continue;
    *value = gemmhoist::observe::total(counter);
    return 0;
  }
  return -1;
}

GEMMHOIST_EXPORT const char* gemmhoist_stat_name(std::size_t index) {
  return index < kCounters ? gemmhoist::observe::name(static_cast<Counter>(index)) : nullptr;
}

GEMMHOIST_EXPORT int gemmhoist_set_thread_mode(int mode) {
  return gemmhoist::dispatch::set_thread_mode(mode) ? 0 : -1;
}

GEMMHOIST_EXPORT const char* gemmhoist_gpu_state(void) {
  return gemmhoist::dispatch::gpu_state_name();
}

}  // extern "C"
