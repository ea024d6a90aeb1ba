// `gemmhoist run`: a program with the library preloaded. The tool becomes the program (exec), so that its
// exit code, signals, terminal and process id are the program's own.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.hpp"
#include "cli/library_path.hpp"
#include "cli/settings.hpp"

namespace gemmhoist::cli {
namespace {

struct RunArguments {
  std::vector<std::string> settings;
  std::string log;
  std::string trace;
  std::string library;
  std::vector<std::string> command;
};

int fail(int status, const std::string& message) {
  std::fprintf(stderr, "gemmhoist: %s\n", message.c_str());
  return status;
}

// The loader splits LD_PRELOAD at spaces and colons and knows no way to quote them.
bool preloadable(const std::string& path) {
  return path.find_first_of(" :") == std::string::npos;
}

void preload(const std::string& library) {
  const char* others = std::getenv("LD_PRELOAD");
  std::string list = library;
  if (others != nullptr && others[0] != '\0') list += std::string(":") + others;
  setenv("LD_PRELOAD", list.c_str(), 1);
}

int execute(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  const int status = errno == ENOENT ? kNotFound : kCannotExecute;
  return fail(status, command[0] + ": " + std::strerror(errno));
}

int run(const RunArguments& arguments) {
  std::vector<std::string> settings = arguments.settings;
  if (!arguments.log.empty()) settings.push_back("GEMMHOIST_LOG=" + arguments.log);
  if (!arguments.trace.empty()) settings.push_back("GEMMHOIST_TRACE=" + arguments.trace);
  std::string error;
  std::vector<std::pair<std::string, std::string>> variables;
  for (const std::string& text : settings) {
    std::pair<std::string, std::string> variable;
    if (!parse_setting(text, variable, error)) return fail(kUsage, error);
    variables.push_back(std::move(variable));
  }
  if (arguments.command.empty())
    return fail(kUsage, "run wants a program: gemmhoist run [OPTIONS] -- PROGRAM ARGS");
  const std::string library = find_library(arguments.library, error);
  if (library.empty()) return fail(kFailed, error);
  if (!preloadable(library))
    return fail(kFailed, "the loader cannot preload a path with a space or a colon: " + library);
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  preload(library);
  return execute(arguments.command);
}

}  // namespace

void add_run(CLI::App& app, const std::vector<std::string>& from_dashes, int& status) {
  auto arguments = std::make_shared<RunArguments>();
  CLI::App* command = app.add_subcommand("run", "Run a program with the library preloaded");
  command
      ->add_option("--set", arguments->settings,
                   "A setting, as often as wanted: ROUTE=gpu or GEMMHOIST_ROUTE=gpu")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command->add_option("--log", arguments->log, "Short for --set LOG=LEVEL")->type_name("LEVEL");
  command->add_option("--trace", arguments->trace, "Short for --set TRACE=FILE")->type_name("FILE");
  command
      ->add_option("--library", arguments->library, "The library to preload, if not the one beside this tool")
      ->type_name("PATH");
  command->prefix_command();  // the first word that is no option begins the program's own command line
  command->footer("Example: gemmhoist run --log summary -- python3 program.py --its-own-option");
  command->callback([arguments, command, &from_dashes, &status] {
    arguments->command = command->remaining();
    if (!arguments->command.empty() && arguments->command[0].starts_with('-')) {
      status =
          fail(kUsage, "run has no option " + arguments->command[0] + "; a program's name goes behind --");
      return;
    }
    arguments->command.insert(arguments->command.end(), from_dashes.begin(), from_dashes.end());
    // A "--" behind the program's name is the program's own.
    if (!arguments->command.empty() && arguments->command.front() == "--")
      arguments->command.erase(arguments->command.begin());
    status = run(*arguments);
  });
}

}  // namespace gemmhoist::cli
