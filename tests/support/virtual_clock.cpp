#include "support/virtual_clock.hpp"

#include <algorithm>
#include <functional>
#include <queue>

namespace gemmhoist::test {

void VirtualClock::reset() {
  std::lock_guard lock(mutex_);
  operations_.clear();
  events_.clear();
  for (auto& stream : streams_) stream.clear();
}

std::int64_t VirtualClock::push(device::Stream stream, const Operation& operation) {
  const auto index = static_cast<std::int64_t>(operations_.size());
  operations_.push_back(operation);
  streams_[static_cast<int>(stream)].push_back(index);
  return index;
}

void VirtualClock::add_plain(device::Stream stream, double seconds) {
  std::lock_guard lock(mutex_);
  push(stream, {seconds, 0, -1});
}

void VirtualClock::add_kernel(device::Stream stream, std::int64_t blocks, double block_s) {
  std::lock_guard lock(mutex_);
  push(stream, {block_s, blocks, -1});
}

void VirtualClock::add_record(device::Stream stream, device::Event event) {
  std::lock_guard lock(mutex_);
  if (events_.size() <= event) events_.resize(event + 1, -1);
  events_[event] = push(stream, {});
}

void VirtualClock::add_wait(device::Stream stream, device::Event event) {
  std::lock_guard lock(mutex_);
  const std::int64_t after = event < events_.size() ? events_[event] : -1;
  push(stream, {0, 0, after});
}

// Stream heads are served in the order in which they become ready, so that kernels meet the SMs first ready,
// first served.
double VirtualClock::makespan() {
  std::lock_guard lock(mutex_);
  constexpr double kUnknown = -1;
  std::vector<double> ends(operations_.size(), kUnknown);
  std::size_t next[device::kStreams] = {};
  double free_at[device::kStreams] = {};
  std::priority_queue<double, std::vector<double>, std::greater<>> slots;
  for (int i = 0; i < slots_; ++i) slots.push(0);
  double last = 0;
  while (true) {
    int chosen = -1;
    double chosen_ready = 0;
    for (int s = 0; s < device::kStreams; ++s) {
      if (next[s] == streams_[s].size()) continue;
      const Operation& head = operations_[static_cast<std::size_t>(streams_[s][next[s]])];
      double ready = free_at[s];
      if (head.after >= 0) {
        const double dependency = ends[static_cast<std::size_t>(head.after)];
        if (dependency == kUnknown) continue;
        ready = std::max(ready, dependency);
      }
      if (chosen < 0 || ready < chosen_ready) {
        chosen = s;
        chosen_ready = ready;
      }
    }
    if (chosen < 0) break;
    const std::int64_t index = streams_[chosen][next[chosen]++];
    const Operation& operation = operations_[static_cast<std::size_t>(index)];
    double end = chosen_ready + operation.seconds;
    if (operation.blocks > 0) {
      const double begin = chosen_ready + launch_s_;
      end = begin;
      for (std::int64_t b = 0; b < operation.blocks; ++b) {
        const double block_end = std::max(slots.top(), begin) + operation.seconds;
        slots.pop();
        slots.push(block_end);
        end = std::max(end, block_end);
      }
    }
    ends[static_cast<std::size_t>(index)] = free_at[chosen] = end;
    last = std::max(last, end);
  }
  return last;
}

}  // namespace gemmhoist::test
