// The calling thread's floating-point environment, set to the default; DefaultFloatingPoint (os.hpp) is the
// same for a scope.
#pragma once

namespace gemmhoist::os {

void set_default_floating_point() noexcept;

}  // namespace gemmhoist::os
