#include "rates.hpp"

#include <algorithm>
#include <barrier>
#include <cmath>
#include <cstring>
#include <thread>

#include "sampling.hpp"
#include "workload.hpp"

namespace gemmhoist::bench {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr int kRepeats = 7;

// How a thread's share of the chunks moves: `in` from pageable to pinned memory, `mixed` two in for one out,
// as a square product does.
enum class Traffic { in, out, mixed };

struct CopyTest {
  float* pageable;
  std::size_t bytes;
  float* ring;  // pinned, two chunks a thread
  std::size_t chunk;
  int threads;
  Traffic traffic;
};

void copy_share(const CopyTest& test, int thread) {
  char* const pageable = reinterpret_cast<char*>(test.pageable);
  char* const slots = reinterpret_cast<char*>(test.ring) + static_cast<std::size_t>(thread) * 2 * test.chunk;
  const std::size_t chunks = test.bytes / test.chunk;
  const auto threads = static_cast<std::size_t>(test.threads);
  for (std::size_t i = static_cast<std::size_t>(thread), turn = 0; i < chunks; i += threads, ++turn) {
    char* const outside = pageable + i * test.chunk;
    char* const slot = slots + (turn % 2) * test.chunk;
    const bool out = test.traffic == Traffic::out || (test.traffic == Traffic::mixed && turn % 3 == 2);
    std::memcpy(out ? outside : slot, out ? slot : outside, test.chunk);
  }
}

double copy_rate(const CopyTest& test) {
  std::vector<double> seconds;
  double start = 0;
  std::barrier begin(test.threads, [&]() noexcept { start = now_s(); });
  std::barrier end(test.threads, [&]() noexcept { seconds.push_back(now_s() - start); });
  seconds.reserve(kRepeats + 1);
  const auto work = [&](int thread) {
    for (int repeat = 0; repeat <= kRepeats; ++repeat) {
      begin.arrive_and_wait();
      copy_share(test, thread);
      end.arrive_and_wait();
    }
  };
  std::vector<std::thread> others;
  for (int thread = 1; thread < test.threads; ++thread) others.emplace_back(work, thread);
  work(0);
  for (auto& other : others) other.join();
  seconds.erase(seconds.begin());  // warm-up
  const std::size_t moved = test.bytes / test.chunk * test.chunk;
  return static_cast<double>(moved) / summarise(seconds).median;
}

void measure_host_copies(Rates& rates, const CudaRuntime& cuda, float* pageable, std::size_t bytes) {
  constexpr std::size_t kChunks[] = {512 << 10, 2 << 20};  // around the size where a copy still fits in L2
  const int processors = std::max(1u, std::thread::hardware_concurrency());
  std::vector<int> counts;
  for (const int count : {1, 2, 4, 8, 12, 16, processors - 2}) {
    if (count >= 1 && count <= processors) counts.push_back(count);
  }
  const std::size_t ring_bytes = static_cast<std::size_t>(processors) * 2 * kChunks[1];
  const Memory where = cuda.usable() ? Memory::pinned : Memory::pageable;
  const Buffer ring = allocate(ring_bytes / sizeof(float), where, &cuda);
  std::memset(ring.get(), 0, ring_bytes);
  for (const std::size_t chunk : kChunks) {
    for (const int threads : counts) {
      const auto rate = [&](Traffic traffic) {
        return copy_rate({pageable, bytes, ring.get(), chunk, threads, traffic});
      };
      const double mixed = rate(Traffic::mixed);
      if (mixed <= rates.copy) continue;
      rates.copy = mixed;
      rates.copy_threads = threads;
      rates.copy_chunk_bytes = chunk;
      rates.copy_in = rate(Traffic::in);
      rates.copy_out = rate(Traffic::out);
    }
  }
}

void measure_link(Rates& rates, const CudaRuntime& cuda, std::size_t bytes) {
  const std::size_t floats = bytes / sizeof(float);
  const Buffer up = allocate(floats, Memory::pinned, &cuda), down = allocate(floats, Memory::pinned, &cuda);
  void* device[2] = {};
  CudaStream stream[2] = {};
  constexpr unsigned kNonBlocking = 1;
  for (int i = 0; i < 2; ++i) {
    cuda.check(cuda.malloc_device(&device[i], bytes), "cudaMalloc");
    cuda.check(cuda.stream_create(&stream[i], kNonBlocking), "cudaStreamCreate");
  }
  const auto seconds = [&](bool in, bool out) {
    std::vector<double> samples;
    for (int repeat = 0; repeat <= kRepeats; ++repeat) {
      const double start = now_s();
      if (in)
        cuda.check(cuda.memcpy_async(device[0], up.get(), bytes, kHostToDevice, stream[0]),
                   "cudaMemcpyAsync");
      if (out)
        cuda.check(cuda.memcpy_async(down.get(), device[1], bytes, kDeviceToHost, stream[1]),
                   "cudaMemcpyAsync");
      cuda.check(cuda.stream_synchronize(stream[0]), "cudaStreamSynchronize");
      cuda.check(cuda.stream_synchronize(stream[1]), "cudaStreamSynchronize");
      if (repeat > 0) samples.push_back(now_s() - start);
    }
    return summarise(samples).median;
  };
  rates.h2d = static_cast<double>(bytes) / seconds(true, false);
  rates.d2h = static_cast<double>(bytes) / seconds(false, true);
  rates.h2d_beside_d2h = static_cast<double>(bytes) / seconds(true, true);
  for (void* memory : device) cuda.free_device(memory);
}

double bytes_in(const Shape& s) {
  const double m = static_cast<double>(s.m), n = static_cast<double>(s.n), k = static_cast<double>(s.k);
  return 4 * (m * k + k * n + (s.beta != 0.0f ? m * n : 0));
}

double bytes_out(const Shape& s) {
  return 4 * static_cast<double>(s.m) * static_cast<double>(s.n);
}

}  // namespace

Rates measure_rates(const CudaRuntime& cuda, std::size_t bytes) {
  Rates rates;
  rates.h2d = rates.d2h = rates.h2d_beside_d2h = kUnknown;
  const Buffer pageable = allocate(bytes / sizeof(float), Memory::pageable, nullptr);
  std::memset(pageable.get(), 0, bytes);
  measure_host_copies(rates, cuda, pageable.get(), bytes);
  if (cuda.usable()) measure_link(rates, cuda, std::min<std::size_t>(bytes, 256 << 20));
  return rates;
}

std::vector<std::pair<std::string, double>> listed(const Rates& rates) {
  constexpr double giga = 1e-9;
  return {{"pinned_h2d_GBps", rates.h2d * giga},
          {"pinned_d2h_GBps", rates.d2h * giga},
          {"pinned_both_each_GBps", rates.h2d_beside_d2h * giga},
          {"host_copy_in_GBps", rates.copy_in * giga},
          {"host_copy_out_GBps", rates.copy_out * giga},
          {"host_copy_mixed_GBps", rates.copy * giga},
          {"host_copy_threads", static_cast<double>(rates.copy_threads)},
          {"host_copy_chunk_KiB", static_cast<double>(rates.copy_chunk_bytes >> 10)}};
}

double floor_s(const Shape& shape, const Rates& rates, double flops_per_s) {
  if (std::isnan(rates.h2d) || std::isnan(flops_per_s)) return kUnknown;
  return std::max({bytes_in(shape) / rates.h2d, bytes_out(shape) / rates.d2h, shape.flops() / flops_per_s});
}

double staged_floor_s(const Shape& shape, const Rates& rates, double flops_per_s) {
  const double floor = floor_s(shape, rates, flops_per_s);
  if (std::isnan(floor)) return kUnknown;
  return std::max(floor, (bytes_in(shape) + bytes_out(shape)) / rates.copy);
}

}  // namespace gemmhoist::bench
