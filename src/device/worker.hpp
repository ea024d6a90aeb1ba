// Worker: the thread that owns one device and makes every call to it.
#pragma once

#include <cstdint>
#include <memory>

#include "core/status.hpp"
#include "device/device.hpp"

namespace gemmhoist::device {

// Work for the worker thread. run() is called there with the device; abandon() instead of run() when the
// device could not be opened or the worker is closing. Exactly one of the two is called, exactly once. A task
// must stay valid until then, however late it is: its owner cannot be somebody's stack.
class Task {
 public:
  virtual ~Task() = default;
  virtual void run(Device& device) noexcept = 0;
  virtual void abandon(Status why) noexcept = 0;
  Task* next = nullptr;  // the worker's queue
};

// Makes the device on the worker thread (for CUDA: loads the driver, creates our context, loads the module).
// Returns null with a Status when there is none.
using DeviceFactory = std::unique_ptr<Device> (*)(std::int32_t ordinal, Status& status) noexcept;

class Worker {
 public:
  virtual ~Worker() = default;
  // Hands over a task, in order. Never blocks on the device. False: the worker is closing, the task was not
  // taken.
  virtual bool submit(Task& task) noexcept = 0;
  // No more tasks: those queued are abandoned; waits for the running one until the deadline (observe::now_ns
  // clock). True when the thread is parked and will make no further device call.
  virtual bool close(std::int64_t deadline_ns) noexcept = 0;
};

// Starts the thread (all signals blocked but the synchronous ones, the process' affinity as at load,
// cancellation disabled); null when no thread can be had. `first` is run as soon as the device is open, or
// abandoned with the factory's status.
Worker* start_worker(DeviceFactory factory, std::int32_t ordinal, Task& first) noexcept;

}  // namespace gemmhoist::device
