#include "dispatch/profile_store.hpp"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "config/options.hpp"
#include "decide/profile_file.hpp"
#include "os/os.hpp"

namespace gemmhoist::dispatch {
namespace {

constinit decide::CpuRateLearner g_cpu_rates;
constinit std::atomic<bool> g_learnt{false};
constinit MachineProfile g_initial;

enum class LoadState : std::uint32_t { untouched, loading, loaded };
constinit std::atomic<std::uint32_t> g_load_state{static_cast<std::uint32_t>(LoadState::untouched)};
constinit char g_text[decide::kProfileTextBytes];  // touched only where a profile is asked for

// What must be the same for saved figures to hold: the machine, and how much of it this process may use.
std::string_view machine_key(char (&key)[128]) noexcept {
  char id[64] = "unknown";
  const std::int64_t length = os::read_small_file("/etc/machine-id", id, sizeof id - 1);
  if (length > 0) id[std::strcspn(id, "\n")] = '\0';
  const int written = std::snprintf(key, sizeof key, "%s, %d threads", id, os::usable_cpus());
  return {key, static_cast<std::size_t>(written)};
}

void load() noexcept {
  g_initial.host_threads = os::usable_cpus();
  const char* const pattern = config::options().profile;
  if (pattern[0] == '\0') return;
  char path[1024];
  if (!os::expand_path(pattern, path, sizeof path)) return;
  const std::int64_t length = os::read_small_file(path, g_text, sizeof g_text);
  char key[128];
  // No such file, or another machine's: this run makes it anew.
  if (length <= 0) return;
  MachineProfile saved = g_initial;
  if (!decide::parse_profile({g_text, static_cast<std::size_t>(length)}, machine_key(key), saved)) return;
  g_initial = saved;
  g_cpu_rates.preload(saved.cpu);
}

}  // namespace

const MachineProfile& initial_profile() noexcept {
  auto state = static_cast<LoadState>(g_load_state.load(std::memory_order_acquire));
  if (state == LoadState::loaded) [[likely]] {
    return g_initial;
  }
  auto expected = static_cast<std::uint32_t>(LoadState::untouched);
  if (g_load_state.compare_exchange_strong(expected, static_cast<std::uint32_t>(LoadState::loading))) {
    load();
    g_load_state.store(static_cast<std::uint32_t>(LoadState::loaded), std::memory_order_release);
    os::futex_wake(reinterpret_cast<const std::uint32_t*>(&g_load_state), 1 << 30);
    return g_initial;
  }
  while (g_load_state.load(std::memory_order_acquire) != static_cast<std::uint32_t>(LoadState::loaded)) {
    os::futex_wait(reinterpret_cast<const std::uint32_t*>(&g_load_state),
                   static_cast<std::uint32_t>(LoadState::loading), 0);
  }
  return g_initial;
}

const decide::CpuRateLearner& cpu_rates() noexcept {
  return g_cpu_rates;
}

void learn_cpu_rate(const GemmCall& call, double seconds) noexcept {
  g_cpu_rates.learn(call.m, call.n, call.k, seconds);
  if (!g_learnt.load(std::memory_order_relaxed)) g_learnt.store(true, std::memory_order_relaxed);
}

bool look_at_cpu_again(const GemmCall& call, double cpu_s, double gpu_s) noexcept {
  return g_cpu_rates.look_again(call.m, call.n, call.k, cpu_s, gpu_s);
}

void learn_looking_again(const GemmCall& call, double expected_s, double seconds) noexcept {
  g_cpu_rates.learn_looking_again(call.m, call.n, call.k, expected_s, seconds);
}

bool cpu_rate_was_learnt() noexcept {
  return g_learnt.load(std::memory_order_relaxed);
}

void save_profile(const MachineProfile& measured) noexcept {
  const char* const pattern = config::options().profile;
  if (pattern[0] == '\0') return;
  MachineProfile profile = measured;
  g_cpu_rates.snapshot(profile.cpu);
  char key[128];
  const std::size_t length = decide::print_profile(profile, machine_key(key), g_text);
  if (length > 0) (void)os::write_file_atomically(pattern, g_text, length);
}

void profile_after_fork() noexcept {
  g_learnt.store(false, std::memory_order_relaxed);
  auto expected = static_cast<std::uint32_t>(LoadState::loading);
  (void)g_load_state.compare_exchange_strong(expected, static_cast<std::uint32_t>(LoadState::untouched));
}

}  // namespace gemmhoist::dispatch
