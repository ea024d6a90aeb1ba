// The commands of the tool. Each registers its arguments with the parser and does its work when they are
// parsed.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace gemmhoist::cli {

// Exit codes: as env(1) and nohup(1) have them where they run another program.
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;
inline constexpr int kCannotExecute = 126;
inline constexpr int kNotFound = 127;

// Each command stores its exit code in `status`. `from_dashes`: the words from the first "--" on, which the
// parser does not see (CLI11 2.1 takes them for positional arguments that nobody declared).
void add_run(CLI::App& app, const std::vector<std::string>& from_dashes, int& status);
void add_options(CLI::App& app, int& status);
void add_info(CLI::App& app, int& status);

}  // namespace gemmhoist::cli
