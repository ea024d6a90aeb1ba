// Device: one accelerator, as the pipeline sees it. device/cuda implements it on the CUDA driver API; the
// tests implement it on the host, with a virtual clock and a fault switch.
//
// Threads: every method is called from the device's own worker thread (worker.hpp), never from a caller's.
// Errors: each answers a Status; after device_lost nothing more is asked of the device but its destruction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/kernel_descriptor.hpp"
#include "core/status.hpp"

namespace gemmhoist::device {

using DevicePointer = std::uint64_t;  // an address in device memory; 0 is none

// Streams are in order within and independent of each other. The set is fixed.
enum class Stream : std::uint8_t { h2d, prepare, compute0, compute1, compute2, compute3, d2h };
inline constexpr int kStreams = 7;
inline constexpr int kComputeStreams = 4;
constexpr Stream compute_stream(int i) noexcept {
  return static_cast<Stream>(static_cast<int>(Stream::compute0) + i % kComputeStreams);
}

// Events are numbered from 0; the device makes them as they are first recorded and keeps them for reuse.
using Event = std::uint32_t;
enum class EventState : std::uint8_t { pending, reached };

// A 2-D copy between pinned host memory and the device: `height` rows of `width` bytes.
struct Copy2D {
  void* host = nullptr;
  std::size_t host_pitch = 0;  // bytes
  DevicePointer device = 0;
  std::size_t device_pitch = 0;  // bytes
  std::size_t width = 0;         // bytes
  std::size_t height = 0;
};

enum class HostMemory : std::uint8_t {
  pageable,  // must be staged
  pinned,    // the whole span is page-locked or managed: the device copies from it directly
  device,    // device-only memory: the CPU could not finish such a call
};

struct DeviceProperties {
  char name[96];
  std::int32_t ordinal;
  std::int32_t arch;  // compute capability times ten
  std::int32_t sm_count;
  std::size_t memory_bytes;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceProperties& properties() const noexcept = 0;
  // Kernels that this device can run, from the registry, by precision and arch.
  virtual std::span<const KernelDescriptor> kernels() const noexcept = 0;

  virtual Status free_memory(std::size_t& bytes) noexcept = 0;
  virtual Status allocate(std::size_t bytes, DevicePointer& pointer) noexcept = 0;  // 256-byte aligned
  virtual Status release(DevicePointer pointer) noexcept = 0;

  // Page-locks memory of ours (never the caller's).
  virtual Status pin(void* memory, std::size_t bytes) noexcept = 0;
  virtual Status unpin(void* memory) noexcept = 0;
  // What the rows of a caller's matrix are: `rows` spans of `width` bytes, `pitch` bytes apart.
  virtual HostMemory classify(const void* memory, std::size_t width, std::size_t pitch,
                              std::size_t rows) noexcept = 0;

  // Asynchronous; the memory named must stay until the stream has passed the copy.
  virtual Status copy_h2d(Stream stream, const Copy2D& copy) noexcept = 0;
  virtual Status copy_d2h(Stream stream, const Copy2D& copy) noexcept = 0;
  virtual Status fill_zero(Stream stream, DevicePointer pointer, std::size_t pitch, std::size_t width,
                           std::size_t height) noexcept = 0;  // bytes; width and pitch multiples of 4
  virtual Status launch(Stream stream, const KernelDescriptor& kernel,
                        const GemmKernelParams& params) noexcept = 0;
  virtual Status launch(Stream stream, const KernelDescriptor& kernel,
                        const TransposeKernelParams& params) noexcept = 0;
  virtual Status launch(Stream stream, const KernelDescriptor& kernel,
                        const PrepareKernelParams& params) noexcept = 0;
  // Roles gemm_prepared and gemm_leftover.
  virtual Status launch(Stream stream, const KernelDescriptor& kernel,
                        const PreparedGemmKernelParams& params) noexcept = 0;

  virtual Status record(Event event, Stream stream) noexcept = 0;
  // Whether events recorded from now on keep time, as both that elapsed_seconds() is asked about must; they
  // do at first. One that keeps none is cheaper, where the device tells the two apart.
  virtual void keep_time(bool) noexcept {}
  virtual Status wait(Stream stream, Event event) noexcept = 0;       // the stream waits, not the thread
  virtual Status query(Event event, EventState& state) noexcept = 0;  // never blocks
  virtual Status elapsed_seconds(Event begin, Event end, double& seconds) noexcept = 0;  // both reached

  // Waits until all streams are idle, or the deadline (observe::now_ns clock) passes.
  virtual Status drain(std::int64_t deadline_ns) noexcept = 0;
};

}  // namespace gemmhoist::device
