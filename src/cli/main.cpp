// gemmhoist: the command-line tool.
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "gemmhoist/gemmhoist.h"

namespace {

std::string version() {
  return "gemmhoist " + std::to_string(GEMMHOIST_VERSION_MAJOR) + "." +
         std::to_string(GEMMHOIST_VERSION_MINOR) + "." + std::to_string(GEMMHOIST_VERSION_PATCH);
}

int parse_and_run(int argc, char** argv) {
  CLI::App app("Runs unmodified programs with their single-precision matrix products on the GPU.",
               "gemmhoist");
  app.set_version_flag("--version", version());
  app.require_subcommand(1);
  int status = 0;
  int parsed = 1;
  while (parsed < argc && std::strcmp(argv[parsed], "--") != 0) ++parsed;
  const std::vector<std::string> from_dashes(argv + parsed, argv + argc);
  gemmhoist::cli::add_run(app, from_dashes, status);
  gemmhoist::cli::add_options(app, status);
  gemmhoist::cli::add_info(app, status);
  try {
    app.parse(parsed, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : gemmhoist::cli::kUsage;  // --help and --version arrive here too
  }
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return parse_and_run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gemmhoist: %s\n", error.what());
    return gemmhoist::cli::kFailed;
  }
}
