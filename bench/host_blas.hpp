// The C and Fortran entries of a BLAS on the host, called as a program would.
#pragma once

#include <string>

#include "shape.hpp"
#include "shared_object.hpp"

namespace gemmhoist::bench {

class HostBlas {
 public:
  HostBlas() = default;
  // Finds cblas_sgemm and sgemm_; `fortran_only` for libraries without the C entry.
  HostBlas(SharedObject object, bool fortran_only);

  bool usable() const { return sgemm_ != nullptr; }
  const SharedObject& object() const { return object_; }

  // The call that `shape` describes, by its own entry, order and transposes. `call` holds the pointers.
  void multiply(const Shape& shape, const GemmCall& call) const;

 private:
  using Cblas = void(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*,
                     int);
  using Fortran = void(const char*, const char*, const int*, const int*, const int*, const float*,
                       const float*, const int*, const float*, const int*, const float*, float*, const int*,
                       std::size_t, std::size_t);

  SharedObject object_;
  Cblas* cblas_ = nullptr;
  Fortran* sgemm_ = nullptr;
};

// OpenBLAS, at `path` or by soname.
HostBlas find_openblas(const std::string& path);

}  // namespace gemmhoist::bench
