#include "pipeline/host_copy.hpp"

#include <cstddef>
#include <cstring>

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

}  // namespace

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
