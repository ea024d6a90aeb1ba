#include <gtest/gtest.h>
#include <sched.h>

#include <string>
#include <thread>

#include "os/affinity.hpp"
#include "os/cgroup.hpp"
#include "os/os.hpp"
#include "temporary_folder.hpp"

namespace gemmhoist::os {
namespace {

int allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : -1;
}

TEST(Affinity, CountsTheCpusOfTheProcess) {
  remember_affinity();
  EXPECT_EQ(remembered_cpus(), allowed_cpus());
  EXPECT_GE(usable_cpus(), 1);
  EXPECT_LE(usable_cpus(), allowed_cpus());
}

TEST(Affinity, IsThatOfTheLoadNotOfThePinnedCaller) {
  remember_affinity();
  const int at_load = remembered_cpus();
  if (at_load < 2) GTEST_SKIP() << "one CPU: nothing to pin away from";
  int pinned = 0, restored = 0;
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    cpu_set_t all;
    sched_getaffinity(0, sizeof all, &all);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu)
      if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
    remember_affinity();  // too late: the first one holds
    pinned = allowed_cpus();
    apply_remembered_affinity();
    restored = allowed_cpus();
  }).join();
  EXPECT_EQ(pinned, 1);
  EXPECT_EQ(restored, at_load);
}

class Cgroup : public testing::Test {
 protected:
  int cpus() { return cgroup_cpus(root_.str().c_str()); }
  void groups(const std::string& text) { root_.write("proc/self/cgroup", text); }
  void mounts(const std::string& text) { root_.write("proc/self/mountinfo", text); }
  TemporaryFolder root_;
};

constexpr const char* kV2Mount =
    "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
    "30 21 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

TEST_F(Cgroup, NoneAtAll) {
  EXPECT_EQ(cpus(), 0);
}

TEST_F(Cgroup, V2RoundsUp) {
  groups("0::/app\n");
  mounts(kV2Mount);
  root_.write("sys/fs/cgroup/app/cpu.max", "250000 100000\n");
  EXPECT_EQ(cpus(), 3);
}

TEST_F(Cgroup, V2LessThanOneCpuIsOne) {
  groups("0::/app\n");
  mounts(kV2Mount);
  root_.write("sys/fs/cgroup/app/cpu.max", "1000 100000\n");
  EXPECT_EQ(cpus(), 1);
}

TEST_F(Cgroup, V2MaxIsNoQuota) {
  groups("0::/app\n");
  mounts(kV2Mount);
  root_.write("sys/fs/cgroup/app/cpu.max", "max 100000\n");
  EXPECT_EQ(cpus(), 0);
}

TEST_F(Cgroup, V2SmallestOfTheAncestorsBinds) {
  groups("0::/slice/unit/app\n");
  mounts(kV2Mount);
  root_.write("sys/fs/cgroup/slice/cpu.max", "200000 100000\n");
  root_.write("sys/fs/cgroup/slice/unit/cpu.max", "max 100000\n");
  root_.write("sys/fs/cgroup/slice/unit/app/cpu.max", "400000 100000\n");
  EXPECT_EQ(cpus(), 2);
}

TEST_F(Cgroup, V2NamespaceRoot) {
  groups("0::/\n");
  mounts(kV2Mount);
  root_.write("sys/fs/cgroup/cpu.max", "300000 100000\n");
  EXPECT_EQ(cpus(), 3);
}

TEST_F(Cgroup, V1InAContainerWithoutNamespace) {
  groups("5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n");
  mounts(
      "40 21 0:30 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n"
      "41 21 0:31 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
  root_.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "150000\n");
  root_.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  root_.write("sys/fs/cgroup/memory/cpu.cfs_quota_us", "100000\n");
  root_.write("sys/fs/cgroup/memory/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpus(), 2);
}

TEST_F(Cgroup, V1MinusOneIsNoQuota) {
  groups("4:cpu:/a\n");
  mounts("40 21 0:30 / /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n");
  root_.write("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n");
  root_.write("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpus(), 0);
}

TEST_F(Cgroup, NonsenseIsNoQuota) {
  groups("garbage\n0::\n:::\n");
  mounts(std::string("x\n - cgroup2\n") + kV2Mount);
  root_.write("sys/fs/cgroup/cpu.max", "-5 abc def\n");
  EXPECT_EQ(cpus(), 0);
}

}  // namespace
}  // namespace gemmhoist::os
