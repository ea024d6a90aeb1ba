// Sizes of an operand's image as constants: device code may use them, but not call what makes them.
#pragma once

#include "core/kernel_descriptor.hpp"

namespace gemmhoist::kernels {

template <Precision precision>
struct OperandImage {
  static constexpr ImageFacts kFacts = image_facts(precision);
  static constexpr int kPieces = kFacts.pieces;
  static constexpr int kRowBytes = kImageK * kFacts.element_bytes;  // of a row of a plane
  static constexpr int kPlaneBytes = kFacts.plane_bytes();
  static constexpr int kUnitBytes = kFacts.unit_bytes();
  static_assert(kRowBytes == 64 || kRowBytes == 128, "a row is a swizzle's span");
};

}  // namespace gemmhoist::kernels
