// How a quota is found (cgroups(7), and the JVM's container support does the same): /proc/self/cgroup names
// the group, /proc/self/mountinfo says where its hierarchy is mounted and which part of it. Every group on
// the way up to the mount may set a quota; the smallest one binds.
#include "os/cgroup.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string_view>

#include "core/checked.hpp"
#include "os/errno_guard.hpp"
#include "os/os.hpp"

namespace gemmhoist::os {
namespace {

// Callers may have little stack, and /proc/self/mountinfo is long in a container: buffers are mapped.
struct Scratch {
  char groups[16 << 10];
  char mounts[256 << 10];
  char path[4096];
  char value[256];
};

// Whole file, cut at `capacity - 1`; an empty view where it cannot be read.
std::string_view read_file(const char* path, char* buffer, std::size_t capacity) noexcept {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::size_t size = 0;
  while (size + 1 < capacity) {
    const ssize_t got = read(fd, buffer + size, capacity - 1 - size);
    if (got <= 0) break;
    size += static_cast<std::size_t>(got);
  }
  close(fd);
  return {buffer, size};
}

// Cuts `text` at the first `separator`: answers what is before it, leaves what is behind.
std::string_view take_until(std::string_view& text, char separator) noexcept {
  const std::size_t end = text.find(separator);
  const std::string_view head = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return head;
}

bool has_item(std::string_view list, std::string_view item) noexcept {
  while (!list.empty())
    if (take_until(list, ',') == item) return true;
  return false;
}

// A decimal number; -1 for anything else ("max", an empty file, v1's own -1).
std::int64_t number(std::string_view text) noexcept {
  if (text.empty() || text.size() > 15) return -1;
  std::int64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return -1;
    value = value * 10 + (c - '0');
  }
  return value;
}

// Joins `parts` into scratch.path; false where they do not fit.
bool build_path(Scratch& s, std::initializer_list<std::string_view> parts) noexcept {
  std::size_t size = 0;
  for (const std::string_view part : parts) {
    if (size + part.size() + 1 > sizeof s.path) return false;
    if (!part.empty()) std::memcpy(s.path + size, part.data(), part.size());
    size += part.size();
  }
  s.path[size] = '\0';
  return true;
}

std::string_view read_value(Scratch& s, std::initializer_list<std::string_view> path) noexcept {
  if (!build_path(s, path)) return {};
  std::string_view text = read_file(s.path, s.value, sizeof s.value);
  return take_until(text, '\n');
}

struct Hierarchy {
  bool v2 = false;
  std::string_view mount;  // mount point
  std::string_view group;  // this process' group below it: "" or "/a/b"
};

// CPUs of one group's own quota, rounded up; 0: none.
int group_cpus(Scratch& s, std::string_view root, const Hierarchy& h, std::string_view group) noexcept {
  std::int64_t quota = -1, period = -1;  // microseconds
  if (h.v2) {
    std::string_view value = read_value(s, {root, h.mount, group, "/cpu.max"});
    quota = number(take_until(value, ' '));
    period = number(value);
  } else {
    quota = number(read_value(s, {root, h.mount, group, "/cpu.cfs_quota_us"}));
    period = number(read_value(s, {root, h.mount, group, "/cpu.cfs_period_us"}));
  }
  if (quota <= 0 || period <= 0) return 0;
  const std::int64_t cpus = divide_up(quota, period);
  return cpus > 1 << 20 ? 0 : static_cast<int>(cpus);
}

// The smallest quota from the process' group up to the mount point.
int hierarchy_cpus(Scratch& s, std::string_view root, const Hierarchy& h) noexcept {
  int least = 0;
  std::string_view group = h.group;
  while (true) {
    const int cpus = group_cpus(s, root, h, group);
    if (cpus > 0 && (least == 0 || cpus < least)) least = cpus;
    if (group.empty()) return least;
    group = group.substr(0, group.rfind('/'));
  }
}

// The group's path in this hierarchy, from the lines "id:controllers:path" of /proc/self/cgroup.
std::string_view group_path(std::string_view groups, bool v2) noexcept {
  while (!groups.empty()) {
    std::string_view line = take_until(groups, '\n');
    const std::string_view id = take_until(line, ':');
    const std::string_view controllers = take_until(line, ':');
    if (v2 ? id == "0" && controllers.empty() : has_item(controllers, "cpu")) return line;
  }
  return {};
}

// One line of mountinfo: "id parent major:minor root mount options [tags] - type source super-options". A
// container without a cgroup namespace sees the host's path in /proc/self/cgroup and the same path as the
// mount's root: that part is cut off; where it does not match, the mount point itself stands for the group.
bool parse_mount(std::string_view line, std::string_view groups, Hierarchy& h) noexcept {
  for (int i = 0; i < 3; ++i) take_until(line, ' ');
  const std::string_view mount_root = take_until(line, ' ');
  h.mount = take_until(line, ' ');
  const std::size_t tail = line.find(" - ");
  if (tail == std::string_view::npos) return false;
  line.remove_prefix(tail + 3);
  const std::string_view type = take_until(line, ' ');
  take_until(line, ' ');
  h.v2 = type == "cgroup2";
  if (!h.v2 && !(type == "cgroup" && has_item(line, "cpu"))) return false;
  h.group = group_path(groups, h.v2);
  if (mount_root != "/") {
    const bool below = h.group.starts_with(mount_root) &&
                       (h.group.size() == mount_root.size() || h.group[mount_root.size()] == '/');
    h.group = below ? h.group.substr(mount_root.size()) : std::string_view{};
  }
  if (h.group == "/" || !h.group.starts_with('/')) h.group = {};
  return true;
}

int scan(Scratch& s, std::string_view root) noexcept {
  if (!build_path(s, {root, "/proc/self/cgroup"})) return 0;
  const std::string_view groups = read_file(s.path, s.groups, sizeof s.groups);
  if (!build_path(s, {root, "/proc/self/mountinfo"})) return 0;
  std::string_view mounts = read_file(s.path, s.mounts, sizeof s.mounts);
  int least = 0;
  while (!mounts.empty()) {
    Hierarchy h;
    if (!parse_mount(take_until(mounts, '\n'), groups, h)) continue;
    const int cpus = hierarchy_cpus(s, root, h);
    if (cpus > 0 && (least == 0 || cpus < least)) least = cpus;
  }
  return least;
}

}  // namespace

int cgroup_cpus(const char* root) noexcept {
  const ErrnoGuard keep_errno;
  const NoCancellation no_cancellation;  // open, read and close are cancellation points
  void* memory = mmap(nullptr, sizeof(Scratch), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 0;
  const int cpus = scan(*static_cast<Scratch*>(memory), root);
  munmap(memory, sizeof(Scratch));
  return cpus;
}

}  // namespace gemmhoist::os
