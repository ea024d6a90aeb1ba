#include "rungs.hpp"

#include <array>

#include "bench/cuda_api.hpp"
#include "core/checked.hpp"
#include "kernels/registry.hpp"

namespace gemmhoist::ladder {
namespace {

constexpr int kAny = 1 << 30, kSlow = 4096;
constexpr int kRingBytes = 4 * 16 * (132 + 128) * 4;  // ring.cuh: stages, depth, rows of A and of B

constexpr std::array kRungs{
    Rung{"naive", Product::a_b, 8, 32, 256, 0, kSlow, false},
    Rung{"shared_16", Product::a_b, 16, 16, 256, 0, kSlow, false},
    Rung{"shared_32", Product::a_b, 32, 32, 1024, 0, kSlow, false},
    Rung{"shared_32_padded", Product::a_b, 32, 32, 1024, 0, kSlow, false},
    Rung{"thread_8x1", Product::a_b, 64, 64, 512, 0, kAny, false},
    Rung{"thread_4x4", Product::a_b, 64, 64, 256, 0, kAny, false},
    Rung{"thread_8x8", Product::a_b, 128, 128, 256, 0, kAny, false},
    Rung{"vector_loads", Product::a_b, 128, 128, 256, 0, kAny, true},
    Rung{"register_double_buffer", Product::a_b, 128, 128, 256, 0, kAny, true},
    Rung{"cp_async_stages", Product::a_b, 128, 128, 256, kRingBytes, kAny, true},
    Rung{"warp_tiles", Product::a_b, 128, 128, 256, kRingBytes, kAny, true},
    Rung{"aat_direct", Product::a_a_transposed, 16, 16, 256, 0, kSlow, false},
    Rung{"aat_shared", Product::a_a_transposed, 16, 16, 256, 0, kSlow, false},
    Rung{"aat_shared_padded", Product::a_a_transposed, 16, 16, 256, 0, kSlow, false},
};

unsigned tiles(int extent, int tile) {
  return static_cast<unsigned>((extent - 1) / tile + 1);
}

struct RungRun final : Contestant {
  RungRun(const Rung& of, cudaKernel_t handle, const Params& given)
      : rung(of), kernel(handle), params(given) {
    name = of.symbol;
    resources = resources_of(handle, of.threads, of.dynamic_shared_bytes);
  }
  void launch() override {
    const int columns = rung.product == Product::a_b ? params.n : params.m;
    const dim3 grid(tiles(columns, rung.tile_n), tiles(params.m, rung.tile_m));
    ladder::launch(kernel, grid, rung.threads, rung.dynamic_shared_bytes, &params);
  }
  Rung rung;
  cudaKernel_t kernel;
  Params params;
};

const kernels::Image* image_of_gpu() {
  int major = 0, minor = 0;
  require(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0), "cudaDeviceGetAttribute");
  require(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0), "cudaDeviceGetAttribute");
  const kernels::Image* newest = nullptr;
  for (const kernels::Image& image : kernels::images())
    if (image.arch <= major * 10 + minor && (newest == nullptr || image.arch > newest->arch)) newest = &image;
  if (newest == nullptr) throw std::runtime_error("this build has no code for the GPU");
  return newest;
}

// A row-major product is the column-major product of the transposes: B, whose rows run along n, is the left
// operand and K-outer as it lies; A is the right one and has to be turned round. Both panels end at whole
// tiles, so B is copied unless it does so by itself.
struct ShippedRun final : Contestant {
  ShippedRun(const KernelDescriptor& of, cudaKernel_t product, cudaKernel_t turn,
             const KernelDescriptor& turn_facts, const Params& given)
      : kernel(of),
        transpose_facts(turn_facts),
        product_kernel(product),
        transpose_kernel(turn),
        params(given),
        depth(round_up(given.k, of.tile_k)),
        ld_left(round_up(round_up(given.n, of.tile_m), kPanelAlignment)),
        ld_right(round_up(round_up(given.m, of.tile_n), kPanelAlignment)),
        left(static_cast<std::size_t>(ld_left * depth)),
        right(static_cast<std::size_t>(ld_right * depth)) {
    name = of.name;
    resources = resources_of(product, of.threads, of.shared_bytes);
    require(cudaMemset(left.get(), 0, static_cast<std::size_t>(ld_left * depth) * sizeof(float)),
            "cudaMemset");
    require(cudaMemset(right.get(), 0, static_cast<std::size_t>(ld_right * depth) * sizeof(float)),
            "cudaMemset");
  }
  void launch() override {
    TransposeKernelParams turn{params.a, right.get(), params.k, ld_right, params.m, params.k};
    run(transpose_facts, transpose_kernel, kernels::launch_shape(transpose_facts, turn), &turn);
    const bool whole = ld_left == params.n && depth == params.k;
    if (!whole)
      require(cudaMemcpy2DAsync(left.get(), static_cast<std::size_t>(ld_left) * sizeof(float), params.b,
                                static_cast<std::size_t>(params.n) * sizeof(float),
                                static_cast<std::size_t>(params.n) * sizeof(float),
                                static_cast<std::size_t>(params.k), cudaMemcpyDeviceToDevice, nullptr),
              "cudaMemcpy2DAsync");
    GemmKernelParams product{whole ? params.b : left.get(),
                             right.get(),
                             params.c,
                             ld_left,
                             ld_right,
                             params.n,
                             params.n,
                             params.m,
                             static_cast<std::int32_t>(depth),
                             1.0f,
                             0};
    run(kernel, product_kernel, kernels::launch_shape(kernel, product), &product);
  }
  static void run(const KernelDescriptor& facts, cudaKernel_t handle, const kernels::LaunchShape& shape,
                  void* given) {
    ladder::launch(handle, dim3(shape.grid_x, shape.grid_y, shape.grid_z), facts.threads, facts.shared_bytes,
                   given);
  }
  const KernelDescriptor& kernel;
  const KernelDescriptor& transpose_facts;
  cudaKernel_t product_kernel, transpose_kernel;
  Params params;
  std::int64_t depth, ld_left, ld_right;
  DeviceArray<float> left, right;
};

struct CublasRun final : Contestant {
  CublasRun(const bench::Cublas& of, bench::CublasHandle with, const Params& given, Product of_product)
      : cublas(of), handle(with), params(given), product(of_product) {
    name = "cublas";
  }
  void launch() override {
    const float one = 1, zero = 0;
    const Params& p = params;
    if (product == Product::a_b)
      bench::Cublas::check(cublas.sgemm(handle, bench::kOpN, bench::kOpN, p.n, p.m, p.k, &one, p.b, p.n, p.a,
                                        p.k, &zero, p.c, p.n),
                           "cublasSgemm");
    else
      bench::Cublas::check(cublas.sgemm(handle, bench::kOpT, bench::kOpN, p.m, p.m, p.k, &one, p.a, p.k, p.a,
                                        p.k, &zero, p.c, p.m),
                           "cublasSgemm");
  }
  const bench::Cublas& cublas;
  bench::CublasHandle handle;
  Params params;
  Product product;
};

const KernelDescriptor& transpose_descriptor() {
  for (const KernelDescriptor& kernel : kernels::all())
    if (kernel.role == KernelRole::transpose) return kernel;
  throw std::runtime_error("this build has no kernel that transposes");
}

}  // namespace

std::span<const Rung> rungs() {
  return kRungs;
}

Catalogue::Catalogue(const std::string& fatbin)
    : ladder_(Library::from_file(fatbin)), library_(Library::from_memory(image_of_gpu()->data)) {}

std::unique_ptr<Contestant> Catalogue::rung(const Rung& rung, const Params& params) const {
  return std::make_unique<RungRun>(rung, ladder_.kernel(rung.symbol, rung.dynamic_shared_bytes), params);
}

std::vector<const KernelDescriptor*> Catalogue::shipped(KernelRole role) {
  int most_shared = 0;
  require(cudaDeviceGetAttribute(&most_shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0),
          "cudaDeviceGetAttribute");
  std::vector<const KernelDescriptor*> found;
  for (const KernelDescriptor& kernel : kernels::all())
    if (kernel.role == role && kernel.precision == Precision::fp32 && kernel.shared_bytes <= most_shared &&
        kernels::contains(*image_of_gpu(), kernel))
      found.push_back(&kernel);
  return found;
}

std::unique_ptr<Contestant> Catalogue::shipped(const KernelDescriptor& kernel, const Params& params) const {
  const KernelDescriptor& turn = transpose_descriptor();
  return std::make_unique<ShippedRun>(kernel, library_.kernel(kernel.name, kernel.shared_bytes),
                                      library_.kernel(turn.name, turn.shared_bytes), turn, params);
}

std::unique_ptr<Contestant> Catalogue::cublas(const Params& params, Product product) {
  static const bench::Cublas library("");
  static bench::CublasHandle handle = nullptr;
  if (!library.usable()) return nullptr;
  if (handle == nullptr) bench::Cublas::check(library.create(&handle), "cublasCreate");
  return std::make_unique<CublasRun>(library, handle, params, product);
}

}  // namespace gemmhoist::ladder
