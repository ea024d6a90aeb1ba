// Worker: the thread that owns one device and makes every call to it.
#pragma once

#include <cstdint>
#include <memory>

#include "core/status.hpp"
#include "device/device.hpp"

namespace gemmhoist::device {

// Work for the worker thread. run() is called there with the device; abandon() instead of run() when the
// device could not be opened or the worker is closing (then on whichever thread finds that out). Exactly one
// of the two is called, exactly once. A task must stay valid until then, however late it is: its owner cannot
// be somebody's stack. Once run() or abandon() has been entered, the worker does not touch the task again.
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

// What becomes of the device when its worker closes. At the exit of a process it is kept: the driver's own
// exit handlers may have run, and destroying a context after them is undefined.
enum class AtClose : std::uint8_t { keep_device, destroy_device };

// Made by start_worker and never destroyed while its thread may live: only where close() answered true may it
// be deleted.
class Worker {
 public:
  virtual ~Worker() = default;
  // Hands over a task, in order. Never blocks on the device, allocates nothing. False: the worker is closing
  // or its device could not be opened; the task was not taken, neither run() nor abandon() will be called.
  virtual bool submit(Task& task) noexcept = 0;
  // No more tasks: those queued are abandoned, on this thread; waits for the running one until the deadline
  // (observe::now_ns clock). True when the thread is parked and will make no further device call.
  virtual bool close(std::int64_t deadline_ns, AtClose at_close) noexcept = 0;
  bool close(std::int64_t deadline_ns) noexcept { return close(deadline_ns, AtClose::keep_device); }
};

// Starts the thread (all signals blocked but the synchronous ones, the process' affinity as at load,
// cancellation disabled); null when no thread can be had: `first` is then the caller's still. `first` is run
// as soon as the device is open, or abandoned with the factory's status.
Worker* start_worker(DeviceFactory factory, std::int32_t ordinal, Task& first) noexcept;

}  // namespace gemmhoist::device
