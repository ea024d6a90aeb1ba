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
struct X87 {
  std::uint16_t control, unused1, status, unused2;
  std::uint32_t rest[5];  // tags and the last instruction's addresses
};
constexpr std::uint16_t kDefaultControl = 0x37f;  // all exceptions masked, to nearest, 64-bit significands
constexpr std::uint16_t kX87Exceptions = 0xff;    // the six flags, stack fault, error summary
constexpr std::uint32_t kDefaultMxcsr =
    0x1f80;  // all masked, to nearest, no flags, subnormals kept both ways

std::uint32_t mxcsr() noexcept {
  std::uint32_t value;
  asm volatile("stmxcsr %0" : "=m"(value) : : "memory");
  return value;
}

void set_mxcsr(std::uint32_t value) noexcept {
  asm volatile("ldmxcsr %0" : : "m"(value) : "memory");
}

std::uint16_t x87_control() noexcept {
  std::uint16_t value;
  asm volatile("fnstcw %0" : "=m"(value) : : "memory");
  return value;
}

bool x87_has_flags() noexcept {
  std::uint16_t value;
  asm volatile("fnstsw %0" : "=m"(value) : : "memory");
  return (value & kX87Exceptions) != 0;
}

void set_x87(const X87& environment) noexcept {
  asm volatile("fldenv %0" : : "m"(environment) : "memory");
}

// Storing masks all exceptions, too, hence always with a set_x87 after it.
X87 store_x87() noexcept {
  X87 environment;
  asm volatile("fnstenv %0" : "=m"(environment) : : "memory");
  return environment;
}

void set_default_x87(X87 environment) noexcept {
  environment.control = kDefaultControl;
  environment.status &= static_cast<std::uint16_t>(~kX87Exceptions);
  set_x87(environment);
}

// Nearly all hosts leave the x87 unit as they found it. Looking costs little beside storing and loading it,
// which were a quarter of what a decision takes.
bool x87_is_default() noexcept {
  return x87_control() == kDefaultControl && !x87_has_flags();
}

struct Saved {
  std::uint32_t mxcsr;
  bool x87_was_default;
  X87 x87;
};

}  // namespace

void set_default_floating_point() noexcept {
  set_default_x87(store_x87());
  set_mxcsr(kDefaultMxcsr);
}

DefaultFloatingPoint::DefaultFloatingPoint() noexcept {
  static_assert(sizeof(Saved) <= sizeof saved_ && alignof(Saved) <= alignof(std::uint64_t));
  Saved& saved = *new (saved_) Saved;
  saved.mxcsr = mxcsr();
  set_mxcsr(kDefaultMxcsr);
  saved.x87_was_default = x87_is_default();
  if (saved.x87_was_default) return;
  saved.x87 = store_x87();
  set_default_x87(saved.x87);
}

DefaultFloatingPoint::~DefaultFloatingPoint() {
  const Saved& saved = *std::launder(reinterpret_cast<const Saved*>(saved_));
  if (!saved.x87_was_default) {
    set_x87(saved.x87);
  } else if (!x87_is_default()) {
    set_default_x87(store_x87());
  }
  set_mxcsr(saved.mxcsr);
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
