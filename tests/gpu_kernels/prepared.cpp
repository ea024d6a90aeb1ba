#include "prepared.hpp"

#include <algorithm>

#include "core/checked.hpp"
#include "kernels/registry.hpp"

namespace gemmhoist::gpu_kernels {
namespace {

std::size_t floats_for(std::size_t bytes) {
  return (bytes + sizeof(float) - 1) / sizeof(float);
}

std::size_t unit_count(std::int32_t rows, std::int32_t k, std::int32_t tile) {
  return static_cast<std::size_t>(round_up(rows, tile) / kImageRows * divide_up(k, kImageK));
}

template <typename Element>
std::vector<Element> download(const Buffer& buffer, std::size_t count) {
  std::vector<float> floats(floats_for(count * sizeof(Element)));
  buffer.download(floats);
  std::vector<Element> elements(count);
  std::copy_n(reinterpret_cast<const char*>(floats.data()), count * sizeof(Element),
              reinterpret_cast<char*>(elements.data()));
  return elements;
}

std::size_t tile_count(const GemmKernelParams& gemm) {
  return static_cast<std::size_t>(divide_up(gemm.m, kImageRows) * divide_up(gemm.n, kImageRows));
}

}  // namespace

PreparedKernels companions(const KernelDescriptor& product) {
  PreparedKernels found{nullptr, &product, nullptr};
  for (const KernelDescriptor& kernel : kernels::all()) {
    if (kernel.precision != product.precision) continue;
    if (kernel.role == KernelRole::prepare) found.prepare = &kernel;
    if (kernel.role == KernelRole::gemm_leftover) found.leftover = &kernel;
  }
  return found;
}

PreparedOperand::PreparedOperand(Gpu& gpu, const KernelDescriptor& prepare, StridedOperand operand,
                                 std::int32_t rows, std::int32_t k, std::int32_t tile)
    : unit_bytes_(image_facts(prepare.precision).unit_bytes()),
      units_(unit_count(rows, k, tile)),
      image_(gpu, units_ * static_cast<std::size_t>(unit_bytes_) / sizeof(float)),
      ranges_(gpu, units_ * 2),
      params_{operand.source,
              image_.device(),
              reinterpret_cast<MagnitudeRange*>(ranges_.device()),
              operand.row_stride,
              operand.k_stride,
              divide_up(k, kImageK),
              rows,
              k,
              static_cast<std::int32_t>(round_up(rows, tile)),
              static_cast<std::int32_t>(round_up(k, kImageK))} {
  // Nothing that is not written looks as if it were.
  const std::size_t floats = units_ * static_cast<std::size_t>(unit_bytes_) / sizeof(float);
  if (floats > std::size_t{1} << 24) return;  // a large one is timed, not checked
  const std::vector<float> poison(floats, -1e30f);
  image_.upload(poison);
  ranges_.upload(std::span(poison).first(units_ * 2));
}

std::vector<MagnitudeRange> PreparedOperand::ranges() const {
  return download<MagnitudeRange>(ranges_, units_);
}

std::vector<std::uint8_t> PreparedOperand::image() const {
  return download<std::uint8_t>(image_, units_ * static_cast<std::size_t>(unit_bytes_));
}

PreparedProduct::PreparedProduct(Gpu& gpu, const PreparedKernels& kernels, const GemmKernelParams& gemm,
                                 std::int32_t real_k, StridedOperand a, StridedOperand b)
    : gpu_(gpu),
      kernels_(kernels),
      a_(gpu, *kernels.prepare, a, gemm.m, real_k, kernels.product->tile_m),
      b_(gpu, *kernels.prepare, b, gemm.n, real_k, kernels.product->tile_n),
      tiles_(tile_count(gemm)),
      out_of_range_(gpu, floats_for(tiles_)),
      params_{gemm,
              a_.params().image,
              b_.params().image,
              a_.params().ranges,
              b_.params().ranges,
              reinterpret_cast<std::uint8_t*>(out_of_range_.device()),
              a_.params().unit_pitch,
              b_.params().unit_pitch} {
  params_.gemm.k = a_.params().padded_k;
}

void PreparedProduct::prepare() const {
  gpu_.launch(*kernels_.prepare, a_.params());
  gpu_.launch(*kernels_.prepare, b_.params());
}

void PreparedProduct::multiply() const {
  gpu_.launch(*kernels_.product, params_);
  if (kernels_.leftover != nullptr) gpu_.launch(*kernels_.leftover, params_);
}

std::vector<std::uint8_t> PreparedProduct::out_of_range() const {
  if (kernels_.leftover == nullptr) return {};
  return download<std::uint8_t>(out_of_range_, tiles_);
}

double share_out_of_range(const PreparedProduct& product) {
  const std::vector<std::uint8_t> tiles = product.out_of_range();
  if (tiles.empty()) return 0;
  return static_cast<double>(std::count(tiles.begin(), tiles.end(), 1)) / static_cast<double>(tiles.size());
}

}  // namespace gemmhoist::gpu_kernels
