#include "abi/process.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

extern char** environ;

namespace gemmhoist::test {
namespace {

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string required(const char* variable) {
  const char* value = std::getenv(variable);
  if (value == nullptr) throw std::runtime_error(std::string(variable) + " is not set: run by meson test");
  return value;
}

std::vector<std::string> environment_strings(const Environment& more) {
  std::vector<std::string> strings;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('='));
    const bool ours = name.rfind("GEMMHOIST_", 0) == 0 || name.rfind("LD_", 0) == 0;
    if (!ours && more.count(name) == 0) strings.push_back(text);
  }
  for (const auto& [name, value] : more) strings.push_back(name + "=" + value);
  return strings;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& text : strings) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

[[noreturn]] void become(const std::vector<char*>& arguments, const std::vector<char*>& environment,
                         const std::string& out, const std::string& err) {
  const int to_out = open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  const int to_err = open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  dup2(to_out, 1);
  dup2(to_err, 2);
  alarm(120);  // a hang is a failure, told by the signal
  execvpe(arguments[0], arguments.data(), environment.data());
  _exit(127);
}

}  // namespace

long Result::counter(const std::string& name) const {
  std::istringstream lines(out);
  std::string line;
  while (std::getline(lines, line)) {
    if (line.rfind(name + " ", 0) == 0) return std::stol(line.substr(name.size() + 1));
  }
  return 0;
}

Result run(const std::vector<std::string>& command, const Environment& environment) {
  const ScratchDirectory scratch;
  const std::string out = scratch.path() + "/out", err = scratch.path() + "/err";
  std::vector<std::string> argument_strings = command, variable_strings = environment_strings(environment);
  const std::vector<char*> arguments = pointers(argument_strings), variables = pointers(variable_strings);
  const auto begin = std::chrono::steady_clock::now();
  const pid_t child = fork();
  if (child == 0) become(arguments, variables, out, err);
  int status = 0;
  Result result;
  rusage usage{};
  if (child < 0 || wait4(child, &status, 0, &usage) != child) return result;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  result.cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.out = contents(out);
  result.err = contents(err);
  return result;
}

std::string library() {
  return required("GEMMHOIST_TEST_LIBRARY");
}
std::string program(const std::string& name) {
  return required("GEMMHOIST_TEST_PROGRAMS") + "/" + name;
}

std::string first_existing(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (std::filesystem::exists(path)) return path;
  }
  return "";
}

Environment preloaded(Environment more) {
  more.emplace("LD_PRELOAD", library());
  return more;
}

ScratchDirectory::ScratchDirectory() {
  std::string pattern = (std::filesystem::temp_directory_path() / "gemmhoist-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary directory");
  path_ = pattern;
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace gemmhoist::test
