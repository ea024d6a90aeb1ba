#include "shape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace gemmhoist::bench {
namespace {

constexpr std::int64_t kLargestExtent = 1 << 20;  // 4 TiB a square: beyond it, it is a typing error

std::int64_t parse_extent(const std::string& text) {
  std::size_t used = 0;
  std::int64_t value = 0;
  try {
    value = std::stoll(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used == 0 || used != text.size() || value < 1 || value > kLargestExtent) {
    throw std::invalid_argument(fmt::format("'{}' is not an extent from 1 to {}", text, kLargestExtent));
  }
  return value;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

// "4096x128x512:TN"
Shape parse_shape(const std::string& text) {
  const auto fields = split(text, ':');
  const auto extents = split(fields.empty() ? text : fields[0], 'x');
  if (extents.size() != 3 || fields.size() > 2) {
    throw std::invalid_argument(fmt::format("'{}' is not a shape: MxNxK or MxNxK:TRANS", text));
  }
  Shape shape;
  shape.m = parse_extent(extents[0]);
  shape.n = parse_extent(extents[1]);
  shape.k = parse_extent(extents[2]);
  if (fields.size() == 2) shape.trans = fields[1];
  if (shape.trans.size() != 2 || shape.trans.find_first_not_of("NT") != std::string::npos) {
    throw std::invalid_argument(
        fmt::format("'{}' is not a pair of transposes: NN, NT, TN or TT", shape.trans));
  }
  return shape;
}

}  // namespace

std::string Shape::name() const {
  std::string text = fmt::format("{}x{}x{} {}", m, n, k, trans);
  if (order == Order::row) text += " row";
  if (entry == Entry::fortran) text += " F";
  if (beta != 0.0f) text += fmt::format(" beta={}", beta);
  return text;
}

GemmCall canonical(const Shape& shape) {
  const auto transpose = [&](int i) { return shape.trans[i] == 'T' ? Transpose::yes : Transpose::no; };
  GemmCall call;
  call.trans_a = transpose(0);
  call.trans_b = transpose(1);
  call.m = shape.m;
  call.n = shape.n;
  call.k = shape.k;
  if (shape.order == Order::row) {
    std::swap(call.m, call.n);
    std::swap(call.trans_a, call.trans_b);
  }
  call.alpha = shape.alpha;
  call.beta = shape.beta;
  const std::int64_t rows_a = call.trans_a == Transpose::no ? call.m : call.k;
  const std::int64_t rows_b = call.trans_b == Transpose::no ? call.k : call.n;
  call.lda = std::max(rows_a, shape.ld_operands);
  call.ldb = std::max(rows_b, shape.ld_operands);
  call.ldc = call.m;
  return call;
}

std::vector<Shape> parse_sizes(const std::string& list) {
  std::vector<Shape> shapes;
  for (const auto& part : split(list, ',')) {
    Shape shape;
    shape.m = shape.n = shape.k = parse_extent(part);
    shapes.push_back(shape);
  }
  return shapes;
}

std::vector<Shape> parse_shapes(const std::string& what) {
  if (what == "real") return real_shapes();
  std::vector<Shape> shapes;
  std::ifstream file(what);
  if (!file) {
    for (const auto& part : split(what, ',')) shapes.push_back(parse_shape(part));
    return shapes;
  }
  for (std::string line; std::getline(file, line);) {
    line.erase(std::min(line.find('#'), line.size()));
    line.erase(
        std::remove_if(line.begin(), line.end(), [](char c) { return c == ' ' || c == '\t' || c == '\r'; }),
        line.end());
    if (!line.empty()) shapes.push_back(parse_shape(line));
  }
  return shapes;
}

std::vector<Shape> real_shapes() {
  constexpr Order column = Order::column, row = Order::row;
  constexpr Entry f = Entry::fortran, c = Entry::cblas;
  return {
      {1024, 4096, 128, "TN", column, f, 1, 0, 0, "faiss flat search"},
      {256, 4096, 8, "TN", column, f, 1, 0, 0, "faiss product-quantizer training"},
      {64, 4096, 64, "TN", column, f, 1, 0, 0, "faiss IVF, k-means assignment"},
      {20, 256, 64, "TN", column, f, -2, 1, 0, "scikit-learn KMeans"},
      {5000, 20, 64, "NT", row, c, 1, 0, 0, "randomised SVD"},
      {64, 20, 5000, "TT", row, c, 1, 0, 0, "randomised SVD"},
      {200, 128, 64, "NN", row, c, 1, 0, 0, "scikit-learn MLP"},
      {64, 128, 200, "TN", row, c, 1, 0, 0, "scikit-learn MLP"},
      {200, 128, 64, "NT", row, c, 1, 0, 0, "scikit-learn MLP"},
      {64, 10, 5000, "TN", row, c, 1, 0, 0, "NMF"},
      {1000, 2000, 64, "NT", row, c, 1, 0, 0, "cosine similarity"},
      {1024, 32, 512, "TN", column, f, 1, 1, 0, "PyTorch Linear, batch 32"},
      {784, 256, 64, "NT", column, f, 1, 0, 0, "PyTorch weight gradient"},
      {2048, 100, 256, "TN", column, f, 1, 0, 0, "Transformer feed-forward"},
      {256, 100, 2048, "TN", column, f, 1, 0, 0, "Transformer feed-forward"},
      {50, 50, 32, "TN", column, f, 1, 0, 512, "attention scores"},
      {50, 50, 32, "NN", column, f, 1, 0, 512, "attention values"},
      {512, 8, 128, "TN", column, f, 1, 1, 0, "LSTM step"},
      {900, 32, 144, "NN", column, f, 1, 1, 0, "convolution by im2col"},
      {32, 2880, 2880, "NT", row, c, 1, 0, 0, "ggml matrix product"},
      {512, 576, 576, "NT", row, c, 1, 0, 0, "ggml matrix product"},
      {1500, 1280, 1280, "NT", row, c, 1, 0, 0, "Whisper large"},
      {1500, 5120, 1280, "NT", row, c, 1, 0, 0, "Whisper large"},
      {512, 4096, 4096, "NT", row, c, 1, 0, 0, "Llama prompt"},
      {1024, 512, 32, "NN", column, f, 1, 1, 0, "ScaLAPACK PSGEMM update"},
      {268, 268, 32, "NT", column, f, -1, 1, 0, "QR update"},
  };
}

}  // namespace gemmhoist::bench
