// Settings as they are given on the command line.
#pragma once

#include <string>
#include <utility>

namespace gemmhoist::cli {

// "ROUTE=gpu" or "GEMMHOIST_ROUTE=gpu" as the variable's full name and value. False, with what is wrong in
// `error`, where there is no such setting or it does not allow the value.
bool parse_setting(const std::string& text, std::pair<std::string, std::string>& setting, std::string& error);

}  // namespace gemmhoist::cli
