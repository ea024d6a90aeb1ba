// Affinity of the process as it was at load, for the threads that the library starts.
#pragma once

namespace gemmhoist::os {

// Gives the calling thread the remembered affinity. Best effort: where the CPUs have gone since (a cpuset
// that shrank), the thread keeps what it inherited.
void apply_remembered_affinity() noexcept;

// Number of CPUs in the remembered affinity, the cgroup quota left aside.
int remembered_cpus() noexcept;

}  // namespace gemmhoist::os
