#include "kernels/registry.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <limits>
#include <random>
#include <regex>
#include <set>
#include <string>

#include "core/checked.hpp"
#include "kernels/magnitude_range.hpp"
#include "kernels/tile_order.hpp"

namespace gemmhoist::kernels {
namespace {

// What a name must be, by the facts that the descriptor states.
std::string name_from_facts(const KernelDescriptor& k) {
  const std::string arch = "_sm" + std::to_string(k.min_arch) + (k.arch_specific ? "a" : "");
  const std::string tile = std::to_string(k.tile_m) + "x" + std::to_string(k.tile_n);
  const std::string stages = "x" + std::to_string(k.tile_k) + "_s" + std::to_string(k.stages);
  switch (k.role) {
    case KernelRole::transpose:
      return "transpose_" + tile + arch;
    case KernelRole::prepare:
      return std::string("prepare_") + to_string(k.precision) + "_" + tile + arch;
    case KernelRole::gemm_leftover:  // for that precision, in fp32
      return "sgemm_leftover_fp32_" + tile + stages + arch;
    case KernelRole::gemm_stream_k:
      return std::string("sgemm_") + to_string(k.precision) + "_" + tile + stages + "_streamk_" +
             (k.a_k_inner ? "t" : "n") + (k.b_k_inner ? "n" : "t") + arch;
    default:
      return std::string("sgemm_") + to_string(k.precision) + "_" + tile + stages + arch;
  }
}

TEST(Registry, NamesAreUniqueAndMadeOfTheFactsTheyState) {
  std::set<std::string> names;
  for (const KernelDescriptor& kernel : known()) {
    // `_uN`, steps of k a loop body, is a fact of the code alone.
    const std::string without_unroll = std::regex_replace(kernel.name, std::regex("_u[0-9]+"), "");
    EXPECT_EQ(without_unroll, name_from_facts(kernel));
    EXPECT_TRUE(names.insert(kernel.name).second) << kernel.name;
  }
  EXPECT_GE(names.size(), 6u);
}

TEST(Registry, FactsAreWithinWhatEveryDeviceHas) {
  for (const KernelDescriptor& kernel : known()) {
    SCOPED_TRACE(kernel.name);
    EXPECT_GE(kernel.min_arch, 75);
    EXPECT_GT(kernel.threads, 0);
    EXPECT_LE(kernel.threads, 1024);
    EXPECT_EQ(kernel.threads % 32, 0);
    EXPECT_LE(kernel.shared_bytes, (kernel.min_arch >= 90 ? 227 : 163) * 1024);
    EXPECT_GE(kernel.blocks_per_sm, 1);
    if (kernel.role == KernelRole::gemm) {
      // From sm_90 on, a stage may have a pair of 8-byte barriers beside its panels.
      const int barriers =
          kernel.shared_bytes - kernel.stages * (kernel.tile_m + kernel.tile_n) * kernel.tile_k * 4;
      EXPECT_TRUE(barriers == 0 || (kernel.min_arch >= 90 && barriers == kernel.stages * 16)) << barriers;
      EXPECT_EQ(kernel.tile_m % kPanelAlignment, 0);
      EXPECT_EQ(kernel.tile_n % kPanelAlignment, 0);
    }
    if (kernel.role == KernelRole::gemm_prepared) {
      EXPECT_EQ(kernel.tile_m % kImageRows, 0);
      EXPECT_EQ(kernel.tile_n % kImageRows, 0);
      EXPECT_EQ(kernel.tile_k % kImageK, 0);
    }
  }
}

TEST(Registry, PlannableKernelsComeMostCapableFirst) {
  std::int64_t area = std::numeric_limits<std::int64_t>::max();
  bool products_over = false;
  for (const KernelDescriptor& kernel : known()) {
    if (kernel.role != KernelRole::gemm) {
      products_over = true;
      continue;
    }
    EXPECT_FALSE(products_over) << kernel.name;
    if (kernel.min_arch < 80) continue;
    EXPECT_LE(std::int64_t{kernel.tile_m} * kernel.tile_n, area) << kernel.name;
    area = std::int64_t{kernel.tile_m} * kernel.tile_n;
  }
}

// What the launcher of a product relies on.
TEST(Registry, EveryProductOfImagesHasItsCompanions) {
  for (const KernelDescriptor& product : known()) {
    if (product.role != KernelRole::gemm_prepared) continue;
    SCOPED_TRACE(product.name);
    int prepares = 0, leftovers = 0;
    for (const KernelDescriptor& kernel : known()) {
      if (kernel.precision != product.precision || kernel.min_arch > product.min_arch) continue;
      prepares += kernel.role == KernelRole::prepare;
      if (kernel.role != KernelRole::gemm_leftover) continue;
      ++leftovers;
      // Both walk the same tiles: out_of_range has one byte each.
      EXPECT_EQ(kernel.tile_m, product.tile_m);
      EXPECT_EQ(kernel.tile_n, product.tile_n);
    }
    EXPECT_EQ(prepares, 1);
    EXPECT_EQ(leftovers, product.precision == Precision::bf16x6 ? 1 : 0);
  }
}

TEST(Registry, ArchSpecificKernelsAreInTheirOwnImageAlone) {
  KernelDescriptor kernel{};
  kernel.min_arch = 90;
  kernel.arch_specific = true;
  EXPECT_TRUE(contains({"sm_90a", nullptr, 0, 90, 0}, kernel));
  EXPECT_FALSE(contains({"sm_90", nullptr, 0, 90, 90}, kernel));
  EXPECT_FALSE(contains({"sm_100a", nullptr, 0, 100, 0}, kernel));
  EXPECT_FALSE(contains({"sm_120", nullptr, 0, 120, 120}, kernel));
  kernel.arch_specific = false;
  EXPECT_TRUE(contains({"sm_90a", nullptr, 0, 90, 0}, kernel));
  EXPECT_TRUE(contains({"sm_100", nullptr, 0, 100, 0}, kernel));
}

TEST(Registry, BuiltKernelsAreThoseThatAnImageContains) {
  std::size_t contained = 0;
  for (const KernelDescriptor& kernel : known()) {
    bool in_an_image = false;
    for (const Image& image : images()) in_an_image = in_an_image || contains(image, kernel);
    EXPECT_EQ(find(kernel.name) != nullptr, in_an_image) << kernel.name;
    contained += in_an_image;
  }
  EXPECT_EQ(all().size(), contained);
  EXPECT_EQ(find("sgemm_fp32_1x1x1_s1_sm75"), nullptr);
}

TEST(Registry, ImagesAreFatbins) {
  if (images().empty()) GTEST_SKIP() << "built without nvcc";
  for (const Image& image : images()) {
    SCOPED_TRACE(image.group);
    ASSERT_GT(image.bytes, 16u);
    std::uint32_t magic = 0;
    std::memcpy(&magic, image.data, sizeof magic);
    EXPECT_EQ(magic, 0xBA55ED50u);  // of the fatbin format
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(image.data) % 8, 0u);
    EXPECT_EQ(std::atoi(image.group + 3), image.arch);
  }
}

bool is_gemm(const KernelDescriptor& kernel) {
  return kernel.role == KernelRole::gemm || kernel.role == KernelRole::gemm_reference;
}

GemmKernelParams extents(std::int32_t m, std::int32_t n) {
  GemmKernelParams params{};
  params.m = m;
  params.n = n;
  params.k = 32;
  return params;
}

TEST(LaunchShape, CoversCOnceAtRandomSizes) {
  std::mt19937 random(1);
  std::uniform_int_distribution<std::int32_t> size(1, 3000);
  for (const KernelDescriptor& kernel : known()) {
    if (!is_gemm(kernel)) continue;
    for (int trial = 0; trial < 50; ++trial) {
      const GemmKernelParams params = extents(size(random), size(random));
      const LaunchShape shape = launch_shape(kernel, params);
      const std::uint32_t rows = tiles_over(params.m, kernel.tile_m),
                          cols = tiles_over(params.n, kernel.tile_n);
      ASSERT_EQ(shape.grid_x, rows * cols);
      EXPECT_EQ(shape.grid_y, 1u);
      EXPECT_EQ(shape.grid_z, 1u);
      EXPECT_EQ(shape.threads, static_cast<std::uint32_t>(kernel.threads));
      for (const std::uint32_t group : {1u, 7u, 16u, 24u}) {
        std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
        for (std::uint32_t block = 0; block < shape.grid_x; ++block) {
          const TilePosition tile = tile_of_block(block, rows, cols, group);
          ASSERT_LT(tile.row, rows);
          ASSERT_LT(tile.col, cols);
          seen.insert({tile.row, tile.col});
        }
        ASSERT_EQ(seen.size(), shape.grid_x);
        if (rows * cols > 5000) break;
      }
    }
  }
}

TEST(LaunchShape, LargestExtentsNeitherOverflowNorPassAGridsLimit) {
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  for (const KernelDescriptor& kernel : known()) {
    if (!is_gemm(kernel)) continue;
    SCOPED_TRACE(kernel.name);
    EXPECT_EQ(launch_shape(kernel, extents(kMost, kMost)).grid_x, 0u);
    EXPECT_EQ(launch_shape(kernel, extents(0, 5)).grid_x, 0u);
    const LaunchShape tall = launch_shape(kernel, extents(kMost, 1));
    EXPECT_EQ(tall.grid_x, static_cast<std::uint32_t>(divide_up(kMost, kernel.tile_m)));
    const TilePosition last = tile_of_block(tall.grid_x - 1, tall.grid_x, 1, 16);
    EXPECT_EQ(last.row, tall.grid_x - 1);
    const LaunchShape wide = launch_shape(kernel, extents(1, kMost));
    EXPECT_EQ(tile_of_block(wide.grid_x - 1, 1, wide.grid_x, 16).col, wide.grid_x - 1);
  }
}

TEST(LaunchShape, ProductsOfImagesCoverC) {
  for (const KernelDescriptor& kernel : known()) {
    if (kernel.role != KernelRole::gemm_prepared && kernel.role != KernelRole::gemm_leftover) continue;
    SCOPED_TRACE(kernel.name);
    PreparedGemmKernelParams params{};
    params.gemm = extents(3 * kernel.tile_m + 1, 2 * kernel.tile_n + 1);
    EXPECT_EQ(launch_shape(kernel, params).grid_x, 4u * 3u);
    params.gemm = extents(std::numeric_limits<std::int32_t>::max(), std::numeric_limits<std::int32_t>::max());
    EXPECT_EQ(launch_shape(kernel, params).grid_x, 0u);
  }
}

TEST(LaunchShape, PreparesEveryUnitOfAnImage) {
  for (const KernelDescriptor& kernel : known()) {
    if (kernel.role != KernelRole::prepare) continue;
    SCOPED_TRACE(kernel.name);
    PrepareKernelParams params{};
    params.padded_rows = 5 * kImageRows;
    params.padded_k = 7 * kImageK;
    EXPECT_EQ(launch_shape(kernel, params).grid_x, 35u);
  }
}

TEST(MagnitudeRange, AdmitsWhatSixProductsMakeExactlyAndNothingElse) {
  const auto of = [](float least, float greatest) {
    return MagnitudeRange{std::bit_cast<std::uint32_t>(least), std::bit_cast<std::uint32_t>(greatest)};
  };
  const float infinity = std::numeric_limits<float>::infinity();
  const MagnitudeRange one = of(1, 1);
  EXPECT_TRUE(bf16x6_in_range(one, one, 1));
  EXPECT_TRUE(bf16x6_in_range(one, kNoMagnitude, 1));
  EXPECT_FALSE(bf16x6_in_range(of(1, infinity), one, 1));
  EXPECT_FALSE(bf16x6_in_range(one, of(1, infinity), 1));
  EXPECT_FALSE(bf16x6_in_range(of(1, infinity), kNoMagnitude, 1));  // Inf x 0
  EXPECT_FALSE(bf16x6_in_range(MagnitudeRange{1, 0x7FC00000u}, one, 1));
  EXPECT_FALSE(bf16x6_in_range(MagnitudeRange{0x3F800000u, 0x7F7F8000u}, of(0x1p-126f, 0x1p-126f), 1));
  // Pieces: the last one's last bit.
  EXPECT_TRUE(bf16x6_in_range(of(0x1p-110f, 1), one, 1));
  EXPECT_FALSE(bf16x6_in_range(of(0x1.fffffep-111f, 1), one, 1));
  EXPECT_FALSE(bf16x6_in_range(of(0x1p-149f, 1), one, 1));
  // Products: a 2^-110 times 2^-9 just holds.
  EXPECT_TRUE(bf16x6_in_range(of(0x1p-110f, 1), of(0x1p-9f, 1), 1));
  EXPECT_FALSE(bf16x6_in_range(of(0x1p-110f, 1), of(0x1p-10f, 1), 1));
  EXPECT_FALSE(bf16x6_in_range(of(0x1p-60f, 1), of(0x1p-60f, 1), 1));
  // Sums over k.
  EXPECT_TRUE(bf16x6_in_range(of(1, 0x1p62f), of(1, 0x1p62f), 1));
  EXPECT_FALSE(bf16x6_in_range(of(1, 0x1p62f), of(1, 0x1p62f), 2));
  EXPECT_TRUE(bf16x6_in_range(of(1, 0x1p50f), of(1, 0x1p50f), 1 << 24));
  EXPECT_FALSE(bf16x6_in_range(of(1, 0x1p50f), of(1, 0x1p50f), (1 << 24) + 1));
}

TEST(TileOrder, AWaveReadsLittleOfBothPanels) {
  // 132 tiles of 128 x 256 at n = 8192: a patch, not a strip.
  std::set<std::uint32_t> rows, cols;
  for (std::uint32_t block = 0; block < 132; ++block) {
    const TilePosition tile = tile_of_block(block, 64, 32, 16);
    rows.insert(tile.row);
    cols.insert(tile.col);
  }
  EXPECT_LE(rows.size() * 128 + cols.size() * 256, 4608u);
}

}  // namespace
}  // namespace gemmhoist::kernels
