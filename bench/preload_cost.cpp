// preload_cost: what LD_PRELOAD adds to a whole process that never multiplies, from spawn to exit.
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <vector>

#include "sampling.hpp"

extern char** environ;

namespace gemmhoist::bench {
namespace {

double run_once(const std::string& program, char* const* environment) {
  char* const arguments[] = {const_cast<char*>(program.c_str()), nullptr};
  pid_t pid = -1;
  int status = -1;
  const double start = now_s();
  if (posix_spawn(&pid, program.c_str(), nullptr, nullptr, arguments, environment) == 0)
    waitpid(pid, &status, 0);
  const double seconds = now_s() - start;
  if (status != 0) throw std::runtime_error(program + " failed");
  return seconds;
}

int run(const std::string& library, const std::string& program, int pairs, double limit_ms) {
  const std::string preload = "LD_PRELOAD=" + library;
  std::vector<char*> plain;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, "LD_PRELOAD=", 11) != 0) plain.push_back(*entry);
  }
  std::vector<char*> preloaded = plain;
  preloaded.push_back(const_cast<char*>(preload.c_str()));
  plain.push_back(nullptr);
  preloaded.push_back(nullptr);
  std::vector<double> without, with, added;
  for (int pair = -5; pair < pairs; ++pair) {  // five warm the page cache
    double seconds[2];
    for (int turn = 0; turn < 2; ++turn) {
      const int side = (turn + (pair & 1)) % 2;
      seconds[side] = run_once(program, side == 1 ? preloaded.data() : plain.data());
    }
    if (pair < 0) continue;
    without.push_back(seconds[0]);
    with.push_back(seconds[1]);
    added.push_back(seconds[1] - seconds[0]);
  }
  const Summary difference = summarise(added);
  fmt::print(
      "{}: {:.3f} ms plain, {:.3f} ms preloaded; added {:.3f} ms (median of {} pairs, MAD {:.3f}, limit "
      "{})\n",
      program, summarise(without).median * 1e3, summarise(with).median * 1e3, difference.median * 1e3, pairs,
      difference.mad * 1e3, limit_ms);
  return difference.median * 1e3 <= limit_ms ? 0 : 1;
}

}  // namespace
}  // namespace gemmhoist::bench

int main(int argc, char** argv) {
  std::string library, program = "/bin/true";
  int pairs = 500;
  double limit_ms = 1.0;
  CLI::App app{
      "Times a program with and without the library preloaded; status 1 if it adds more than the limit"};
  app.add_option("--library", library, "libgemmhoist.so")->required()->check(CLI::ExistingFile);
  app.add_option("--program", program, "What to run")->check(CLI::ExistingFile);
  app.add_option("--pairs", pairs, "Runs of each")->check(CLI::Range(4, 100000));
  app.add_option("--limit-ms", limit_ms, "The most it may add");
  CLI11_PARSE(app, argc, argv);
  try {
    return gemmhoist::bench::run(std::filesystem::absolute(library).string(), program, pairs, limit_ms);
  } catch (const std::exception& error) {
    fmt::print(stderr, "preload_cost: {}\n", error.what());
    return 2;
  }
}
