// Virtual clock: the makespan of what was queued on a simulated device, from the order within each stream and
// the events between them alone. How fast the host really ran makes no difference.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "device/device.hpp"

namespace gemmhoist::test {

class VirtualClock {
 public:
  VirtualClock(int slots, double launch_s) : slots_(slots), launch_s_(launch_s) {}

  void reset();
  // An operation that holds nothing but its stream for `seconds`.
  void add_plain(device::Stream stream, double seconds);
  // A kernel: `blocks` blocks of `block_s` each, on SM slots that all streams share, first ready first
  // served.
  void add_kernel(device::Stream stream, std::int64_t blocks, double block_s);
  void add_record(device::Stream stream, device::Event event);
  void add_wait(device::Stream stream, device::Event event);
  double makespan();

 private:
  struct Operation {
    double seconds = 0;
    std::int64_t blocks = 0;  // 0: plain
    std::int64_t after = -1;  // operation in another stream
  };
  struct Index {
    int stream;
    std::size_t position;
  };

  std::int64_t push(device::Stream stream, const Operation& operation);

  const int slots_;
  const double launch_s_;
  std::mutex mutex_;
  std::vector<Operation> operations_;
  std::vector<std::int64_t> streams_[device::kStreams];  // operations in order
  std::vector<std::int64_t> events_;                     // latest record
};

}  // namespace gemmhoist::test
