// An independent reading of a plan: proves from stream order and `after` alone that every execution which
// honours them is right.
#pragma once

#include <string>

#include "plan/plan.hpp"

namespace gemmhoist::plan::testing {

// Empty where the plan is right; else what is wrong, in one line.
std::string check(const Plan& plan, const PlanInput& input);

}  // namespace gemmhoist::plan::testing
