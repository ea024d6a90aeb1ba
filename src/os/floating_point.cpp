#include <cfenv>
#include <new>

#include "os/os.hpp"

namespace gemmhoist::os {

// fesetenv(FE_DFL_ENV) also clears flush-to-zero and denormals-are-zero (MXCSR), and fegetenv keeps them.
DefaultFloatingPoint::DefaultFloatingPoint() noexcept {
  static_assert(sizeof(std::fenv_t) <= sizeof saved_);
  auto* environment = new (saved_) std::fenv_t;
  std::fegetenv(environment);
  std::fesetenv(FE_DFL_ENV);
}

DefaultFloatingPoint::~DefaultFloatingPoint() {
  std::fesetenv(std::launder(reinterpret_cast<std::fenv_t*>(saved_)));
}

}  // namespace gemmhoist::os
