// The rungs: what each is called, which tile its blocks make, and how far up it is worth climbing.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/kernel_descriptor.hpp"
#include "gpu.hpp"
#include "params.hpp"

namespace gemmhoist::ladder {

enum class Product { a_b, a_a_transposed };

struct Rung {
  const char* symbol;
  Product product;
  int tile_m, tile_n, threads, dynamic_shared_bytes;
  int largest;   // m: beyond, a rung takes long and teaches nothing
  bool by_four;  // n and k must be multiples of four
};
std::span<const Rung> rungs();

// Something that makes C of one problem when launched.
class Contestant {
 public:
  virtual ~Contestant() = default;
  virtual void launch() = 0;
  std::string name;
  Resources resources;
};

class Catalogue {
 public:
  explicit Catalogue(const std::string& fatbin);

  std::unique_ptr<Contestant> rung(const Rung& rung, const Params& params) const;
  // The library's own kernels for products in fp32 that this GPU runs; each launch prepares panels from the
  // row-major operands, as the library does once a panel.
  static std::vector<const KernelDescriptor*> shipped(KernelRole role = KernelRole::gemm);
  std::unique_ptr<Contestant> shipped(const KernelDescriptor& kernel, const Params& params) const;
  // Null where the machine has no cuBLAS.
  static std::unique_ptr<Contestant> cublas(const Params& params, Product product);

  cudaKernel_t kernel(const char* symbol, int dynamic_shared_bytes = 0) const {
    return ladder_.kernel(symbol, dynamic_shared_bytes);
  }
  cudaKernel_t kernel(const KernelDescriptor& kernel) const {
    return library_.kernel(kernel.name, kernel.shared_bytes);
  }

 private:
  Library ladder_, library_;
};

}  // namespace gemmhoist::ladder
