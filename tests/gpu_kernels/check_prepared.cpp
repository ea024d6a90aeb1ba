#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "check_gemm.hpp"
#include "core/checked.hpp"
#include "kernels/magnitude_range.hpp"
#include "prepared.hpp"
#include "products.hpp"

namespace gemmhoist::gpu_kernels {
namespace {

std::uint32_t bits(float value) {
  return std::bit_cast<std::uint32_t>(value);
}

// Round to nearest even, by the book.
std::uint16_t bf16(float value) {
  const std::uint32_t x = bits(value);
  if (std::isnan(value)) return 0x7FFF;
  return static_cast<std::uint16_t>((x + 0x7FFF + (x >> 16 & 1)) >> 16);
}

// To 11 bits, ties away from zero; never up to infinity.
float tf32(float value) {
  const std::uint32_t x = bits(value);
  if (std::isnan(value)) return std::bit_cast<float>(x | 0x00400000u);
  const float up = std::bit_cast<float>((x + 0x1000) & ~0x1FFFu);
  return std::isinf(up) && !std::isinf(value) ? std::bit_cast<float>(x & ~0x1FFFu) : up;
}

float round_to(Precision precision, float value) {
  return precision == Precision::tf32 ? tf32(value) : value;
}

// What unit (t, q) of an image must be.
struct ExpectedUnit {
  std::vector<std::uint8_t> image;
  MagnitudeRange range = kernels::kNoMagnitude;
};
template <typename At>
ExpectedUnit expected_unit(Precision precision, const At& at) {
  const ImageFacts facts = image_facts(precision);
  ExpectedUnit unit;
  unit.image.resize(static_cast<std::size_t>(facts.unit_bytes()));
  const int row_bytes = kImageK * facts.element_bytes;
  for (int r = 0; r < kImageRows; ++r)
    for (int p = 0; p < kImageK; ++p) {
      float value = at(r, p);
      const std::uint32_t magnitude = bits(value) & 0x7FFFFFFFu;
      unit.range.greatest = std::max(unit.range.greatest, magnitude);
      if (magnitude != 0) unit.range.least = std::min(unit.range.least, magnitude);
      const int byte = p * facts.element_bytes;
      const int chunk = byte / 16 ^ (row_bytes == 64 ? r / 2 % 4 : r % 8);
      for (int piece = 0; piece < facts.pieces; ++piece) {
        std::uint8_t* const to =
            unit.image.data() + piece * facts.plane_bytes() + r * row_bytes + chunk * 16 + byte % 16;
        if (precision == Precision::tf32) {
          const float rounded = tf32(value);
          std::memcpy(to, &rounded, sizeof rounded);
        } else {
          const std::uint16_t high = bf16(value);
          std::memcpy(to, &high, sizeof high);
          value -= std::bit_cast<float>(std::uint32_t{high} << 16);
        }
      }
    }
  return unit;
}

void check_image(Gpu& gpu, const KernelDescriptor& kernel, std::int32_t rows, std::int32_t k, bool k_inner,
                 Family family, std::mt19937& random, Report& report) {
  const std::int64_t ld = (k_inner ? k : rows) + 3;
  std::vector<float> source(static_cast<std::size_t>(1 + ld * (k_inner ? rows : k)));
  const PanelShape shape{k_inner ? k : rows, ld, k_inner ? rows : k, k_inner ? rows : k};
  fill_panel(family, Operand::a, shape, std::span(source).subspan(1), random);
  const Buffer device(gpu, source);
  const StridedOperand operand{device.device() + 1, k_inner ? ld : 1, k_inner ? 1 : ld};
  const PreparedOperand prepared(gpu, kernel, operand, rows, k, 2 * kImageRows);
  gpu.launch(kernel, prepared.params());
  gpu.synchronize();
  const std::vector<std::uint8_t> image = prepared.image();
  const std::vector<MagnitudeRange> ranges = prepared.ranges();
  const PrepareKernelParams& p = prepared.params();
  const auto unit_bytes = static_cast<std::size_t>(image_facts(kernel.precision).unit_bytes());
  std::int64_t wrong_units = 0, wrong_ranges = 0;
  for (std::int64_t t = 0; t < p.padded_rows / kImageRows; ++t)
    for (std::int64_t q = 0; q < p.padded_k / kImageK; ++q) {
      const ExpectedUnit unit = expected_unit(kernel.precision, [&](int r, int s) {
        const std::int64_t row = t * kImageRows + r, step = q * kImageK + s;
        if (row >= rows || step >= k) return 0.0f;
        return source[static_cast<std::size_t>(1 + row * operand.row_stride + step * operand.k_stride)];
      });
      const auto index = static_cast<std::size_t>(t * p.unit_pitch + q);
      // Pieces of Inf and NaN are anything that is not finite: such tiles are left to fp32.
      const bool finite = unit.range.greatest < 0x7F7F8000u || kernel.precision == Precision::tf32;
      wrong_units +=
          finite && std::memcmp(image.data() + index * unit_bytes, unit.image.data(), unit_bytes) != 0;
      if (kernel.precision == Precision::bf16x6)
        wrong_ranges += std::memcmp(&ranges[index], &unit.range, sizeof unit.range) != 0;
    }
  report.check(wrong_units == 0 && wrong_ranges == 0,
               std::string(kernel.name) + " " + std::to_string(rows) + " x " + std::to_string(k) +
                   (k_inner ? " k inner " : " rows inner ") + to_string(family) + ": " +
                   std::to_string(wrong_units) + " units, " + std::to_string(wrong_ranges) + " ranges wrong");
}

// What the product kernel must have marked.
std::vector<std::uint8_t> expected_marks(const PreparedProduct& product) {
  const PreparedGemmKernelParams& p = product.params();
  const std::vector<MagnitudeRange> a = product.a().ranges(), b = product.b().ranges();
  const auto whole = [&](const std::vector<MagnitudeRange>& ranges, std::int64_t tile, std::int64_t pitch) {
    MagnitudeRange range = kernels::kNoMagnitude;
    for (std::int64_t q = 0; q < p.gemm.k / kImageK; ++q) {
      const MagnitudeRange& unit = ranges[static_cast<std::size_t>(tile * pitch + q)];
      range = {std::min(range.least, unit.least), std::max(range.greatest, unit.greatest)};
    }
    return range;
  };
  std::vector<std::uint8_t> marks;
  for (std::int64_t u = 0; u < divide_up(p.gemm.n, kImageRows); ++u)
    for (std::int64_t t = 0; t < divide_up(p.gemm.m, kImageRows); ++t)
      marks.push_back(
          !kernels::bf16x6_in_range(whole(a, t, p.a_unit_pitch), whole(b, u, p.b_unit_pitch), p.gemm.k));
  return marks;
}

struct Contest {
  Gpu& gpu;
  const KernelDescriptor& kernel;
  const KernelDescriptor& reference;
  Report& report;
  std::mt19937 random{22};

  void check(const Shape& shape, Family family, bool one_tile_subnormal);
};

void Contest::check(const Shape& shape, Family family, bool one_tile_subnormal) {
  Operands operands(kernel, shape, family, random);
  if (one_tile_subnormal)
    operands.a[static_cast<std::size_t>(shape.m - 1)] = std::numeric_limits<float>::denorm_min();
  Operands rounded = operands;
  for (float& value : rounded.a) value = round_to(kernel.precision, value);
  for (float& value : rounded.b) value = round_to(kernel.precision, value);
  const Sums sums(rounded, shape);
  const Buffer a(gpu, operands.a), b(gpu, operands.b);
  for (const Scaling scaling : kScalings) {
    GuardedC before(shape.m, shape.n), after(shape.m, shape.n), exact(shape.m, shape.n);
    fill_c(before, sums, scaling, random);
    const Buffer c(gpu, before.values), c_exact(gpu, before.values);
    GemmKernelParams params{a.device(),
                            b.device(),
                            c.device() + GuardedC::kMargin,
                            operands.lda,
                            operands.ldb,
                            before.ldc,
                            shape.m,
                            shape.n,
                            shape.k,
                            scaling.alpha,
                            scaling.accumulate ? 1 : 0};
    const PreparedProduct product(gpu, companions(kernel), params, shape.real_k,
                                  {a.device(), 1, operands.lda}, {b.device(), 1, operands.ldb});
    product.prepare();
    product.multiply();
    params.c = c_exact.device() + GuardedC::kMargin;
    gpu.launch(reference, params);
    gpu.synchronize();
    c.download(after.values);
    c_exact.download(exact.values);
    const std::string what =
        describe(kernel, shape, one_tile_subnormal ? "one subnormal" : to_string(family), scaling);
    report.check(after.guards_whole(), what + ": wrote outside C");
    std::vector<std::uint8_t> marks = product.out_of_range();
    if (!marks.empty()) report.check(marks == expected_marks(product), what + ": marks");
    const std::int64_t tile_rows = divide_up(shape.m, kImageRows);
    std::int64_t wrong = 0, other_bits = 0, wrong_i = 0, wrong_j = 0;
    for (std::int64_t j = 0; j < shape.n; ++j)
      for (std::int64_t i = 0; i < shape.m; ++i) {
        const auto at = static_cast<std::size_t>(i + j * shape.m);
        const float got = after.at(i, j);
        if (!marks.empty() &&
            marks[static_cast<std::size_t>(i / kImageRows + j / kImageRows * tile_rows)] != 0)
          other_bits += bits(got) != bits(exact.at(i, j)) && !(std::isnan(got) && std::isnan(exact.at(i, j)));
        if (!is_guard(got) && within_bound(shape.k, scaling, sums.sum[at], sums.magnitude[at],
                                           static_cast<double>(before.at(i, j)), got))
          continue;
        if (wrong++ == 0) wrong_i = i, wrong_j = j;
      }
    report.check(other_bits == 0,
                 what + ": " + std::to_string(other_bits) + " left over without fp32's bits");
    report.check(wrong == 0, what + ": " + std::to_string(wrong) + " wrong, first at " +
                                 std::to_string(wrong_i) + "," + std::to_string(wrong_j));
  }
}

// Integers whose sums stay under 2^24: every product and sum is exact, whatever the order.
void check_integers(Gpu& gpu, const KernelDescriptor& kernel, Report& report) {
  const Shape shape{kernel.tile_m + 5, 2 * kernel.tile_n + 3, 1024, 1024};
  std::mt19937 random(23);
  Operands operands(kernel, shape, Family::unit, random);
  std::uniform_int_distribution<int> wide(-8191, 8191), narrow(-1, 1);
  for (float& value : operands.a)
    if (!std::isnan(value))
      value = static_cast<float>(kernel.precision == Precision::tf32 ? wide(random) / 8 : wide(random));
  for (float& value : operands.b)
    if (!std::isnan(value)) value = static_cast<float>(narrow(random));
  const Sums sums(operands, shape);
  const Buffer a(gpu, operands.a), b(gpu, operands.b);
  GuardedC c(shape.m, shape.n);
  const Buffer device(gpu, c.values);
  const GemmKernelParams params{a.device(),
                                b.device(),
                                device.device() + GuardedC::kMargin,
                                operands.lda,
                                operands.ldb,
                                c.ldc,
                                shape.m,
                                shape.n,
                                shape.k,
                                1.0f,
                                0};
  const PreparedProduct product(gpu, companions(kernel), params, shape.real_k, {a.device(), 1, operands.lda},
                                {b.device(), 1, operands.ldb});
  product.prepare();
  product.multiply();
  gpu.synchronize();
  device.download(c.values);
  std::int64_t wrong = 0;
  for (std::int64_t j = 0; j < shape.n; ++j)
    for (std::int64_t i = 0; i < shape.m; ++i)
      wrong += static_cast<double>(c.at(i, j)) != sums.sum[static_cast<std::size_t>(i + j * shape.m)];
  report.check(wrong == 0, std::string(kernel.name) + " integers: " + std::to_string(wrong) + " not exact");
  report.check(share_out_of_range(product) == 0, std::string(kernel.name) + " integers: left to fp32");
}

void check_large(Gpu& gpu, const KernelDescriptor& kernel, const KernelDescriptor& reference,
                 const Shape& shape, std::mt19937& random, Report& report) {
  Operands operands(kernel, shape, Family::signed_unit, random);
  for (float& value : operands.a) value = round_to(kernel.precision, value);
  for (float& value : operands.b) value = round_to(kernel.precision, value);
  const auto multiply = [&](const GemmKernelParams& params) {
    const PreparedProduct product(gpu, companions(kernel), params, shape.real_k, {params.a, 1, params.lda},
                                  {params.b, 1, params.ldb});
    product.prepare();
    product.multiply();
    gpu.synchronize();
  };
  check_against_reference(gpu, kernel, reference, shape, std::move(operands), multiply, report);
}

}  // namespace

void check_prepare(Gpu& gpu, const KernelDescriptor& kernel, Report& report) {
  std::mt19937 random(24);
  for (const std::int32_t rows : {1, kImageRows - 1, kImageRows, 2 * kImageRows + 1})
    for (const std::int32_t k : {1, kImageK - 1, kImageK, 3 * kImageK + 5})
      for (const bool k_inner : {false, true})
        for (const Family family : kFamilies)
          check_image(gpu, kernel, rows, k, k_inner, family, random, report);
}

void check_prepared_products(Gpu& gpu, const KernelDescriptor& kernel, const KernelDescriptor& reference,
                             Report& report) {
  if (companions(kernel).prepare == nullptr) {
    report.check(false, std::string(kernel.name) + ": nothing prepares its operands");
    return;
  }
  Contest contest{gpu, kernel, reference, report};
  for (const Shape& shape : small_shapes(kernel))
    for (const Family family : kFamilies) contest.check(shape, family, false);
  if (few_shapes) return;
  for (const Shape& shape : small_shapes(kernel)) contest.check(shape, Family::signed_unit, true);
  check_integers(gpu, kernel, report);
  std::mt19937 random(25);
  for (const Shape& shape : kLargeShapes) check_large(gpu, kernel, reference, shape, random, report);
}

}  // namespace gemmhoist::gpu_kernels
