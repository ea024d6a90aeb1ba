#include "config/options.hpp"

#include <sys/auxv.h>
#include <unistd.h>

#include "config/environment.hpp"
#include "os/once.hpp"

namespace gemmhoist::config {
namespace {

constinit os::Once reading;
constinit Options current{};
constinit TextStorage storage{};

// A program with raised privileges takes no settings from whoever started it (what secure_getenv does, for
// the whole block at once).
const char* const* trusted_environment() noexcept {
  static constexpr const char* kNone[] = {nullptr};
  return environ == nullptr || getauxval(AT_SECURE) != 0 ? kNone : environ;
}

__attribute__((noinline, cold)) void read_once() noexcept {
  reading.run([] {
    current = Options{};  // of a parent that was forked amid its reading
    read_environment(trusted_environment(), current, storage, STDERR_FILENO);
  });
}

}  // namespace

const Options& options() noexcept {
  if (!reading.done()) read_once();
  return current;
}

}  // namespace gemmhoist::config
