#include "report.hpp"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace gemmhoist::bench {
namespace {

std::string number(double value, const char* format = "{:.6g}") {
  return std::isfinite(value) ? fmt::format(fmt::runtime(format), value) : std::string("n/a");
}

std::string milliseconds(double seconds) {
  return number(seconds * 1e3, seconds < 1e-3 ? "{:.4f}" : "{:.3f}");
}

std::string quoted(std::string text) {  // a CSV field
  for (std::size_t at = 0; (at = text.find('"', at)) != std::string::npos; at += 2) text.insert(at, 1, '"');
  return '"' + text + '"';
}

// The clock that a peer's speed is told by: end to end, but for kernel-only peers.
const Summary& main_clock(const Result& result) {
  return result.end_to_end.count > 0 ? result.end_to_end : result.kernel;
}

double gflops(const ShapeReport& report, const Result& result) {
  return report.shape.flops() / main_clock(result).median * 1e-9;
}

const char* name(Memory memory) {
  return memory == Memory::pinned ? "pinned" : "pageable";
}

// A pinned peer does not copy on the host, so it stands beside the floor itself.
double bar_s(const ShapeReport& report, const Result& result) {
  return result.memory == Memory::pinned ? report.floor_s : report.staged_floor_s;
}

std::string csv_row(const ShapeReport& report, const Result& r) {
  const Shape& s = report.shape;
  std::string row =
      fmt::format("{},{},{},{},{},{},{},{},{},", s.m, s.n, s.k, s.order == Order::row ? "row" : "column",
                  s.trans, s.entry == Entry::cblas ? "cblas" : "fortran", s.alpha, s.beta, quoted(s.from));
  row += fmt::format("{},{},{},{},{},{},", quoted(r.peer), quoted(r.setting), name(r.memory),
                     quoted(r.status), r.route, main_clock(r).count);
  for (const double value :
       {r.first_s, r.end_to_end.median, r.end_to_end.mad, r.end_to_end.iqr, r.submit.median, r.submit.mad,
        r.kernel.median, r.kernel.mad, gflops(report, r), r.ratio, report.kernel_flops_per_s * 1e-9,
        report.floor_s, report.staged_floor_s, r.end_to_end.median / bar_s(report, r)}) {
    row += number(value) + ',';
  }
  row.back() = '\n';
  return row;
}

const Result* find(const ShapeReport& report, const std::string& peer) {
  for (const auto& result : report.results) {
    if (result.peer == peer) return &result;
  }
  return nullptr;
}

}  // namespace

void write_csv(const std::string& path, const std::vector<ShapeReport>& reports, const Rates& rates) {
  std::ofstream file(path);
  file << "m,n,k,order,trans,entry,alpha,beta,from,peer,setting,memory,status,route,calls,first_s,e2e_median_"
          "s,"
          "e2e_mad_s,e2e_iqr_s,submit_median_s,submit_mad_s,kernel_median_s,kernel_mad_s,gflops,ratio_to_"
          "gemmhoist,"
          "kernel_gflops_of_floor,floor_s,staged_floor_s,e2e_over_floor\n";
  for (const auto& report : reports) {
    for (const auto& result : report.results) file << csv_row(report, result);
  }
  const std::filesystem::path main(path);
  std::ofstream second(main.parent_path() / (main.stem().string() + "-rates" + main.extension().string()));
  second << "rate,value\n";
  for (const auto& [rate, value] : listed(rates)) second << rate << ',' << number(value) << '\n';
  if (!file.flush() || !second.flush()) throw std::runtime_error("cannot write " + path);
}

void print_rates(std::FILE* out, const Rates& rates) {
  fmt::print(out, "Rates of this run:");
  const char* separator = " ";
  for (const auto& [rate, value] : listed(rates)) {
    fmt::print(out, "{}{} {}", separator, rate, number(value, "{:.4g}"));
    separator = ", ";
  }
  fmt::print(out, "\n");
}

void print_shape(std::FILE* out, const ShapeReport& report) {
  fmt::print(out, "\n{}: floor {} ms, staged floor {} ms, P {} TFLOP/s {}\n", report.shape.name(),
             milliseconds(report.floor_s), milliseconds(report.staged_floor_s),
             number(report.kernel_flops_per_s * 1e-12, "{:.1f}"), report.shape.from);
  fmt::print(out, "{:<22} {:<11} {:>5} {:>11} {:>10} {:>9} {:>10} {:>10} {:>9} {:>7} {:>7} {}\n", "peer",
             "setting", "calls", "first ms", "e2e ms", "MAD ms", "submit ms", "kernel ms", "GFLOP/s", "/ours",
             "/floor", "status");
  for (const auto& r : report.results) {
    if (main_clock(r).count == 0) {
      fmt::print(out, "{:<22} {}\n", r.peer, r.status);
      continue;
    }
    fmt::print(out, "{:<22} {:<11} {:>5} {:>11} {:>10} {:>9} {:>10} {:>10} {:>9} {:>7} {:>7} {} {}\n", r.peer,
               r.setting, main_clock(r).count, milliseconds(r.first_s), milliseconds(r.end_to_end.median),
               milliseconds(main_clock(r).mad), milliseconds(r.submit.median), milliseconds(r.kernel.median),
               number(gflops(report, r), "{:.1f}"), number(r.ratio, "{:.2f}"),
               number(r.end_to_end.median / bar_s(report, r), "{:.2f}"), r.status, r.route);
  }
  std::fflush(out);
}

void print_overview(std::FILE* out, const std::vector<ShapeReport>& reports) {
  if (reports.empty()) return;
  fmt::print(out,
             "\nEnd to end, medians in milliseconds (cuBLAS kernel: device time)\n\n| shape | floor | staged "
             "floor |");
  for (const auto& result : reports.front().results) fmt::print(out, " {} |", result.peer);
  fmt::print(out, "\n| --- | --- | --- |");
  for (std::size_t i = 0; i < reports.front().results.size(); ++i) fmt::print(out, " --- |");
  for (const auto& report : reports) {
    fmt::print(out, "\n| {} | {} | {} |", report.shape.name(), milliseconds(report.floor_s),
               milliseconds(report.staged_floor_s));
    for (const auto& column : reports.front().results) {
      const Result* result = find(report, column.peer);
      if (result == nullptr || !(result->ok() || result->status.starts_with("WRONG"))) {
        fmt::print(out, " n/a |");
      } else {
        fmt::print(out, " {}{} |", result->ok() ? "" : "WRONG ", milliseconds(main_clock(*result).median));
      }
    }
  }
  fmt::print(out, "\n");
}

int count_wrong(const std::vector<ShapeReport>& reports) {
  int wrong = 0;
  for (const auto& report : reports) {
    for (const auto& result : report.results) wrong += result.status.starts_with("WRONG") ? 1 : 0;
  }
  return wrong;
}

}  // namespace gemmhoist::bench
