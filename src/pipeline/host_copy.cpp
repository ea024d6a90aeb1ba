#include "pipeline/host_copy.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "os/os.hpp"

namespace gemmhoist::pipeline {
namespace {

constexpr std::int64_t kPageElements = 4096 / static_cast<std::int64_t>(sizeof(float));

// Unaligned vectors by memcpy: at -O2 the compiler of Debian 12 vectorises no loop of unknown length itself.
using Vector [[gnu::vector_size(32)]] = float;
constexpr std::int64_t kLanes = sizeof(Vector) / sizeof(float);

void add_scaled_line(float* c, const float* product, std::int64_t width, float beta) noexcept {
  std::int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) {
    Vector old, sum;
    std::memcpy(&old, c + i, sizeof(old));
    std::memcpy(&sum, product + i, sizeof(sum));
    sum += beta * old;
    std::memcpy(c + i, &sum, sizeof(sum));
  }
  for (; i < width; ++i) c[i] = product[i] + beta * c[i];
}

#if defined(__SSE2__)
constexpr std::int64_t kLineElements = 64 / static_cast<std::int64_t>(sizeof(float));

// Streaming stores. A device that reads what ordinary stores left in the caches of the copying CPUs gets 25
// instead of 45 GB/s (H200, the 4 MiB before it written by 12 CPUs), and the copy itself is faster by a
// fifth. Tried on the way back, where the device writes lines that copying CPUs have read: flushing or
// demoting these restores the link's rate, but halves that of the copies; reading with prefetchnta changes
// nothing.
//
// Whole cache lines of the destination; what is left at both ends goes the usual way.
void stream_line(float* destination, const float* source, std::int64_t width) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(destination);
  const auto head = std::min(static_cast<std::int64_t>((64 - address % 64) % 64 / sizeof(float)), width);
  std::memcpy(destination, source, static_cast<std::size_t>(head) * sizeof(float));
  std::int64_t i = head;
  for (; i + kLineElements <= width; i += kLineElements) {
    const __m128 a = _mm_loadu_ps(source + i), b = _mm_loadu_ps(source + i + 4);
    const __m128 c = _mm_loadu_ps(source + i + 8), d = _mm_loadu_ps(source + i + 12);
    _mm_stream_ps(destination + i, a);
    _mm_stream_ps(destination + i + 4, b);
    _mm_stream_ps(destination + i + 8, c);
    _mm_stream_ps(destination + i + 12, d);
  }
  std::memcpy(destination + i, source + i, static_cast<std::size_t>(width - i) * sizeof(float));
}
#endif

}  // namespace

void stream_lines(float* destination, std::int64_t destination_pitch, const float* source,
                  std::int64_t source_pitch, std::int64_t width, std::int64_t height) noexcept {
#if defined(__SSE2__)
  if (source_pitch == width && destination_pitch == width) {
    width *= height;
    height = 1;
  }
  for (std::int64_t y = 0; y < height; ++y)
    stream_line(destination + y * destination_pitch, source + y * source_pitch, width);
  _mm_sfence();  // streaming stores are weakly ordered: whoever sees the piece done must see them
#else
  copy_lines(destination, destination_pitch, source, source_pitch, width, height);
#endif
}

void copy_lines(float* destination, std::int64_t destination_pitch, const float* source,
                std::int64_t source_pitch, std::int64_t width, std::int64_t height) noexcept {
  if (source_pitch == width && destination_pitch == width) {
    width *= height;
    height = 1;
  }
  for (std::int64_t y = 0; y < height; ++y) {
    std::memcpy(destination + y * destination_pitch, source + y * source_pitch,
                static_cast<std::size_t>(width) * sizeof(float));
  }
}

void write_back_lines(float* c, std::int64_t ldc, const float* product, std::int64_t pitch,
                      std::int64_t width, std::int64_t height, float beta) noexcept {
  if (beta == 0) {
    copy_lines(c, ldc, product, pitch, width, height);
    return;
  }
  const os::DefaultFloatingPoint environment;
  for (std::int64_t y = 0; y < height; ++y) add_scaled_line(c + y * ldc, product + y * pitch, width, beta);
}

void touch_pages(float* memory, std::int64_t elements) noexcept {
  for (std::int64_t i = 0; i < elements; i += kPageElements) {
    *static_cast<volatile float*>(memory + i) = 0;
  }
}

}  // namespace gemmhoist::pipeline
