// `gemmhoist info`: what this installation is and sees. Nothing of it starts the GPU or loads a CUDA library.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "cli/commands.hpp"
#include "cli/library_path.hpp"
#include "config/options.hpp"
#include "device/backend.hpp"
#include "gemmhoist/gemmhoist.h"
#include "os/affinity.hpp"
#include "os/os.hpp"

namespace gemmhoist::cli {
namespace {

// The version that the library itself tells; empty, with the reason, where it cannot be loaded.
std::string version_of(const std::string& library, std::string& error) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    error = dlerror();
    return "";
  }
  using Version = decltype(&gemmhoist_version);
  const auto version = reinterpret_cast<Version>(dlsym(handle, "gemmhoist_version"));
  if (version == nullptr) {
    error = library + " is another library";
    return "";
  }
  return version();
}

void print_settings() {
  for (const config::OptionSpec& spec : config::option_specs())
    if (const char* value = std::getenv(spec.name)) std::printf("setting  %s=%s\n", spec.name, value);
}

int info(const std::string& given) {
  std::string error;
  const std::string library = find_library(given, error);
  const std::string version = library.empty() ? "" : version_of(library, error);
  std::printf("tool     gemmhoist %d.%d.%d\n", GEMMHOIST_VERSION_MAJOR, GEMMHOIST_VERSION_MINOR,
              GEMMHOIST_VERSION_PATCH);
  if (version.empty())
    std::printf("library  none: %s\n", error.c_str());
  else
    std::printf("library  %s (version %s)\n", library.c_str(), version.c_str());
  std::printf("backend  %s\n", device::backend_name());
  std::printf("GPU      %s\n",
              device::backend_plausible() ? "driver and device are there (not started)" : "none to be seen");
  os::remember_affinity();
  std::printf("CPUs     %d usable, %d by affinity\n", os::usable_cpus(), os::remembered_cpus());
  print_settings();
  return version.empty() ? kFailed : 0;
}

}  // namespace

void add_info(CLI::App& app, int& status) {
  auto library = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("info", "Show version, library, GPU presence and CPUs; starts no GPU");
  command->add_option("--library", *library, "The library to ask, if not the one beside this tool")
      ->type_name("PATH");
  command->callback([library, &status] { status = info(*library); });
}

}  // namespace gemmhoist::cli
