#include "fallback/library_facts.hpp"

#include <dlfcn.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>

namespace gemmhoist::fallback {
namespace {

bool exports_any(void* handle, std::initializer_list<const char*> symbols) noexcept {
  for (const char* symbol : symbols) {
    if (dlsym(handle, symbol) != nullptr) return true;
  }
  return false;
}

// Through the handle, hence through dependencies too: Debian's OpenBLAS flavour of libblas.so.3 has
// interfaces of its own over libopenblas.so.0.
bool is_openblas(void* handle) noexcept {
  return exports_any(handle, {"openblas_get_config", "openblas_get_config64_", "openblas_get_config_64",
                              "scipy_openblas_get_config", "scipy_openblas_get_config64_"});
}

// BLIS, MKL, ATLAS, FlexiBLAS, Arm Performance Libraries.
bool is_otherwise_optimised(void* handle) noexcept {
  return exports_any(handle, {"bli_init", "MKL_Get_Version", "mkl_get_version", "ATL_buildinfo",
                              "flexiblas_print_current_backend", "armplversion"});
}

// The reference BLAS exports its helpers; libgslcblas has an error hook and no Fortran names.
bool is_naive(const LoadedObject& object) noexcept {
  return std::strstr(object.path, "gslcblas") != nullptr || defines(object, "xerbla_array_") ||
         defines(object, "lsame_") || (defines(object, "cblas_xerbla") && !defines(object, "sgemm_"));
}

// A length whose low half is 1 and which is negative as a whole: a ddot with 32-bit integers multiplies one
// pair, one with 64-bit integers has nothing to do and answers 0. (ddot, not sdot: Fortran compilers disagree
// on how a single-precision function returns.) Both answers come from the documented rules, so that the test
// is as safe as any call.
constexpr std::int64_t kTellingLength = std::int64_t{-1} << 32 | 1;

bool has_64bit_plain_names(void* handle, const LoadedObject& object) noexcept {
  const double x = 3, y = 5;
  using FortranDot =
      double (*)(const std::int64_t*, const double*, const std::int64_t*, const double*, const std::int64_t*);
  if (auto dot = reinterpret_cast<FortranDot>(dlsym(handle, "ddot_"))) {
    const std::int64_t one = 1;
    return dot(&kTellingLength, &x, &one, &y, &one) == 0;
  }
  using CblasDot = double (*)(std::int64_t, const double*, std::int64_t, const double*, std::int64_t);
  if (auto dot = reinterpret_cast<CblasDot>(dlsym(handle, "cblas_ddot"))) {
    return dot(kTellingLength, &x, 1, &y, 1) == 0;
  }
  // A library of level 3 alone (NVBLAS): its name has to do.
  return std::strstr(object.path, "blas64") != nullptr || std::strstr(object.path, "ilp64") != nullptr;
}

}  // namespace

LibraryFacts facts_of(void* handle, const LoadedObject& object) noexcept {
  LibraryFacts facts;
  facts.openblas = is_openblas(handle);
  facts.naive = !facts.openblas && !is_otherwise_optimised(handle) && is_naive(object);
  facts.plain_names_ilp64 = has_64bit_plain_names(handle, object);
  return facts;
}

}  // namespace gemmhoist::fallback
