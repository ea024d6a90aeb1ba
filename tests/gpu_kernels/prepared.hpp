// Products of images: the kernels that belong together, and the buffers between them.
#pragma once

#include <cstdint>
#include <vector>

#include "driver.hpp"

namespace gemmhoist::gpu_kernels {

// `leftover` is null where the precision has no range to leave.
struct PreparedKernels {
  const KernelDescriptor *prepare, *product, *leftover;
};
// Null members where this build lacks one.
PreparedKernels companions(const KernelDescriptor& product);

// Operand in memory: element (i, p) at source[i row_stride + p k_stride].
struct StridedOperand {
  const float* source;
  std::int64_t row_stride, k_stride;
};

// An image on the device, and how it is made.
class PreparedOperand {
 public:
  PreparedOperand(Gpu& gpu, const KernelDescriptor& prepare, StridedOperand operand, std::int32_t rows,
                  std::int32_t k, std::int32_t tile);
  const PrepareKernelParams& params() const { return params_; }
  std::vector<MagnitudeRange> ranges() const;
  std::vector<std::uint8_t> image() const;

 private:
  std::int32_t unit_bytes_;
  std::size_t units_;
  Buffer image_, ranges_;
  PrepareKernelParams params_;
};

class PreparedProduct {
 public:
  // `gemm` holds K-outer panels with k padded to kImageK; of these `real_k` steps are prepared, from `a` and
  // `b`.
  PreparedProduct(Gpu& gpu, const PreparedKernels& kernels, const GemmKernelParams& gemm, std::int32_t real_k,
                  StridedOperand a, StridedOperand b);
  void prepare() const;
  void multiply() const;  // and what is left over
  const PreparedGemmKernelParams& params() const { return params_; }
  const PreparedOperand& a() const { return a_; }
  const PreparedOperand& b() const { return b_; }
  // One byte a tile of 128 x 128; empty where the precision has no range to leave.
  std::vector<std::uint8_t> out_of_range() const;

 private:
  Gpu& gpu_;
  PreparedKernels kernels_;
  PreparedOperand a_, b_;
  std::size_t tiles_;
  Buffer out_of_range_;
  PreparedGemmKernelParams params_;
};

// Share of tiles of 128 x 128 that fp32 made.
double share_out_of_range(const PreparedProduct& product);

}  // namespace gemmhoist::gpu_kernels
