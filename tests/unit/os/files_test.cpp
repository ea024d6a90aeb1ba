#include "os/files.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "os/os.hpp"
#include "temporary_folder.hpp"

namespace gemmhoist::os {
namespace {

bool put(const std::string& path, const std::string& text) {
  return write_file_atomically(path.c_str(), text.data(), text.size());
}

TEST(ExpandPath, ProcessId) {
  const std::string pid = std::to_string(getpid());
  char path[64];
  ASSERT_TRUE(expand_path("/a/%p.%p", path, sizeof path));
  EXPECT_EQ(path, "/a/" + pid + "." + pid);
  ASSERT_TRUE(expand_path("100%", path, sizeof path));
  EXPECT_STREQ(path, "100%");
  char small[4];
  EXPECT_TRUE(expand_path("abc", small, sizeof small));
  EXPECT_FALSE(expand_path("abcd", small, sizeof small));
  EXPECT_FALSE(expand_path("", small, 0));
}

TEST(WriteFileAtomically, ReplacesWholeAndLeavesNothingElse) {
  const TemporaryFolder folder;
  const std::string path = folder / "f";
  ASSERT_TRUE(put(path, "first"));
  const std::string large(300'000, 'x');  // several buffers
  ASSERT_TRUE(put(path, large));
  EXPECT_EQ(read_text(path), large);
  EXPECT_EQ(folder.entries(), 1u);
  ASSERT_TRUE(put(folder / "g%p", "pid"));
  EXPECT_EQ(read_text(folder / ("g" + std::to_string(getpid()))), "pid");
}

TEST(WriteFileAtomically, FailureKeepsTheOldFile) {
  const TemporaryFolder folder;
  EXPECT_FALSE(put(folder / "missing/f", "x"));
  EXPECT_FALSE(put("/" + std::string(2000, 'a'), "x"));
  const std::string path = folder / "f";
  ASSERT_TRUE(put(path, "old"));
  // A limit on file sizes stands for a full disk; its signal must not arrive either.
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit{100'000, 100'000};
    setrlimit(RLIMIT_FSIZE, &limit);
    _exit(put(path, std::string(300'000, 'x')) ? 1 : 0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(read_text(path), "old");
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(WriteFileAtomically, ADeviceNodeStaysOne) {
  const TemporaryFolder folder;
  const std::string fifo = folder / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const int reader = open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  EXPECT_TRUE(put(fifo, "text"));
  char text[8] = {};
  EXPECT_EQ(read(reader, text, sizeof text), 4);
  EXPECT_STREQ(text, "text");
  close(reader);
  struct stat info {};
  EXPECT_EQ(stat(fifo.c_str(), &info), 0);
  EXPECT_TRUE(S_ISFIFO(info.st_mode));
}

TEST(AtomicFile, WithoutCommitNothingAppears) {
  const TemporaryFolder folder;
  {
    AtomicFile file;
    ASSERT_TRUE(file.open((folder / "f").c_str()));
    EXPECT_TRUE(file.append("abc", 3));
    EXPECT_EQ(folder.entries(), 1u);  // the temporary one
  }
  EXPECT_EQ(folder.entries(), 0u);
  AtomicFile never_opened;
  EXPECT_FALSE(never_opened.append("abc", 3));
  EXPECT_FALSE(never_opened.commit());
}

TEST(AppendToFile, AddsAndMakes) {
  const TemporaryFolder folder;
  const std::string path = folder / "log";
  EXPECT_TRUE(append_to_file(path.c_str(), "a\n", 2));
  EXPECT_TRUE(append_to_file(path.c_str(), "b\n", 2));
  EXPECT_EQ(read_text(path), "a\nb\n");
  EXPECT_FALSE(append_to_file((folder / "no/log").c_str(), "a\n", 2));
}

volatile sig_atomic_t pipe_signals = 0;

TEST(WriteAll, ABrokenPipeRaisesNoSignalAndKeepsErrno) {
  struct sigaction action {
  }, previous{};
  action.sa_handler = [](int) { pipe_signals = pipe_signals + 1; };
  sigaction(SIGPIPE, &action, &previous);
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  close(ends[0]);
  errno = 42;
  EXPECT_FALSE(write_all(ends[1], "x", 1));
  EXPECT_EQ(errno, 42);
  EXPECT_EQ(pipe_signals, 0);
  sigset_t pending;
  sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGPIPE), 0);
  // The host's own is still delivered, and one that it holds back stays pending.
  sigset_t pipe_only, old;
  sigemptyset(&pipe_only);
  sigaddset(&pipe_only, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe_only, &old);
  raise(SIGPIPE);
  EXPECT_FALSE(write_all(ends[1], "x", 1));
  EXPECT_EQ(pipe_signals, 0);
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  EXPECT_EQ(pipe_signals, 1);
  close(ends[1]);
  sigaction(SIGPIPE, &previous, nullptr);
}

TEST(WriteAll, AClosedDescriptorIsNoMatter) {
  errno = 42;
  EXPECT_FALSE(write_all(-1, "x", 1));
  EXPECT_EQ(errno, 42);
}

}  // namespace
}  // namespace gemmhoist::os
