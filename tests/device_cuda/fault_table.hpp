// Fault table: wraps a driver table (the real one's, on a GPU) so that every call is counted and the k-th
// answers an error instead of being made. "dead" keeps every later call from being made as well.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "device/cuda/driver_table.hpp"

namespace gemmhoist::test {

struct Faults {
  std::atomic<long> calls{0};
  std::atomic<long> fail_at{0};  // 0: never
  std::atomic<int> code{0};
  std::atomic<bool> dead{false};  // from the failing call on, all answer `code`
  std::atomic<bool> struck{false};

  void arm(long k, int with, bool stays_dead) {
    calls = 0;
    code = with;
    dead = stays_dead;
    struck = false;
    fail_at = k;
  }
  void disarm() { arm(0, 0, false); }
};

inline Faults& faults() {
  static Faults* it = new Faults;
  return *it;
}
inline device::cuda::DriverTable& wrapped_table() {
  static auto* it = new device::cuda::DriverTable;
  return *it;
}

// One wrapper function for each entry, its own by the entry's place as a template argument.
template <auto Member>
struct Wrapper;
template <typename... Arguments, device::cuda::Result (*device::cuda::DriverTable::*Member)(Arguments...)>
struct Wrapper<Member> {
  static constexpr bool kIsPoll = [] {
    if constexpr (std::is_same_v<decltype(Member), decltype(&device::cuda::DriverTable::event_query)>) {
      return Member == &device::cuda::DriverTable::event_query;
    } else if constexpr (std::is_same_v<decltype(Member),
                                        decltype(&device::cuda::DriverTable::stream_query)>) {
      return Member == &device::cuda::DriverTable::stream_query;
    }
    return false;
  }();

  static device::cuda::Result call(Arguments... arguments) {
    Faults& f = faults();
    const auto real = [&] { return (wrapped_table().*Member)(arguments...); };
    // How often a poll finds its event pending is chance: only a poll that finds more counts as a call, so
    // that k means the same call in every run.
    device::cuda::Result answer = 0;
    if constexpr (kIsPoll) {
      if (f.struck && f.dead) return f.code;
      answer = real();
      if (answer == device::cuda::result::not_ready) return answer;
    }
    const long number = f.calls.fetch_add(1) + 1;
    const long at = f.fail_at;
    if (at != 0 && (number == at || (f.dead && number > at))) {
      f.struck = true;
      return f.code;
    }
    return kIsPoll ? answer : real();
  }
};

template <auto... Members>
device::cuda::DriverTable wrap_entries() {
  device::cuda::DriverTable table;
  ((table.*Members = &Wrapper<Members>::call), ...);
  return table;
}

// The table that a test opens its device with.
inline const device::cuda::DriverTable& fault_table(const device::cuda::DriverTable& real) {
  using T = device::cuda::DriverTable;
  wrapped_table() = real;
  static auto* table = new device::cuda::DriverTable(
      wrap_entries<&T::init, &T::driver_get_version, &T::device_get, &T::device_get_count,
                   &T::device_get_name, &T::device_get_attribute, &T::device_total_mem,
                   &T::thread_exchange_capture_mode, &T::ctx_create, &T::ctx_destroy,
                   &T::ctx_get_stream_priority_range, &T::module_load_data, &T::module_unload,
                   &T::module_get_function, &T::func_get_attribute, &T::func_set_attribute, &T::func_load,
                   &T::launch_kernel, &T::mem_get_info, &T::mem_alloc, &T::mem_free, &T::mem_host_register,
                   &T::mem_host_unregister, &T::pointer_get_attributes, &T::memcpy_h2d_async,
                   &T::memcpy_d2h_async, &T::memcpy_2d_async, &T::memset_d32_async, &T::memset_d2d32_async,
                   &T::stream_create_with_priority, &T::stream_query, &T::stream_wait_event, &T::event_create,
                   &T::event_record, &T::event_query, &T::event_elapsed_time>());
  if (real.func_load == nullptr) table->func_load = nullptr;
  return *table;
}

}  // namespace gemmhoist::test
