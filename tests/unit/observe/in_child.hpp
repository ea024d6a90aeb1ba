// in_child: options are read once a process, so each case that sets some runs in a process of its own.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace gemmhoist {

struct ChildResult {
  int status = -1;    // exit status; minus the signal that ended it
  std::string error;  // what it wrote to stderr
};

// Runs `body` with these variables set; its int is the exit status.
template <typename Body>
ChildResult in_child(const std::vector<std::pair<std::string, std::string>>& environment, Body body) {
  ChildResult result;
  int ends[2];
  if (pipe(ends) != 0) return result;
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    _exit(body());
  }
  close(ends[1]);
  char text[4096];
  for (ssize_t got; (got = read(ends[0], text, sizeof text)) > 0;)
    result.error.append(text, static_cast<std::size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return result;
}

}  // namespace gemmhoist
