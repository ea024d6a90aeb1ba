// Simulated device: streams are queues on threads, copies are real, kernels are reference loops, device
// memory is this machine's. It holds its user to every contract of device.hpp, and aborts where one is
// broken.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <thread>
#include <vector>

#include "core/checked.hpp"
#include "observe/trace.hpp"
#include "os/os.hpp"
#include "support/image_reference.hpp"
#include "support/sim_kernels.hpp"
#include "support/simulation.hpp"
#include "support/virtual_clock.hpp"

namespace gemmhoist::test {
namespace {

using device::Copy2D;
using device::DevicePointer;
using device::Event;
using device::EventState;
using device::HostMemory;
using device::Stream;

void demand(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "simulated device: contract broken: %s\n", what);
  std::abort();
}

std::byte* address(DevicePointer pointer) {
  return reinterpret_cast<std::byte*>(pointer);
}

bool is_mapped(std::uintptr_t begin, std::size_t bytes) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::uintptr_t first = begin / page * page;
  std::vector<unsigned char> resident((begin + bytes - first + page - 1) / page);
  return mincore(reinterpret_cast<void*>(first), begin + bytes - first, resident.data()) == 0;
}

// Streams and events: one lock, one condition. Operations run outside the lock.
class Streams {
 public:
  explicit Streams(Simulation& simulation) : simulation_(simulation) {}

  ~Streams() {
    {
      std::lock_guard lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    while (alive_.load() != 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }

  void push(Stream stream, std::function<void()> work) {
    std::lock_guard lock(mutex_);
    start(static_cast<int>(stream));
    queues_[static_cast<int>(stream)].push_back({std::move(work), 0, 0, Kind::work});
    changed_.notify_all();
  }
  void record(Stream stream, Event event) {
    std::lock_guard lock(mutex_);
    start(static_cast<int>(stream));
    if (events_.size() <= event) events_.resize(event + 1);
    queues_[static_cast<int>(stream)].push_back({{}, event, ++events_[event].recorded, Kind::record});
    changed_.notify_all();
  }
  void wait(Stream stream, Event event) {
    std::lock_guard lock(mutex_);
    demand(event < events_.size() && events_[event].recorded > 0,
           "waits for an event that was never recorded");
    start(static_cast<int>(stream));
    queues_[static_cast<int>(stream)].push_back({{}, event, events_[event].recorded, Kind::wait});
    changed_.notify_all();
  }
  bool reached(Event event) {
    std::lock_guard lock(mutex_);
    demand(event < events_.size() && events_[event].recorded > 0,
           "asks for an event that was never recorded");
    return events_[event].reached == events_[event].recorded;
  }
  std::int64_t time_ns(Event event) {
    std::lock_guard lock(mutex_);
    demand(event < events_.size() && events_[event].recorded > 0 &&
               events_[event].reached == events_[event].recorded,
           "asks for the time of an event that was not reached");
    return events_[event].time_ns;
  }
  // False at the deadline.
  bool drain(std::int64_t deadline_ns) {
    std::unique_lock lock(mutex_);
    while (!idle()) {
      if (os::monotonic_ns() >= deadline_ns) return false;
      changed_.wait_for(lock, std::chrono::milliseconds(1));
    }
    return true;
  }

 private:
  enum class Kind { work, record, wait };
  struct Operation {
    std::function<void()> work;
    Event event;
    std::uint64_t version;
    Kind kind;
  };
  struct EventRecord {
    std::uint64_t recorded = 0, reached = 0;
    std::int64_t time_ns = 0;
  };
  struct ThreadStart {
    Streams* streams;
    int index;
  };

  // A stream has a thread from its first use on: made like the library's own, so that it takes no signal of
  // the program's and shows its name.
  void start(int index) {
    if (started_[index]) return;
    starts_[index] = {this, index};
    alive_.fetch_add(1);
    demand(os::start_thread(
               "sim-stream", std::size_t{256} << 10,
               [](void* start) {
                 const auto& self = *static_cast<ThreadStart*>(start);
                 Streams* streams = self.streams;
                 streams->serve(self.index);
                 streams->alive_.fetch_sub(1);
               },
               &starts_[index]),
           "a thread could be had");
    started_[index] = true;
  }

  bool idle() const {
    for (int i = 0; i < device::kStreams; ++i) {
      if (!queues_[i].empty()) return false;
    }
    return true;
  }

  bool can_run(const std::deque<Operation>& queue) const {
    if (queue.empty() || simulation_.stalled()) return false;
    const Operation& head = queue.front();
    return head.kind != Kind::wait || events_[head.event].reached >= head.version;
  }

  void serve(int index) {
    std::deque<Operation>& queue = queues_[index];
    std::unique_lock lock(mutex_);
    while (!closing_) {
      if (!can_run(queue)) {
        // A stall ends without notice: hence the limit.
        if (simulation_.stalled()) {
          changed_.wait_for(lock, std::chrono::milliseconds(1));
        } else {
          changed_.wait(lock);
        }
        continue;
      }
      // The operation stays in the queue while it runs: an idle stream is an empty queue.
      Operation& operation = queue.front();
      if (operation.kind == Kind::work) {
        lock.unlock();
        operation.work();
        lock.lock();
      } else if (operation.kind == Kind::record) {
        events_[operation.event].reached = operation.version;
        events_[operation.event].time_ns = os::monotonic_ns();
      }
      queue.pop_front();
      changed_.notify_all();
    }
  }

  Simulation& simulation_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Operation> queues_[device::kStreams];
  std::vector<EventRecord> events_;
  ThreadStart starts_[device::kStreams] = {};
  bool started_[device::kStreams] = {};
  bool closing_ = false;
  std::atomic<int> alive_{0};
};

class SimulatedDevice final : public device::Device {
 public:
  SimulatedDevice(Simulation& simulation, std::int32_t ordinal)
      : simulation_(simulation), streams_(simulation) {
    std::snprintf(properties_.name, sizeof(properties_.name), "simulated device %d", ordinal);
    properties_.ordinal = ordinal;
    properties_.arch = 90;
    properties_.sm_count = simulation.settings.sm_count;
    properties_.memory_bytes = static_cast<std::size_t>(simulation.settings.memory_bytes);
  }

  ~SimulatedDevice() override {
    for (const auto& [begin, bytes] : pinned_) demand(is_mapped(begin, bytes), "unmaps what is still pinned");
    for (const auto& [pointer, bytes] : allocations_) leftover_.push_back(pointer);
  }

  const device::DeviceProperties& properties() const noexcept override { return properties_; }
  std::span<const KernelDescriptor> kernels() const noexcept override {
    return sim_kernels(simulation_.settings.tiles);
  }

  Status free_memory(std::size_t& bytes) noexcept override {
    GEMMHOIST_RETURN_IF_FAILED(simulation_.enter_call());
    bytes = static_cast<std::size_t>(free_bytes());
    return {};
  }

  Status allocate(std::size_t bytes, DevicePointer& pointer) noexcept override {
    GEMMHOIST_RETURN_IF_FAILED(simulation_.enter_call());
    demand(bytes > 0, "allocates nothing");
    if (static_cast<std::int64_t>(bytes) > free_bytes())
      return Status(StatusCode::out_of_memory, "simulated memory", 2);
    const auto rounded = static_cast<std::size_t>(round_up(static_cast<std::int64_t>(bytes), kAlignment));
    void* memory = std::aligned_alloc(kAlignment, rounded);
    if (memory == nullptr) return Status(StatusCode::out_of_memory, "host memory of the simulation", 2);
    std::memset(memory, 0xff, rounded);  // NaN: who reads what he never wrote shall see it
    pointer = reinterpret_cast<DevicePointer>(memory);
    allocations_[pointer] = bytes;
    used_ += static_cast<std::int64_t>(bytes);
    return {};
  }

  Status release(DevicePointer pointer) noexcept override {
    GEMMHOIST_RETURN_IF_FAILED(simulation_.enter_call());
    const auto found = allocations_.find(pointer);
    demand(found != allocations_.end(), "releases what was not allocated");
    // As a real driver does: freeing waits for what is queued.
    constexpr std::int64_t kPatienceNs = 5'000'000'000;
    if (!streams_.drain(os::monotonic_ns() + kPatienceNs))
      return Status(StatusCode::device_error, "release", 3);
    used_ -= static_cast<std::int64_t>(found->second);
    std::free(address(pointer));
    allocations_.erase(found);
    return {};
  }

  Status pin(void* memory, std::size_t bytes) noexcept override {
    GEMMHOIST_RETURN_IF_FAILED(simulation_.enter_call());
    pinned_[reinterpret_cast<std::uintptr_t>(memory)] = bytes;
    return {};
  }
  Status unpin(void* memory) noexcept override {
    GEMMHOIST_RETURN_IF_FAILED(simulation_.enter_call());
    demand(pinned_.erase(reinterpret_cast<std::uintptr_t>(memory)) == 1, "unpins what was not pinned");
    return {};
  }

  HostMemory classify(const void* memory, std::size_t width, std::size_t pitch,
                      std::size_t rows) noexcept override {
    HostMemory answer = HostMemory::pinned;
    for (std::size_t row = 0; row < rows; ++row) {
      const HostMemory kind = simulation_.kind_of(static_cast<const std::byte*>(memory) + row * pitch, width);
      if (kind == HostMemory::device) return kind;
      if (kind == HostMemory::pageable) answer = kind;
      // What was declared is whole matrices, so that one pageable row settles it.
      if (answer == HostMemory::pageable) break;
    }
    return answer;
  }

  Status copy_h2d(Stream stream, const Copy2D& copy) noexcept override {
    GEMMHOIST_RETURN_IF_FAILED(simulation_.enter_call());
    check_copy(copy);
    charge_link(stream, copy);
    streams_.push(stream, [copy] {
      for (std::size_t row = 0; row < copy.height; ++row) {
        std::memcpy(address(copy.device) + row * copy.device_pitch,
                    static_cast<const std::byte*>(copy.host) + row * copy.host_pitch, copy.width);
      }
    });
    return {};
  }

  Status copy_d2h(Stream stream, const Copy2D& copy) noexcept override {
    GEMMHOIST_RETURN_IF_FAILED(simulation_.enter_call());
    check_copy(copy);
    charge_link(stream, copy);
    streams_.push(stream, [copy] {
      for (std::size_t row = 0; row < copy.height; ++row) {
        std::memcpy(static_cast<std::byte*>(copy.host) + row * copy.host_pitch,
                    address(copy.device) + row * copy.device_pitch, copy.width);
      }
    });
    return {};
  }

  Status fill_zero(Stream stream, DevicePointer pointer, std::size_t pitch, std::size_t width,
                   std::size_t height) noexcept override {
    GEMMHOIST_RETURN_IF_FAILED(simulation_.enter_call());
    demand(width % 4 == 0 && pitch % 4 == 0 && width <= pitch && width > 0 && height > 0,
           "fill_zero's lengths");
    check_device(pointer, pitch * (height - 1) + width);
    simulation_.clock().add_plain(stream, simulation_.settings.launch_s);
    streams_.push(stream, [=] {
      for (std::size_t row = 0; row < height; ++row) std::memset(address(pointer) + row * pitch, 0, width);
    });
    return {};
  }

  Status launch(Stream stream, const KernelDescriptor& kernel,
                const GemmKernelParams& params) noexcept override {
    GEMMHOIST_RETURN_IF_FAILED(simulation_.enter_call());
    demand(kernel.role == KernelRole::gemm, "a gemm kernel");
    check_gemm(kernel, params);
    const std::int64_t blocks = divide_up(params.m, kernel.tile_m) * divide_up(params.n, kernel.tile_n);
    simulation_.clock().add_kernel(stream, blocks, sim_block_seconds(simulation_.settings, kernel, params.k));
    const double pause_s = simulation_.settings.fp32_pause_s;
    if (simulation_.settings.arithmetic) {
      streams_.push(stream, [params, pause_s] {
        sim_gemm(params);
        if (pause_s > 0) std::this_thread::sleep_for(std::chrono::duration<double>(pause_s));
      });
    }
    return {};
  }

  Status launch(Stream stream, const KernelDescriptor& kernel,
                const TransposeKernelParams& params) noexcept override {
    GEMMHOIST_RETURN_IF_FAILED(simulation_.enter_call());
    demand(kernel.role == KernelRole::transpose, "a transpose kernel");
    demand(params.rows > 0 && params.cols > 0 && params.ld_source >= params.cols &&
               params.ld_destination >= params.rows,
           "transpose extents");
    check_device(reinterpret_cast<DevicePointer>(params.source),
                 floats(params.ld_source * (params.rows - 1) + params.cols));
    check_device(reinterpret_cast<DevicePointer>(params.destination),
                 floats(params.ld_destination * (params.cols - 1) + params.rows));
    const double bytes = 8.0 * params.rows * params.cols;
    simulation_.clock().add_plain(stream, simulation_.settings.launch_s + bytes / kMemoryBytesPerSecond);
    streams_.push(stream, [params] { sim_transpose(params); });
    return {};
  }

  Status launch(Stream stream, const KernelDescriptor& kernel,
                const PrepareKernelParams& params) noexcept override {
    GEMMHOIST_RETURN_IF_FAILED(simulation_.enter_call());
    demand(kernel.role == KernelRole::prepare, "a prepare kernel");
    check_prepare(kernel.precision, params);
    const double elements = static_cast<double>(params.padded_rows) * params.padded_k;
    const double bytes = elements * (4.0 + image_facts(kernel.precision).unit_bytes() / 4096.0);
    simulation_.clock().add_plain(stream, simulation_.settings.launch_s + bytes / kMemoryBytesPerSecond);
    if (simulation_.settings.arithmetic)
      streams_.push(stream, [precision = kernel.precision, params] { reference_prepare(precision, params); });
    return {};
  }

  Status launch(Stream stream, const KernelDescriptor& kernel,
                const PreparedGemmKernelParams& params) noexcept override {
    GEMMHOIST_RETURN_IF_FAILED(simulation_.enter_call());
    const bool leftover = kernel.role == KernelRole::gemm_leftover;
    demand(leftover || kernel.role == KernelRole::gemm_prepared, "a kernel of images");
    check_image_product(kernel, params);
    const std::int64_t blocks =
        divide_up(params.gemm.m, kernel.tile_m) * divide_up(params.gemm.n, kernel.tile_n);
    if (leftover)  // of which nothing is left, as a rule
      simulation_.clock().add_plain(stream, simulation_.settings.launch_s);
    else
      simulation_.clock().add_kernel(stream, blocks,
                                     sim_block_seconds(simulation_.settings, kernel, params.gemm.k));
    if (!simulation_.settings.arithmetic) return {};
    streams_.push(stream, [leftover, precision = kernel.precision, params] {
      if (leftover)
        reference_leftover(params, sim_gemm);
      else
        reference_image_product(precision, params, sim_gemm);
    });
    return {};
  }

  Status record(Event event, Stream stream) noexcept override {
    GEMMHOIST_RETURN_IF_FAILED(simulation_.enter_call());
    simulation_.clock().add_record(stream, event);
    streams_.record(stream, event);
    return {};
  }
  Status wait(Stream stream, Event event) noexcept override {
    GEMMHOIST_RETURN_IF_FAILED(simulation_.enter_call());
    simulation_.clock().add_wait(stream, event);
    streams_.wait(stream, event);
    return {};
  }
  Status query(Event event, EventState& state) noexcept override {
    // Polls are as many as time passes: counting them would give a sweep over the k-th call no end.
    GEMMHOIST_RETURN_IF_FAILED(enter_poll(event));
    state = streams_.reached(event) ? EventState::reached : EventState::pending;
    return {};
  }
  Status elapsed_seconds(Event begin, Event end, double& seconds) noexcept override {
    GEMMHOIST_RETURN_IF_FAILED(simulation_.enter_call());
    seconds = 1e-9 * static_cast<double>(streams_.time_ns(end) - streams_.time_ns(begin));
    return {};
  }
  Status drain(std::int64_t deadline_ns) noexcept override {
    GEMMHOIST_RETURN_IF_FAILED(simulation_.enter_call());
    return streams_.drain(deadline_ns) ? Status() : Status(StatusCode::timed_out, "drain");
  }

 private:
  static constexpr std::size_t kAlignment = 256;
  static constexpr double kMemoryBytesPerSecond = 3e12;

  static std::size_t floats(std::int64_t count) { return static_cast<std::size_t>(count) * sizeof(float); }

  // The poll that finds an event reached counts as a call, the ones before it do not.
  Status enter_poll(Event event) {
    if (!streams_.reached(event)) return simulation_.alive();
    return simulation_.enter_call();
  }

  std::int64_t free_bytes() const {
    return simulation_.settings.memory_bytes - used_ - simulation_.taken_memory();
  }

  void check_device(DevicePointer pointer, std::size_t bytes) const {
    auto after = allocations_.upper_bound(pointer);
    demand(after != allocations_.begin(), "device memory that was not allocated");
    --after;
    demand(pointer + bytes <= after->first + after->second, "beyond the end of device memory");
  }

  void check_copy(const Copy2D& copy) const {
    demand(copy.width > 0 && copy.height > 0 && (copy.height == 1 || copy.device_pitch >= copy.width) &&
               (copy.height == 1 || copy.host_pitch >= copy.width),
           "copy extents");
    check_device(copy.device, copy.device_pitch * (copy.height - 1) + copy.width);
    const auto first = reinterpret_cast<std::uintptr_t>(copy.host);
    const std::uintptr_t end = first + copy.host_pitch * (copy.height - 1) + copy.width;
    auto after = pinned_.upper_bound(first);
    if (after != pinned_.begin()) {
      --after;
      if (end <= after->first + after->second) return;
    }
    for (std::size_t row = 0; row < copy.height; ++row) {
      const void* line = static_cast<const std::byte*>(copy.host) + row * copy.host_pitch;
      demand(simulation_.kind_of(line, copy.width) == HostMemory::pinned, "host memory that is not pinned");
    }
  }

  void check_gemm(const KernelDescriptor& kernel, const GemmKernelParams& p) const {
    demand(p.m > 0 && p.n > 0 && p.k > 0 && p.k % kernel.tile_k == 0, "gemm extents");
    demand(reinterpret_cast<std::uintptr_t>(p.a) % 128 == 0 &&
               reinterpret_cast<std::uintptr_t>(p.b) % 128 == 0 &&
               reinterpret_cast<std::uintptr_t>(p.c) % 16 == 0,
           "gemm pointers' alignment");
    demand(p.lda % kPanelAlignment == 0 && p.ldb % kPanelAlignment == 0 && p.ldc % 4 == 0 && p.lda >= p.m &&
               p.ldb >= p.n && p.ldc >= p.m,
           "gemm leading dimensions");
    check_device(reinterpret_cast<DevicePointer>(p.a),
                 floats((p.k - 1) * p.lda + round_up(p.m, kernel.tile_m)));
    check_device(reinterpret_cast<DevicePointer>(p.b),
                 floats((p.k - 1) * p.ldb + round_up(p.n, kernel.tile_n)));
    check_device(reinterpret_cast<DevicePointer>(p.c), floats((p.n - 1) * p.ldc + p.m));
  }

  // `rows` of units by k / 32, the first `pitch` apart.
  void check_image(Precision precision, const void* image, const MagnitudeRange* ranges, std::int64_t pitch,
                   std::int64_t rows, std::int64_t k) const {
    const std::int64_t columns = k / kImageK;
    demand(rows > 0 && rows % kImageRows == 0 && k > 0 && k % kImageK == 0 && pitch >= columns,
           "an image's extents");
    const auto units = static_cast<std::size_t>((rows / kImageRows - 1) * pitch + columns);
    demand(reinterpret_cast<std::uintptr_t>(image) % kImageAlignment == 0, "an image's alignment");
    check_device(reinterpret_cast<DevicePointer>(image),
                 units * static_cast<std::size_t>(image_facts(precision).unit_bytes()));
    demand((ranges != nullptr) == (precision == Precision::bf16x6), "ranges");
    if (ranges == nullptr) return;
    demand(reinterpret_cast<std::uintptr_t>(ranges) % alignof(MagnitudeRange) == 0, "ranges' alignment");
    check_device(reinterpret_cast<DevicePointer>(ranges), units * sizeof(MagnitudeRange));
  }

  void check_prepare(Precision precision, const PrepareKernelParams& p) const {
    demand(p.rows > 0 && p.k > 0 && p.padded_rows >= p.rows && p.padded_k >= p.k, "prepare extents");
    demand(p.row_stride == 1 || p.k_stride == 1, "prepare strides");
    check_device(reinterpret_cast<DevicePointer>(p.source),
                 floats((p.rows - 1) * p.row_stride + (p.k - 1) * p.k_stride + 1));
    check_image(precision, p.image, p.ranges, p.unit_pitch, p.padded_rows, p.padded_k);
  }

  void check_image_product(const KernelDescriptor& kernel, const PreparedGemmKernelParams& p) const {
    const Precision precision = kernel.precision;
    const bool ranged = precision == Precision::bf16x6;
    demand(p.gemm.k % kImageK == 0, "a product of images' depth");
    if (ranged) {
      check_gemm(kernel, p.gemm);
    } else {
      check_device(reinterpret_cast<DevicePointer>(p.gemm.c), floats((p.gemm.n - 1) * p.gemm.ldc + p.gemm.m));
    }
    check_image(precision, p.a_image, p.a_ranges, p.a_unit_pitch, round_up(p.gemm.m, kernel.tile_m),
                p.gemm.k);
    check_image(precision, p.b_image, p.b_ranges, p.b_unit_pitch, round_up(p.gemm.n, kernel.tile_n),
                p.gemm.k);
    demand((p.out_of_range != nullptr) == ranged, "marks");
    if (ranged)
      check_device(
          reinterpret_cast<DevicePointer>(p.out_of_range),
          static_cast<std::size_t>(divide_up(p.gemm.m, kImageRows) * divide_up(p.gemm.n, kImageRows)));
  }

  void charge_link(Stream stream, const Copy2D& copy) const {
    const double bytes = static_cast<double>(copy.width) * static_cast<double>(copy.height);
    simulation_.clock().add_plain(
        stream, simulation_.settings.link_latency_s + bytes / simulation_.settings.link_bytes_per_s);
  }

  // Freed only after the streams' threads have ended: hence declared before them.
  struct Leftover {
    std::vector<DevicePointer> pointers;
    void push_back(DevicePointer pointer) { pointers.push_back(pointer); }
    ~Leftover() {
      for (const DevicePointer pointer : pointers) std::free(address(pointer));
    }
  };

  Simulation& simulation_;
  device::DeviceProperties properties_{};
  std::map<DevicePointer, std::size_t> allocations_;
  std::map<std::uintptr_t, std::size_t> pinned_;
  std::int64_t used_ = 0;
  Leftover leftover_;
  Streams streams_;
};

std::atomic<Simulation*> current{nullptr};

}  // namespace

std::unique_ptr<device::Device> make_simulated_device(Simulation& simulation, std::int32_t ordinal) {
  return std::make_unique<SimulatedDevice>(simulation, ordinal);
}

void set_simulation(Simulation* simulation) {
  current.store(simulation);
}

std::unique_ptr<device::Device> simulated_factory(std::int32_t ordinal, Status& status) noexcept {
  Simulation* simulation = current.load();
  if (simulation == nullptr) {
    status = Status(StatusCode::unavailable, "no simulation");
    return nullptr;
  }
  if (status = simulation->enter_call(); !status.ok()) return nullptr;
  return make_simulated_device(*simulation, ordinal);
}

}  // namespace gemmhoist::test
