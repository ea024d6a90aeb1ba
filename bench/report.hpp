// Report: results as CSV for programs and as tables for readers.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "session.hpp"

namespace gemmhoist::bench {

// Writes PATH, a row a shape and peer, and PATH with "-rates" before its extension, a row a rate. Throws
// std::runtime_error when it cannot.
void write_csv(const std::string& path, const std::vector<ShapeReport>& reports, const Rates& rates);

void print_rates(std::FILE* out, const Rates& rates);
void print_shape(std::FILE* out, const ShapeReport& report);                   // one block, every peer
void print_overview(std::FILE* out, const std::vector<ShapeReport>& reports);  // one Markdown row a shape

// How many results were wrong.
int count_wrong(const std::vector<ShapeReport>& reports);

}  // namespace gemmhoist::bench
