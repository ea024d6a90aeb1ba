// What is said about settings that cannot be used.
#pragma once

#include <string_view>

#include "config/options.hpp"
#include "os/line.hpp"

namespace gemmhoist::config {

// "GEMMHOIST_PINNED_MIB=abc is not an integer from 16 to 16384 MiB"
void explain_bad_value(os::Line& line, const char* name, const char* value) noexcept;

// "there is no setting GEMMHOIST_ROUT; did you mean GEMMHOIST_ROUTE?", or all names when none is near.
void explain_unknown_name(os::Line& line, std::string_view name) noexcept;

}  // namespace gemmhoist::config
