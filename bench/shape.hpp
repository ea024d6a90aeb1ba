// Shape: one product as a program would ask for it, and where lists of them come from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/gemm_call.hpp"

namespace gemmhoist::bench {

enum class Entry : std::uint8_t { cblas, fortran };
enum class Order : std::uint8_t { column, row };

struct Shape {
  std::int64_t m = 0, n = 0, k = 0;
  std::string trans = "NN";
  Order order = Order::column;
  Entry entry = Entry::cblas;
  float alpha = 1.0f;
  float beta = 0.0f;
  std::int64_t ld_operands = 0;  // leading dimension of A and B where it is not the tight one; 0: tight
  std::string from;              // the program that asks for it; "" for made-up sizes

  double flops() const {
    return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  }
  std::string name() const;  // "4096x4096x4096 NN"
};

// The column-major call behind a shape; a row-major product is the same one with A and B exchanged.
// Pointers are null; leading dimensions are those of the shape.
GemmCall canonical(const Shape& shape);

// "512,1024": squares. Throws std::invalid_argument, naming what is wrong.
std::vector<Shape> parse_sizes(const std::string& list);

// "real" (the table below), "4096x128x512,300x400x200", or the path of a file with one MxNxK[:TRANS] a line
// ('#' begins a comment). Throws std::invalid_argument.
std::vector<Shape> parse_shapes(const std::string& what);

// What unmodified programs were seen to ask for, traced call by call.
std::vector<Shape> real_shapes();

}  // namespace gemmhoist::bench
