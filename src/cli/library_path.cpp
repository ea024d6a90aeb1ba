#include "cli/library_path.hpp"

#include <filesystem>
#include <string>
#include <system_error>

// From the build: where `meson install` puts things, relative to the prefix (or absolute, if chosen so).
#ifndef GEMMHOIST_BINDIR
#error "the build defines GEMMHOIST_BINDIR and GEMMHOIST_LIBDIR"
#endif

namespace gemmhoist::cli {
namespace {

namespace fs = std::filesystem;

// By soname: the plain .so may be in a package for developers only.
constexpr const char* kSoname = "libgemmhoist.so.0";

fs::path tool_folder() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path();
}

// The prefix is found from where the tool is, not compiled in: an installed tree may be moved.
fs::path installed_library(const fs::path& folder) {
  fs::path prefix = folder;
  for ([[maybe_unused]] const fs::path& part : fs::path(GEMMHOIST_BINDIR)) prefix = prefix.parent_path();
  return prefix / GEMMHOIST_LIBDIR / kSoname;
}

}  // namespace

std::string find_library(const std::string& given, std::string& error) {
  std::error_code ignored;
  if (!given.empty()) {
    const fs::path path = fs::absolute(given, ignored);
    if (fs::is_regular_file(path, ignored)) return path.string();
    error = "there is no library " + given;
    return "";
  }
  const fs::path folder = tool_folder();
  const fs::path candidates[] = {installed_library(folder), folder / ".." / "abi" / kSoname};
  for (const fs::path& candidate : candidates)
    if (fs::is_regular_file(candidate, ignored))
      return fs::canonical(candidate.parent_path(), ignored) / kSoname;
  error = std::string(kSoname) + " is neither at " + candidates[0].string() + " nor at " +
          candidates[1].lexically_normal().string() + "; name it by --library";
  return "";
}

}  // namespace gemmhoist::cli
