// Host copies: what copy threads do to memory. Lengths in elements.
#pragma once

#include <cstdint>

namespace gemmhoist::pipeline {

// destination := source, `height` lines of `width`.
void copy_lines(float* destination, std::int64_t destination_pitch, const float* source,
                std::int64_t source_pitch, std::int64_t width, std::int64_t height) noexcept;

// As copy_lines, past the caches where the processor can: for memory that a device reads next.
void stream_lines(float* destination, std::int64_t destination_pitch, const float* source,
                  std::int64_t source_pitch, std::int64_t width, std::int64_t height) noexcept;

// C := product + beta C. beta = 0 (either sign) never reads C; beta = 1 adds nothing but the product. In the
// default floating-point environment, whatever the host's is: the calling thread may flush subnormals, trap
// or round its own way.
void write_back_lines(float* c, std::int64_t ldc, const float* product, std::int64_t pitch,
                      std::int64_t width, std::int64_t height, float beta) noexcept;

// One write to each page.
void touch_pages(float* memory, std::int64_t elements) noexcept;

// The processor's hint that this is a spin loop.
inline void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace gemmhoist::pipeline
