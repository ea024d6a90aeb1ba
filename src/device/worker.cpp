// The worker thread: a queue of tasks under a mutex, a futex word to sleep on. Its whole life with the device
// is three states: opening, serving, parked.
#include "device/worker.hpp"

#include <atomic>
#include <mutex>
#include <new>

#include "os/os.hpp"

namespace gemmhoist::device {
namespace {

// The driver's own loader and just-in-time compiler run on this thread and want a usual stack.
constexpr std::size_t kStackBytes = std::size_t{8} << 20;

class DeviceWorker final : public Worker {
 public:
  DeviceWorker(DeviceFactory factory, std::int32_t ordinal, Task& first) noexcept
      : factory_(factory), ordinal_(ordinal), head_(&first), tail_(&first) {
    first.next = nullptr;
  }

  bool start() noexcept { return os::start_thread("gemmhoist-dev", kStackBytes, &body, this); }

  bool submit(Task& task) noexcept override {
    {
      std::lock_guard lock(mutex_);
      if (closing_) return false;
      task.next = nullptr;
      (tail_ != nullptr ? tail_->next : head_) = &task;
      tail_ = &task;
    }
    wake();
    return true;
  }

  bool close(std::int64_t deadline_ns, AtClose at_close) noexcept override {
    if (at_close == AtClose::destroy_device) destroy_.store(true);
    // The thread may be stuck inside the driver: who waits for a queued task must not wait for that.
    abandon_all(refuse_tasks(), Status(StatusCode::cancelled, "worker closing"));
    wake();
    while (parked_.load(std::memory_order_acquire) == 0) {
      if (os::monotonic_ns() >= deadline_ns) return false;
      os::futex_wait(reinterpret_cast<const std::uint32_t*>(&parked_), 0, deadline_ns);
    }
    return true;
  }
  using Worker::close;

 private:
  static void body(void* self) { static_cast<DeviceWorker*>(self)->serve(); }

  void serve() noexcept {
    Status status;
    std::unique_ptr<Device> device = factory_(ordinal_, status);
    if (device == nullptr) {
      if (status.ok()) status = Status(StatusCode::unavailable, "no device");
      abandon_all(refuse_tasks(), status);
    } else {
      while (Task* task = next_task()) task->run(*device);
    }
    if (destroy_.load()) {
      device.reset();
    } else {
      // Kept until the process ends, out of reach of any destructor.
      static_cast<void>(device.release());
    }
    parked_.store(1, std::memory_order_release);
    // The object may be gone by now; only the address of the word is used, and waking a stranger is harmless.
    os::futex_wake(reinterpret_cast<const std::uint32_t*>(&parked_), 1 << 20);
  }

  // Blocks until there is a task; null when closing.
  Task* next_task() noexcept {
    while (true) {
      const std::uint32_t seen = signal_.load(std::memory_order_acquire);
      {
        std::lock_guard lock(mutex_);
        if (Task* task = head_; task != nullptr) {
          head_ = task->next;
          if (head_ == nullptr) tail_ = nullptr;
          task->next = nullptr;
          return task;
        }
        if (closing_) return nullptr;
      }
      os::futex_wait(reinterpret_cast<const std::uint32_t*>(&signal_), seen, 0);
    }
  }

  void wake() noexcept {
    signal_.fetch_add(1, std::memory_order_release);
    os::futex_wake(reinterpret_cast<const std::uint32_t*>(&signal_), 1);
  }

  Task* refuse_tasks() noexcept {
    std::lock_guard lock(mutex_);
    closing_ = true;
    Task* list = head_;
    head_ = tail_ = nullptr;
    return list;
  }

  static void abandon_all(Task* list, Status why) noexcept {
    while (list != nullptr) {
      Task* task = list;
      list = task->next;  // before abandon(): the task may be reused at once
      task->abandon(why);
    }
  }

  const DeviceFactory factory_;
  const std::int32_t ordinal_;
  std::mutex mutex_;
  Task* head_;  // guarded by mutex_, as the next two
  Task* tail_;
  bool closing_ = false;
  std::atomic<std::uint32_t> signal_{0};
  std::atomic<std::uint32_t> parked_{0};
  std::atomic<bool> destroy_{false};
};

}  // namespace

Worker* start_worker(DeviceFactory factory, std::int32_t ordinal, Task& first) noexcept {
  auto* worker = new (std::nothrow) DeviceWorker(factory, ordinal, first);
  if (worker == nullptr) return nullptr;
  if (!worker->start()) {
    delete worker;
    return nullptr;
  }
  return worker;
}

}  // namespace gemmhoist::device
