#include "host_blas.hpp"

#include <utility>

namespace gemmhoist::bench {

HostBlas::HostBlas(SharedObject object, bool fortran_only) : object_(std::move(object)) {
  if (!fortran_only && !object_.bind(cblas_, "cblas_sgemm")) return;
  object_.bind(sgemm_, "sgemm_");
}

void HostBlas::multiply(const Shape& shape, const GemmCall& call) const {
  const auto narrow = [](std::int64_t x) { return static_cast<int>(x); };  // shapes are limited to 2^20
  if (shape.entry == Entry::cblas && cblas_ != nullptr) {
    constexpr int kRowMajor = 101, kColumnMajor = 102, kNoTrans = 111, kTrans = 112;
    const auto trans = [&](int i) { return shape.trans[i] == 'T' ? kTrans : kNoTrans; };
    const bool row = shape.order == Order::row;
    cblas_(row ? kRowMajor : kColumnMajor, trans(0), trans(1), narrow(shape.m), narrow(shape.n),
           narrow(shape.k), call.alpha, row ? call.b : call.a, narrow(row ? call.ldb : call.lda),
           row ? call.a : call.b, narrow(row ? call.lda : call.ldb), call.beta, call.c, narrow(call.ldc));
    return;
  }
  const char trans_a = to_char(call.trans_a), trans_b = to_char(call.trans_b);
  const int m = narrow(call.m), n = narrow(call.n), k = narrow(call.k);
  const int lda = narrow(call.lda), ldb = narrow(call.ldb), ldc = narrow(call.ldc);
  sgemm_(&trans_a, &trans_b, &m, &n, &k, &call.alpha, call.a, &lda, call.b, &ldb, &call.beta, call.c, &ldc, 1,
         1);
}

HostBlas find_openblas(const std::string& path) {
  if (!path.empty()) return HostBlas(SharedObject({path}), false);
  return HostBlas(SharedObject({"libopenblas.so.0", "libopenblas.so"}), false);
}

}  // namespace gemmhoist::bench
