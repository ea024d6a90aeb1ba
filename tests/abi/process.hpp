// Process: runs a program under the library and keeps what it said.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace gemmhoist::test {

struct Result {
  int status = -1;  // exit code; 128 + signal where one ended it; -1: could not be run
  std::string out, err;
  double seconds = 0;
  double cpu_seconds = 0;  // of the program and of its children that it waited for
  // A counter that the program printed ("calls_cpu 3"); 0 where it did not.
  long counter(const std::string& name) const;
};

// The environment of a child: that of this process less GEMMHOIST_* and LD_*, and what is given here.
using Environment = std::map<std::string, std::string>;

Result run(const std::vector<std::string>& command, const Environment& environment = {});

// Where the build put things (from the environment that Meson sets).
std::string library();                                              // libgemmhoist.so
std::string program(const std::string& name);                       // tests/abi/programs
std::string first_existing(const std::vector<std::string>& paths);  // "" where none exists

// The environment that preloads the library, and more.
Environment preloaded(Environment more = {});

// A directory of its own that goes away with the object.
class ScratchDirectory {
 public:
  ScratchDirectory();
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace gemmhoist::test
