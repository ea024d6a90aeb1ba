// Illegal report: what OpenBLAS says of illegal arguments, for calls that no BLAS will see.
#pragma once

#include <cstdint>

#include "core/gemm_rules.hpp"

namespace gemmhoist::fallback {

// Number of the parameter that is reported, in the Fortran numbering; of a row-major call, after A and B have
// changed places. 0: the order; -1: nothing to report.
std::int64_t illegal_parameter(const CblasArguments& raw) noexcept;
std::int64_t illegal_parameter(const FortranArguments& raw) noexcept;

// Calls the process' xerbla_, where it has one, else prints OpenBLAS' words where OpenBLAS does: on stdout.
void report_illegal(std::int64_t parameter) noexcept;

}  // namespace gemmhoist::fallback
