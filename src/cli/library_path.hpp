// Where the library is that this tool belongs to.
#pragma once

#include <string>

namespace gemmhoist::cli {

// Absolute path of the library: `given` if not empty, else the one beside this tool, as installed or in its
// build tree. Empty, with the reason in `error`, where there is none.
std::string find_library(const std::string& given, std::string& error);

}  // namespace gemmhoist::cli
