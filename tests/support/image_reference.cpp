#include "support/image_reference.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/checked.hpp"
#include "kernels/magnitude_range.hpp"

namespace gemmhoist::test {
namespace {

// A unit: planes of 128 rows by 32 steps, one value after another along k.
template <typename Value>
Value* plane(void* unit, int piece) {
  return static_cast<Value*>(unit) + static_cast<std::ptrdiff_t>(piece) * kImageRows * kImageK;
}

float round_off(float value, int bits) {
  if (!std::isfinite(value)) return value;
  const auto all = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t half = (std::uint32_t{1} << (bits - 1)) - 1 + (all >> bits & 1);
  return std::bit_cast<float>((all + half) & ~((std::uint32_t{1} << bits) - 1));
}

std::byte* unit_at(const void* image, std::int64_t index, Precision precision) {
  return static_cast<std::byte*>(const_cast<void*>(image)) + index * image_facts(precision).unit_bytes();
}

void store(Precision precision, std::byte* unit, int row, int step, float value) {
  const int place = row * kImageK + step;
  if (precision == Precision::tf32) {
    plane<float>(unit, 0)[place] = round_to_tf32(value);
    return;
  }
  for (int piece = 0; piece < 3; ++piece) {
    const float part = round_to_bf16(value);
    plane<std::uint16_t>(unit, piece)[place] =
        static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(part) >> 16);
    value -= part;
  }
}

float load(Precision precision, std::byte* unit, int row, int step) {
  const int place = row * kImageK + step;
  if (precision == Precision::tf32) return plane<float>(unit, 0)[place];
  float sum = 0;
  for (int piece = 2; piece >= 0; --piece) {
    const std::uint32_t bits = std::uint32_t{plane<std::uint16_t>(unit, piece)[place]} << 16;
    sum += std::bit_cast<float>(bits);
  }
  return sum;
}

void widen(MagnitudeRange& range, MagnitudeRange by) {
  range.least = std::min(range.least, by.least);
  range.greatest = std::max(range.greatest, by.greatest);
}

// Rows [128 t, 128 t + 128) of an image as a K-outer panel.
std::vector<float> panel_of(Precision precision, const void* image, std::int64_t pitch, std::int64_t t,
                            std::int32_t k) {
  std::vector<float> panel(static_cast<std::size_t>(kImageRows) * static_cast<std::size_t>(k));
  for (std::int32_t q = 0; q < k / kImageK; ++q) {
    std::byte* unit = unit_at(image, t * pitch + q, precision);
    for (int step = 0; step < kImageK; ++step) {
      float* line = panel.data() + static_cast<std::ptrdiff_t>(q * kImageK + step) * kImageRows;
      for (int row = 0; row < kImageRows; ++row) line[row] = load(precision, unit, row, step);
    }
  }
  return panel;
}

MagnitudeRange range_of(const MagnitudeRange* ranges, std::int64_t pitch, std::int64_t t, std::int32_t k) {
  MagnitudeRange range = kernels::kNoMagnitude;
  for (std::int32_t q = 0; q < k / kImageK; ++q) widen(range, ranges[t * pitch + q]);
  return range;
}

// The part of a product that is tile (t, u) of 128 x 128, its operands still those of the whole.
GemmKernelParams tile_of(const GemmKernelParams& whole, std::int64_t t, std::int64_t u) {
  GemmKernelParams tile = whole;
  tile.m = static_cast<std::int32_t>(std::min<std::int64_t>(kImageRows, whole.m - t * kImageRows));
  tile.n = static_cast<std::int32_t>(std::min<std::int64_t>(kImageRows, whole.n - u * kImageRows));
  tile.c += t * kImageRows + u * kImageRows * whole.ldc;
  return tile;
}

}  // namespace

float round_to_bf16(float value) {
  return round_off(value, 16);
}
float round_to_tf32(float value) {
  return round_off(value, 13);
}

void reference_prepare(Precision precision, const PrepareKernelParams& p) {
  for (std::int64_t t = 0; t < p.padded_rows / kImageRows; ++t) {
    for (std::int64_t q = 0; q < p.padded_k / kImageK; ++q) {
      std::byte* unit = unit_at(p.image, t * p.unit_pitch + q, precision);
      MagnitudeRange range = kernels::kNoMagnitude;
      for (int row = 0; row < kImageRows; ++row) {
        for (int step = 0; step < kImageK; ++step) {
          const std::int64_t i = t * kImageRows + row, k = q * kImageK + step;
          const bool inside = i < p.rows && k < p.k;
          const float value = inside ? p.source[i * p.row_stride + k * p.k_stride] : 0.0F;
          store(precision, unit, row, step, value);
          const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFFU;
          if (magnitude != 0) widen(range, {magnitude, magnitude});
        }
      }
      if (p.ranges != nullptr) p.ranges[t * p.unit_pitch + q] = range;
    }
  }
}

void reference_image_product(Precision precision, const PreparedGemmKernelParams& p, PanelProduct multiply) {
  const std::int64_t down = divide_up(p.gemm.m, kImageRows), across = divide_up(p.gemm.n, kImageRows);
  for (std::int64_t t = 0; t < down; ++t) {
    const std::vector<float> a = panel_of(precision, p.a_image, p.a_unit_pitch, t, p.gemm.k);
    for (std::int64_t u = 0; u < across; ++u) {
      if (p.out_of_range != nullptr) {
        const bool out =
            !kernels::bf16x6_in_range(range_of(p.a_ranges, p.a_unit_pitch, t, p.gemm.k),
                                      range_of(p.b_ranges, p.b_unit_pitch, u, p.gemm.k), p.gemm.k);
        p.out_of_range[t + u * down] = out ? 1 : 0;
        if (out) continue;
      }
      const std::vector<float> b = panel_of(precision, p.b_image, p.b_unit_pitch, u, p.gemm.k);
      GemmKernelParams tile = tile_of(p.gemm, t, u);
      tile.a = a.data();
      tile.b = b.data();
      tile.lda = tile.ldb = kImageRows;
      multiply(tile);
    }
  }
}

void reference_leftover(const PreparedGemmKernelParams& p, PanelProduct multiply) {
  const std::int64_t down = divide_up(p.gemm.m, kImageRows), across = divide_up(p.gemm.n, kImageRows);
  for (std::int64_t t = 0; t < down; ++t) {
    for (std::int64_t u = 0; u < across; ++u) {
      if (p.out_of_range[t + u * down] == 0) continue;
      GemmKernelParams tile = tile_of(p.gemm, t, u);
      tile.a += t * kImageRows;
      tile.b += u * kImageRows;
      multiply(tile);
    }
  }
}

}  // namespace gemmhoist::test
