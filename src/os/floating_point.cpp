#include "os/floating_point.hpp"

#include <cstdint>
#include <new>

#include "os/os.hpp"

#ifdef __x86_64__

namespace gemmhoist::os {
namespace {

// By the instructions themselves: fegetenv and its like are libm's, whose loading would be most of what a
// preload costs a process that has no use for it. x86-64 has two environments: MXCSR for SSE and AVX, and the
// x87 unit's for long double.
struct Environment {
  std::uint16_t control, unused1, status, unused2;
  std::uint32_t rest[5];  // tags and the last instruction's addresses
  std::uint32_t mxcsr;
};
constexpr std::uint16_t kDefaultControl = 0x37f;  // all exceptions masked, to nearest, 64-bit significands
constexpr std::uint16_t kX87Exceptions = 0xff;    // the six flags, stack fault, error summary
constexpr std::uint32_t kDefaultMxcsr =
    0x1f80;  // all masked, to nearest, no flags, subnormals kept both ways

void load(const Environment& environment) noexcept {
  asm volatile("fldenv %0\n\tldmxcsr %1" : : "m"(environment), "m"(environment.mxcsr) : "memory");
}

Environment store() noexcept {
  Environment environment;
  asm volatile("fnstenv %0\n\tstmxcsr %1" : "=m"(environment), "=m"(environment.mxcsr) : : "memory");
  return environment;
}

void load_default(Environment environment) noexcept {
  environment.control = kDefaultControl;
  environment.status &= static_cast<std::uint16_t>(~kX87Exceptions);
  environment.mxcsr = kDefaultMxcsr;
  load(environment);
}

}  // namespace

void set_default_floating_point() noexcept {
  load_default(store());
}

DefaultFloatingPoint::DefaultFloatingPoint() noexcept {
  static_assert(sizeof(Environment) <= sizeof saved_ && alignof(Environment) <= alignof(std::uint64_t));
  load_default(*new (saved_) Environment(store()));
}

DefaultFloatingPoint::~DefaultFloatingPoint() {
  load(*std::launder(reinterpret_cast<const Environment*>(saved_)));
}

}  // namespace gemmhoist::os

#else

#include <cfenv>

namespace gemmhoist::os {

void set_default_floating_point() noexcept {
  std::fesetenv(FE_DFL_ENV);
}

// fesetenv(FE_DFL_ENV) also ends flush-to-zero, and fegetenv keeps it.
DefaultFloatingPoint::DefaultFloatingPoint() noexcept {
  static_assert(sizeof(std::fenv_t) <= sizeof saved_);
  auto* environment = new (saved_) std::fenv_t;
  std::fegetenv(environment);
  std::fesetenv(FE_DFL_ENV);
}

DefaultFloatingPoint::~DefaultFloatingPoint() {
  std::fesetenv(std::launder(reinterpret_cast<const std::fenv_t*>(saved_)));
}

}  // namespace gemmhoist::os

#endif
