#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

#include "os/os.hpp"

namespace gemmhoist::os {
namespace {

// The value of `field` of the mapping at `address`, from /proc/self/smaps.
std::string mapping_field(const void* address, const std::string& field) {
  std::ifstream smaps("/proc/self/smaps");
  std::string line;
  bool inside = false;
  while (std::getline(smaps, line)) {
    unsigned long begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
      const auto a = reinterpret_cast<unsigned long>(address);
      inside = a >= begin && a < end;
    } else if (inside && line.rfind(field + ":", 0) == 0) {
      return line.substr(field.size() + 1);
    }
  }
  return "";
}

template <typename Body>
int child_status(Body body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(Arena, IsAlignedUntouchedAndNotInherited) {
  constexpr std::size_t kBytes = (5 << 20) + 123;
  void* arena = map_arena(kBytes);
  ASSERT_NE(arena, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arena) % (2 << 20), 0u);
  EXPECT_EQ(std::stol(mapping_field(arena, "Rss")), 0);
  EXPECT_NE(mapping_field(arena, "VmFlags").find(" dc"), std::string::npos);  // dont-copy
  std::memset(arena, 1, kBytes);
  const int inherited = child_status([&] {
    // Nothing is mapped there, or, under a sanitizer, whose runtime maps for itself, nothing of ours.
    unsigned char content = 0;
    const iovec into{&content, 1}, from{arena, 1};
    return process_vm_readv(getpid(), &into, 1, &from, 1, 0) == 1 && content == 1 ? 1 : 0;
  });
  EXPECT_EQ(inherited, 0);
  unmap(arena, kBytes);
  unsigned char present = 0;
  EXPECT_NE(mincore(arena, 4096, &present), 0);
}

TEST(Arena, ImpossibleSizesAreRefused) {
  EXPECT_EQ(map_arena(0), nullptr);
  EXPECT_EQ(map_arena(~std::size_t{0}), nullptr);
  EXPECT_EQ(map_arena(std::size_t{1} << 50), nullptr);
  unmap(nullptr, 4096);
}

TEST(ForkDetection, SeesForkAndRawClone) {
  arm_fork_detection();
  arm_fork_detection();  // twice is once
  EXPECT_FALSE(forked_since_armed());
  EXPECT_EQ(child_status([] { return forked_since_armed() ? 0 : 1; }), 0);
  const long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);  // no atfork handler runs
  if (child == 0) _exit(forked_since_armed() ? 0 : 1);
  int status = -1;
  waitpid(static_cast<pid_t>(child), &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_FALSE(forked_since_armed());  // the parent is none
  EXPECT_EQ(child_status([] {
              arm_fork_detection();  // afresh in the child
              return forked_since_armed() ? 1 : 0;
            }),
            0);
}

TEST(Loader, FindsAndLeavesNoErrorBehind) {
  void* libm = load_library("libm.so.6");
  ASSERT_NE(libm, nullptr);
  EXPECT_NE(find_symbol(libm, "cos"), nullptr);
  EXPECT_EQ(find_symbol(libm, "no_such_symbol_at_all"), nullptr);
  EXPECT_EQ(load_library("libno-such-library.so.9"), nullptr);
}

}  // namespace
}  // namespace gemmhoist::os
