// Measuring what the cost model wants to know of this machine, in about 10 ms, while the GPU starts.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/find_kernel.hpp"
#include "observe/trace.hpp"
#include "pipeline/engine.hpp"
#include "pipeline/execution.hpp"
#include "pipeline/host_copy.hpp"

namespace gemmhoist::pipeline {
namespace {

using device::Stream;

constexpr std::int64_t kElement = sizeof(float);
constexpr std::int64_t kSmallCopy = 64 << 10;
constexpr std::int64_t kLargeCopy = std::int64_t{16} << 20;
// What one measurement may take; a device slow enough to pass this is known well enough from a smaller one.
constexpr double kBudgetSeconds = 2e-3;
// Nothing here waits longer for the device than this.
constexpr std::int64_t kPatienceNs = 1'000'000'000;
// From a caller's hand to the worker and back: two futex wakes.
constexpr double kHandOverSeconds = 10e-6;

// What a matrix may hold, for as much of the arena as a measurement copies from: half a MiB or a line.
std::int64_t pattern_elements(const Engine& engine, std::int64_t line) noexcept {
  constexpr std::int64_t kEnough = (512 << 10) / kElement;
  const std::int64_t room = engine.pinned_bytes() / kElement;
  return std::min(std::max(kEnough, line), room) / line * line;
}
void fill_pattern(float* values, std::int64_t count) noexcept {
  std::uint32_t state = 0x9E3779B9;
  for (std::int64_t i = 0; i < count; ++i) {
    state ^= state << 13, state ^= state >> 17, state ^= state << 5;
    values[i] = static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-31F;
  }
}

class Meter {
 public:
  Meter(Engine& engine, device::Device& device) noexcept : engine_(engine), device_(device) {}

  Status link(Stream stream, LinkRate& rate) noexcept;
  Status kernel(double& flops_per_s) noexcept;
  // A product of images, its operands not counted; 0 where the device has no kernel for it.
  Status image_kernel(Precision precision, double& flops_per_s) noexcept;
  double host_copy_bytes_per_s() noexcept;
  Status small_call(double& seconds);

 private:
  Status await(device::Event event) noexcept;
  Status copy_seconds(Stream stream, std::int64_t bytes, int count, int repeats, double& least) noexcept;
  template <typename Params>
  Status launch_seconds(const KernelDescriptor& kernel, const Params& params, double& seconds) noexcept;
  template <typename Params>
  Status rate(const KernelDescriptor& kernel, Params params, double& flops_per_s) noexcept;
  Status reserve(const DeviceArena::Sizes& sizes) noexcept;
  Status make_image(const KernelDescriptor& prepare, const PrepareKernelParams& params) noexcept;

  Engine& engine_;
  device::Device& device_;
};

Status Meter::await(device::Event event) noexcept {
  const std::int64_t deadline = observe::now_ns() + kPatienceNs;
  device::EventState state = device::EventState::pending;
  while (true) {
    GEMMHOIST_RETURN_IF_FAILED(device_.query(event, state));
    if (state == device::EventState::reached) return {};
    if (observe::now_ns() > deadline) return Status(StatusCode::timed_out, "measuring");
    pause();
  }
}

// As the pipeline sees copies: from the first call, each with its event, to the last event as the worker
// polls it. The least of some, since everything that disturbs makes it longer.
Status Meter::copy_seconds(Stream stream, std::int64_t bytes, int count, int repeats,
                           double& least) noexcept {
  device::Copy2D copy;
  copy.host = engine_.pinned();
  copy.device = engine_.arena().at(DeviceArena::results);
  copy.host_pitch = copy.device_pitch = copy.width = static_cast<std::size_t>(bytes);
  copy.height = 1;
  least = std::numeric_limits<double>::max();
  device_.keep_time(false);
  for (int i = 0; i < repeats; ++i) {
    const std::int64_t begin = observe::now_ns();
    for (int j = 0; j < count; ++j) {
      GEMMHOIST_RETURN_IF_FAILED(stream == Stream::h2d ? device_.copy_h2d(stream, copy)
                                                       : device_.copy_d2h(stream, copy));
      GEMMHOIST_RETURN_IF_FAILED(device_.record(Events::kBase, stream));
    }
    GEMMHOIST_RETURN_IF_FAILED(await(Events::kBase));
    least = std::min(least, 1e-9 * static_cast<double>(observe::now_ns() - begin));
  }
  return {};
}

// seconds(bytes) = latency + bytes / bandwidth. The bandwidth by two sizes, far apart; the latency is what a
// copy adds to a stream that has others before and behind it (H200: 2.7 us in, 1.7 us out), not what a lone
// one takes until the host sees it (9 us): the pipeline keeps copies queued.
Status Meter::link(Stream stream, LinkRate& rate) noexcept {
  constexpr int kSmallRepeats = 8, kLargeRepeats = 3;
  constexpr int kFew = 4, kMany = 20;
  const std::int64_t small = std::min(kSmallCopy, engine_.pinned_bytes() / 4);
  std::int64_t large = std::min(kLargeCopy, engine_.pinned_bytes());
  double small_s = 0, large_s = 0;
  GEMMHOIST_RETURN_IF_FAILED(copy_seconds(stream, small, 1, kSmallRepeats, small_s));
  while (large > 4 * small &&
         small_s / static_cast<double>(small) * static_cast<double>(large) > 8 * kBudgetSeconds) {
    large /= 2;
  }
  GEMMHOIST_RETURN_IF_FAILED(copy_seconds(stream, large, 1, kLargeRepeats, large_s));
  const double bytes = static_cast<double>(large - small);
  rate.bytes_per_s = bytes / std::max(large_s - small_s, bytes / 1e12);
  double few_s = 0, many_s = 0;
  GEMMHOIST_RETURN_IF_FAILED(copy_seconds(stream, small, kFew, kSmallRepeats, few_s));
  GEMMHOIST_RETURN_IF_FAILED(copy_seconds(stream, small, kMany, kSmallRepeats, many_s));
  const double each_s = std::max(many_s - few_s, 0.0) / (kMany - kFew);
  rate.latency_s = std::max(each_s - static_cast<double>(small) / rate.bytes_per_s, 0.5e-6);
  return {};
}

// All copy threads and one more, as when a caller waits; memory to memory, 512 KiB pieces.
double Meter::host_copy_bytes_per_s() noexcept {
  constexpr int kRepeats = 3;
  constexpr std::int64_t kPieceElements = (512 << 10) / kElement;
  const std::int64_t elements = engine_.pinned_bytes() / 2 / kElement;
  Gate open;
  CopyTask task;
  task.kind = CopyKind::fill;
  task.gate = &open;
  task.source = engine_.pinned();
  task.destination = engine_.pinned() + elements;
  task.source_pitch = task.destination_pitch = elements;
  task.pieces = cut_pieces(elements, 1, kPieceElements);
  double least = std::numeric_limits<double>::max();
  engine_.pool().set_active(true);
  for (int i = 0; i < kRepeats; ++i) {
    const std::int64_t begin = observe::now_ns();
    engine_.run_task(task);
    least = std::min(least, 1e-9 * static_cast<double>(observe::now_ns() - begin));
  }
  engine_.pool().set_active(false);
  return static_cast<double>(elements * kElement) / std::max(least, 1e-9);
}

template <typename Params>
Status Meter::launch_seconds(const KernelDescriptor& kernel, const Params& params, double& seconds) noexcept {
  const device::Event begin = Events::begin(Events::kSteps, 0), end = Events::end(Events::kSteps, 0);
  device_.keep_time(true);
  GEMMHOIST_RETURN_IF_FAILED(device_.record(begin, Stream::compute0));
  GEMMHOIST_RETURN_IF_FAILED(device_.launch(Stream::compute0, kernel, params));
  GEMMHOIST_RETURN_IF_FAILED(device_.record(end, Stream::compute0));
  GEMMHOIST_RETURN_IF_FAILED(await(end));
  GEMMHOIST_RETURN_IF_FAILED(device_.elapsed_seconds(begin, end, seconds));
  seconds = std::max(seconds, 1e-9);
  return {};
}

constexpr std::int64_t kDepth = 1024;

GemmKernelParams& product_of(GemmKernelParams& params) noexcept {
  return params;
}
GemmKernelParams& product_of(PreparedGemmKernelParams& params) noexcept {
  return params.gemm;
}

// Two full waves of tiles, about as high as wide.
void set_extents(const KernelDescriptor& kernel, int sms, GemmKernelParams& params) noexcept {
  constexpr int kWaves = 2;
  const int tiles = kWaves * std::max(sms, 1) * std::max(kernel.blocks_per_sm, 1);
  const int down = std::max(1, static_cast<int>(std::sqrt(static_cast<double>(tiles))));
  const int across = (tiles + down - 1) / down;
  params.m = kernel.tile_m * down;
  params.n = kernel.tile_n * across;
  params.lda = round_up(params.m, kPanelAlignment);
  params.ldb = round_up(params.n, kPanelAlignment);
  params.ldc = params.lda;
  params.alpha = 1;
}

template <typename Params>
Status Meter::rate(const KernelDescriptor& kernel, Params params, double& flops_per_s) noexcept {
  GemmKernelParams& product = product_of(params);
  const std::int64_t depth = round_up(kDepth, kernel.tile_k);
  // A shallow one first: it warms up, and tells whether the deep one is affordable.
  double seconds = 0;
  product.k = static_cast<std::int32_t>(round_up(kDepth / 16, kernel.tile_k));
  GEMMHOIST_RETURN_IF_FAILED(launch_seconds(kernel, params, seconds));
  if (seconds * static_cast<double>(depth / product.k) < kBudgetSeconds * 2) {
    product.k = static_cast<std::int32_t>(depth);
    GEMMHOIST_RETURN_IF_FAILED(launch_seconds(kernel, params, seconds));
    double again = 0;
    GEMMHOIST_RETURN_IF_FAILED(launch_seconds(kernel, params, again));
    seconds = std::min(seconds, again);
  }
  const double flops = 2.0 * static_cast<double>(product.m) * product.n * product.k;
  flops_per_s = flops / seconds;
  return {};
}

Status Meter::reserve(const DeviceArena::Sizes& sizes) noexcept {
  return engine_.arena().reserve(device_, sizes, std::numeric_limits<std::int64_t>::max());
}

// The largest fp32 tile.
Status Meter::kernel(double& flops_per_s) noexcept {
  const KernelDescriptor* best = nullptr;
  for (const KernelDescriptor& kernel : device_.kernels()) {
    if (kernel.role != KernelRole::gemm || kernel.precision != Precision::fp32) continue;
    if (best == nullptr || kernel.tile_m * kernel.tile_n > best->tile_m * best->tile_n) best = &kernel;
  }
  if (best == nullptr) return Status(StatusCode::unsupported, "no kernel");
  const std::int64_t depth = round_up(kDepth, best->tile_k);
  GemmKernelParams params{};
  set_extents(*best, device_.properties().sm_count, params);
  DeviceArena::Sizes sizes{};
  sizes[DeviceArena::panels_a] = params.lda * depth * kElement;
  sizes[DeviceArena::panels_b] = params.ldb * depth * kElement;
  sizes[DeviceArena::results] = params.ldc * params.n * kElement;
  GEMMHOIST_RETURN_IF_FAILED(reserve(sizes));
  const auto zero = [&](DeviceArena::Kind kind) {
    const auto bytes = static_cast<std::size_t>(sizes[kind]);
    return device_.fill_zero(Stream::compute0, engine_.arena().at(kind), bytes, bytes, 1);
  };
  GEMMHOIST_RETURN_IF_FAILED(zero(DeviceArena::panels_a));
  GEMMHOIST_RETURN_IF_FAILED(zero(DeviceArena::panels_b));
  params.a = reinterpret_cast<const float*>(engine_.arena().at(DeviceArena::panels_a));
  params.b = reinterpret_cast<const float*>(engine_.arena().at(DeviceArena::panels_b));
  params.c = reinterpret_cast<float*>(engine_.arena().at(DeviceArena::results));
  return rate(*best, params, flops_per_s);
}

// An image of the pattern in the pinned arena, whole lines of it again and again: on zeros tensor cores draw
// less power, and a chip at its limit then runs a quarter faster than on anybody's data.
Status Meter::make_image(const KernelDescriptor& prepare, const PrepareKernelParams& params) noexcept {
  const std::int64_t pattern = pattern_elements(engine_, params.k_stride);
  if (pattern == 0) return Status(StatusCode::out_of_memory, "pinned arena");
  const std::int64_t elements = params.k_stride * params.k;
  for (std::int64_t begin = 0; begin < elements; begin += pattern) {
    device::Copy2D copy;
    copy.host = engine_.pinned();
    copy.device =
        reinterpret_cast<device::DevicePointer>(params.source) + static_cast<std::uint64_t>(begin * kElement);
    copy.width = static_cast<std::size_t>(std::min(pattern, elements - begin) * kElement);
    copy.host_pitch = copy.device_pitch = copy.width;
    copy.height = 1;
    GEMMHOIST_RETURN_IF_FAILED(device_.copy_h2d(Stream::compute0, copy));
  }
  GEMMHOIST_RETURN_IF_FAILED(device_.launch(Stream::compute0, prepare, params));
  GEMMHOIST_RETURN_IF_FAILED(device_.record(Events::kBase, Stream::compute0));
  return await(Events::kBase);  // the arena is free again
}

Status Meter::image_kernel(Precision precision, double& flops_per_s) noexcept {
  flops_per_s = 0;
  const auto kernels = device_.kernels();
  plan::Plan plan;  // what it holds of a plan are the buffers
  plan::Images& images = plan.images;
  ImageKernels found;
  if (!find_image_kernels(kernels, precision, found)) return {};
  images.prepare = found.prepare;
  images.leftover = found.leftover;
  const KernelDescriptor& product = kernels[static_cast<std::size_t>(found.product)];
  const KernelDescriptor& prepare = kernels[static_cast<std::size_t>(found.prepare)];
  const std::int64_t depth = round_up(round_up(kDepth, product.tile_k), kImageK);
  PreparedGemmKernelParams params{};
  GemmKernelParams& gemm = params.gemm;
  set_extents(product, device_.properties().sm_count, gemm);
  const std::int64_t down = divide_up(gemm.m, kImageRows), across = divide_up(gemm.n, kImageRows);
  images.unit_pitch = depth / kImageK;
  images.unit_bytes = image_facts(precision).unit_bytes();
  images.a_units = down * images.unit_pitch;
  images.b_units = across * images.unit_pitch;
  images.mark_bytes = down * across;
  plan.a_bytes = gemm.lda * depth * kElement;
  plan.b_bytes = gemm.ldb * depth * kElement;
  plan.c_bytes = gemm.ldc * gemm.n * kElement;
  GEMMHOIST_RETURN_IF_FAILED(reserve(DeviceArena::sizes(plan, 0)));
  const auto at = [&](DeviceArena::Kind kind) { return reinterpret_cast<void*>(engine_.arena().at(kind)); };
  gemm.a = static_cast<const float*>(at(DeviceArena::panels_a));
  gemm.b = static_cast<const float*>(at(DeviceArena::panels_b));
  gemm.c = static_cast<float*>(at(DeviceArena::results));
  params.a_image = at(DeviceArena::images_a);
  params.b_image = at(DeviceArena::images_b);
  if (images.ranged()) {
    params.a_ranges = static_cast<const MagnitudeRange*>(at(DeviceArena::ranges_a));
    params.b_ranges = static_cast<const MagnitudeRange*>(at(DeviceArena::ranges_b));
    params.out_of_range = static_cast<std::uint8_t*>(at(DeviceArena::marks));
  }
  params.a_unit_pitch = params.b_unit_pitch = images.unit_pitch;
  fill_pattern(engine_.pinned(),
               std::max(pattern_elements(engine_, gemm.lda), pattern_elements(engine_, gemm.ldb)));
  const auto image = [&](const float* source, const void* units, const MagnitudeRange* ranges,
                         std::int64_t ld, std::int32_t rows) {
    PrepareKernelParams made{};
    made.source = source;
    made.image = const_cast<void*>(units);
    made.ranges = const_cast<MagnitudeRange*>(ranges);
    made.row_stride = 1;
    made.k_stride = ld;
    made.unit_pitch = images.unit_pitch;
    made.rows = rows;
    made.k = made.padded_k = static_cast<std::int32_t>(depth);
    made.padded_rows = static_cast<std::int32_t>(round_up(rows, kImageRows));
    return make_image(prepare, made);
  };
  GEMMHOIST_RETURN_IF_FAILED(image(gemm.a, params.a_image, params.a_ranges, gemm.lda, gemm.m));
  GEMMHOIST_RETURN_IF_FAILED(image(gemm.b, params.b_image, params.b_ranges, gemm.ldb, gemm.n));
  return rate(product, params, flops_per_s);
}

// A whole call, small enough that all of it is fixed cost.
Status Meter::small_call(double& seconds) {
  constexpr std::int64_t kEdge = 64;
  constexpr int kRepeats = 3;
  std::vector<float> a(kEdge * kEdge, 1.0F), b(kEdge * kEdge, 1.0F), c(kEdge * kEdge);
  GemmCall call;
  call.m = call.n = call.k = call.lda = call.ldb = call.ldc = kEdge;
  call.alpha = 1;
  call.a = a.data();
  call.b = b.data();
  call.c = c.data();
  seconds = std::numeric_limits<double>::max();
  for (int i = 0; i < kRepeats; ++i) {
    Job* job = take_job(call, Precision::fp32);
    if (job == nullptr) return Status(StatusCode::unavailable, "no job");
    const std::int64_t begin = observe::now_ns();
    const Status status = engine_.run(*job, device_);
    seconds = std::min(seconds, 1e-9 * static_cast<double>(observe::now_ns() - begin));
    let_go(*job);
    GEMMHOIST_RETURN_IF_FAILED(status);
  }
  return {};
}

Status measure_all(Engine& engine, device::Device& device, MachineProfile& measured) {
  Meter meter(engine, device);
  GEMMHOIST_RETURN_IF_FAILED(meter.kernel(measured.kernel_flops_per_s));
  if (engine.precision() != Precision::fp32) {
    double rate = 0;
    const Status status = meter.image_kernel(engine.precision(), rate);
    // Without the memory for it, or a rate, products are simply made in fp32.
    if (!status.ok() && status.code() != StatusCode::out_of_memory) return status;
    set_flops_per_s(measured, engine.precision(), status.ok() ? rate : 0);
  }
  DeviceArena::Sizes sizes{};
  sizes[DeviceArena::results] = std::min(kLargeCopy, engine.pinned_bytes());
  GEMMHOIST_RETURN_IF_FAILED(engine.arena().reserve(device, sizes, std::numeric_limits<std::int64_t>::max()));
  GEMMHOIST_RETURN_IF_FAILED(meter.link(Stream::h2d, measured.h2d));
  GEMMHOIST_RETURN_IF_FAILED(meter.link(Stream::d2h, measured.d2h));
  measured.host_copy_bytes_per_s = meter.host_copy_bytes_per_s();
  measured.sm_count = device.properties().sm_count;
  measured.host_threads = engine.pool().size() + 1;
  double small_s = 0;
  GEMMHOIST_RETURN_IF_FAILED(meter.small_call(small_s));
  measured.call_fixed_s =
      std::max(small_s - measured.h2d.latency_s - measured.d2h.latency_s, 0.0) + kHandOverSeconds;
  measured.measured = true;
  return {};
}

}  // namespace

Status measure(Engine& engine, device::Device& device, MachineProfile& profile) noexcept {
  MachineProfile measured = profile;
  Status status;
  try {
    status = measure_all(engine, device, measured);
  } catch (...) {
    status = Status(StatusCode::out_of_memory, "host memory");
  }
  if (status.ok()) {
    profile = measured;
    return status;
  }
  // Calls may follow all the same: nothing of the measurement may still be under way then.
  if (Status drained = engine.drain(device, true); !drained.ok()) return drained;
  return status;
}

}  // namespace gemmhoist::pipeline
