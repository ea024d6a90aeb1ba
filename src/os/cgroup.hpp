// CPU quota of the control group (containers, systemd slices).
#pragma once

namespace gemmhoist::os {

// CPUs that the quota of this process' cgroup, and of every one above it, leaves, rounded up; 0 where none
// is set. Versions 1 and 2 are read. `root` goes before every path: "" but in tests.
int cgroup_cpus(const char* root) noexcept;

}  // namespace gemmhoist::os
