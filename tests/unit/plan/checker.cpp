// Uploads are one stream, write-backs another, computes several. A step happens before another where stream
// order and `after` lead from the one to the other; what they do not order may run in any order or at once.
// So each conflict (two steps on overlapping buffer space, one of them writing) must be ordered, and the last
// writer before a reader must be the one whose values the reader means.
#include "checker.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <sstream>
#include <vector>

namespace gemmhoist::plan::testing {
namespace {

struct Rect {
  std::int64_t x0, x1, y0, y1;
  bool overlaps(const Rect& o) const { return x0 < o.x1 && o.x0 < x1 && y0 < o.y1 && o.y0 < y1; }
  bool contains(const Rect& o) const { return x0 <= o.x0 && o.x1 <= x1 && y0 <= o.y0 && o.y1 <= y1; }
};

class Checker {
 public:
  Checker(const Plan& plan, const PlanInput& input) : plan_(plan), input_(input) {}

  std::string run() {
    if (structure() && order() && panels() && c_buffers() && write_backs() && sizes() && images() && marks())
      return "";
    return error_;
  }

 private:
  bool fail(std::size_t step, const std::string& what) {
    error_ = "step " + std::to_string(step) + ": " + what;
    return false;
  }
  const Step& at(std::size_t i) const { return plan_.steps[i]; }
  std::size_t size() const { return plan_.steps.size(); }
  bool before(std::size_t x, std::size_t y) const { return reach_[y][x / 64] >> (x % 64) & 1; }

  static bool within(const Range& inner, const Range& outer) {
    return inner.extent > 0 && inner.begin >= outer.begin && inner.end() <= outer.end();
  }

  bool structure() {
    const Range all_k{0, input_.k};
    for (std::size_t i = 0; i < size(); ++i) {
      const Step& s = at(i);
      if (s.block < 0 || s.block >= static_cast<int>(plan_.blocks.size())) return fail(i, "no such block");
      const Block& block = plan_.blocks[s.block];
      const bool is_upload = s.kind == StepKind::upload;
      const bool uses_rows = !is_upload || s.operand == Operand::a;
      const bool uses_cols = !is_upload || s.operand == Operand::b;
      if (uses_rows && !within(s.rows, block.rows)) return fail(i, "rows outside block");
      if (uses_cols && !within(s.cols, block.cols)) return fail(i, "cols outside block");
      if (s.kind != StepKind::write_back) {
        if (!within(s.depth, all_k)) return fail(i, "depth outside k");
        if (s.buffer < 0 || s.buffer >= plan_.panel_buffers) return fail(i, "no such panel buffer");
      }
      if (!is_upload && (s.c_buffer < 0 || s.c_buffer >= plan_.c_buffers)) return fail(i, "no such C buffer");
      if (s.kind == StepKind::compute) {
        if (s.kernel < 0 || s.kernel >= static_cast<int>(input_.kernels.size())) return fail(i, "no kernel");
        const KernelDescriptor& kernel = input_.kernels[s.kernel];
        const bool images = plan_.images.used();
        if (kernel.role != (images ? KernelRole::gemm_prepared : KernelRole::gemm))
          return fail(i, "kernel of another role");
        if (kernel.precision != (images ? input_.precision : Precision::fp32))
          return fail(i, "kernel of another precision");
        if (s.rows.extent > INT32_MAX || s.cols.extent > INT32_MAX) return fail(i, "launch too large");
        if ((s.rows.extent + kernel.tile_m - 1) / kernel.tile_m > 65535) return fail(i, "grid too tall");
        if ((s.cols.extent + kernel.tile_n - 1) / kernel.tile_n > 65535) return fail(i, "grid too wide");
        if (plan_.depth_padded % kernel.tile_k != 0) return fail(i, "depth not padded to tile_k");
        const std::int64_t row = s.rows.begin - block.rows.begin, col = s.cols.begin - block.cols.begin;
        if (row % kPanelAlignment != 0 || col % kPanelAlignment != 0) return fail(i, "pointer not aligned");
        const auto up = [](std::int64_t x, std::int64_t t) { return (x + t - 1) / t * t; };
        if (row + up(s.rows.extent, kernel.tile_m) > plan_.lda) return fail(i, "tile past panel A");
        if (col + up(s.cols.extent, kernel.tile_n) > plan_.ldb) return fail(i, "tile past panel B");
        if (up(s.depth.extent, kernel.tile_k) > plan_.depth_padded) return fail(i, "slice past panel");
        if (images && (row % kImageRows != 0 || col % kImageRows != 0))
          return fail(i, "inside an image's unit");
      }
      for (const std::int32_t b : s.after)
        if (b < 0 || b >= static_cast<int>(i)) return fail(i, "after is not an earlier step");
    }
    return true;
  }

  bool order() {
    const std::size_t words = (size() + 63) / 64;
    reach_.assign(size(), std::vector<std::uint64_t>(words));
    std::map<int, std::size_t> last;  // of each stream
    for (std::size_t i = 0; i < size(); ++i) {
      const Step& s = at(i);
      const int stream = s.kind == StepKind::upload ? -1 : s.kind == StepKind::write_back ? -2 : s.stream;
      const auto precede = [&](std::size_t x) {
        for (std::size_t w = 0; w < words; ++w) reach_[i][w] |= reach_[x][w];
        reach_[i][x / 64] |= std::uint64_t{1} << (x % 64);
      };
      for (std::size_t x = 0; x < s.after.size(); ++x) {
        for (std::size_t y = 0; y < s.after.size(); ++y)
          if (x != y && before(s.after[x], s.after[y])) return fail(i, "an edge says nothing new");
        if (last.contains(stream) && before(s.after[x], last[stream]))
          return fail(i, "stream order already says so");
      }
      for (const std::int32_t b : s.after) precede(b);
      if (last.contains(stream)) precede(last[stream]);
      last[stream] = i;
    }
    return true;
  }

  // Buffer coordinates of what an upload writes or a compute reads of one operand.
  Range in_buffer(const Step& s, Operand operand) const {
    const Block& block = plan_.blocks[s.block];
    const Range& range = operand == Operand::a ? s.rows : s.cols;
    return {range.begin - (operand == Operand::a ? block.rows.begin : block.cols.begin), range.extent};
  }

  bool panels() {
    for (std::size_t c = 0; c < size(); ++c) {
      if (at(c).kind != StepKind::compute) continue;
      for (const Operand operand : {Operand::a, Operand::b})
        if (!panel_is_right(c, operand)) return false;
    }
    return true;
  }

  bool panel_is_right(std::size_t c, Operand operand) {
    const Step& s = at(c);
    const Range need = in_buffer(s, operand);
    std::vector<std::size_t> uploads;
    std::vector<std::int64_t> edges{need.begin, need.end()};
    for (std::size_t u = 0; u < size(); ++u) {
      const Step& up = at(u);
      if (up.kind != StepKind::upload || up.operand != operand || up.buffer != s.buffer) continue;
      const Range has = in_buffer(up, operand);
      if (has.end() <= need.begin || need.end() <= has.begin) continue;
      if (!before(u, c) && !before(c, u)) return fail(c, "races with upload " + std::to_string(u));
      if (!before(u, c)) continue;
      uploads.push_back(u);
      edges.push_back(std::clamp(has.begin, need.begin, need.end()));
      edges.push_back(std::clamp(has.end(), need.begin, need.end()));
    }
    std::sort(edges.begin(), edges.end());
    for (std::size_t e = 0; e + 1 < edges.size(); ++e) {
      if (edges[e] == edges[e + 1]) continue;
      std::size_t latest = size();
      for (const std::size_t u : uploads) {
        const Range has = in_buffer(at(u), operand);
        if (has.begin <= edges[e] && edges[e + 1] <= has.end()) latest = u;
      }
      if (latest == size()) return fail(c, "reads what was never uploaded");
      const Step& up = at(latest);
      const std::int64_t origin =
          (operand == Operand::a ? up.rows : up.cols).begin - in_buffer(up, operand).begin;
      const std::int64_t wanted = (operand == Operand::a ? s.rows : s.cols).begin - need.begin;
      if (origin != wanted || !(up.depth == s.depth)) return fail(c, "reads another panel's values");
    }
    return true;
  }

  Rect c_rect(const Step& s) const {
    const Block& block = plan_.blocks[s.block];
    const std::int64_t x = s.rows.begin - block.rows.begin, y = s.cols.begin - block.cols.begin;
    return {x, x + s.rows.extent, y, y + s.cols.extent};
  }

  // All users of one C buffer that overlap are ordered.
  bool c_buffers() {
    for (std::size_t i = 0; i < size(); ++i) {
      if (at(i).kind == StepKind::upload) continue;
      for (std::size_t j = 0; j < i; ++j) {
        const Step &x = at(j), &y = at(i);
        if (x.kind == StepKind::upload || x.c_buffer != y.c_buffer || !c_rect(x).overlaps(c_rect(y)))
          continue;
        if (!before(j, i)) return fail(i, "races on C with step " + std::to_string(j));
      }
    }
    return true;
  }

  // Each write-back sends what exactly the slices 0..k made; together they are C.
  bool write_backs() {
    std::vector<Rect> home;
    double area = 0;
    for (std::size_t w = 0; w < size(); ++w) {
      if (at(w).kind != StepKind::write_back) continue;
      const Step& s = at(w);
      const Rect rect{s.rows.begin, s.rows.end(), s.cols.begin, s.cols.end()};
      for (const Rect& other : home)
        if (rect.overlaps(other)) return fail(w, "sends a second time");
      home.push_back(rect);
      area += static_cast<double>(s.rows.extent) * static_cast<double>(s.cols.extent);
      if (!slices_are_right(w)) return false;
    }
    if (area != static_cast<double>(input_.m) * static_cast<double>(input_.n)) return fail(0, "C incomplete");
    return true;
  }

  bool slices_are_right(std::size_t w) {
    const Step& s = at(w);
    std::int64_t depth = 0;
    bool final = false;
    for (std::size_t c = 0; c < size(); ++c) {
      const Step& x = at(c);
      if (x.kind != StepKind::compute || x.c_buffer != s.c_buffer || !c_rect(x).overlaps(c_rect(s))) continue;
      if (x.block != s.block) {
        // Of another block: before this one's first slice or after this write-back (ordered, by c_buffers).
        if (before(c, w) && depth != 0) return fail(w, "C reused too early");
        continue;
      }
      if (!before(c, w)) return fail(w, "a slice is missing");
      if (!c_rect(x).contains(c_rect(s))) return fail(w, "a slice made but a part");
      if (x.depth.begin != depth || x.accumulate != (depth > 0) || final)
        return fail(w, "slices out of order");
      depth = x.depth.end();
      final = x.last_slice;
    }
    if (depth != input_.k || !final) return fail(w, "k incomplete");
    return true;
  }

  bool sizes() {
    const auto fits = [](std::int64_t bytes, std::int64_t x, std::int64_t y) {
      return static_cast<double>(bytes) == 4.0 * static_cast<double>(x) * static_cast<double>(y);
    };
    if (!fits(plan_.a_bytes, plan_.depth_padded, plan_.lda)) return fail(0, "a_bytes");
    if (!fits(plan_.b_bytes, plan_.depth_padded, plan_.ldb)) return fail(0, "b_bytes");
    std::int64_t cols = 0;
    for (const Block& block : plan_.blocks) {
      cols = std::max(cols, block.cols.extent);
      if (block.rows.extent > plan_.ldc) return fail(0, "ldc");
    }
    if (plan_.c_bytes < 4 * plan_.ldc * cols || plan_.ldc % 4 != 0) return fail(0, "c_bytes");
    std::int64_t total =
        plan_.panel_buffers * (plan_.a_bytes + plan_.b_bytes) + plan_.c_buffers * plan_.c_bytes;
    const Images& images = plan_.images;
    if (images.used()) {
      const std::int64_t unit = images.unit_bytes + (images.ranged() ? 8 : 0);
      total += plan_.panel_buffers * (images.a_units + images.b_units) * unit + images.mark_bytes;
    }
    if (input_.trans_a == Transpose::yes || input_.trans_b == Transpose::no)
      total += plan_.h2d_slots * plan_.chunk_bytes;
    if (total != plan_.device_bytes) return fail(0, "device_bytes is not the sum");
    if (total > input_.device_bytes) return fail(0, "over the device's memory");
    if ((plan_.h2d_slots + plan_.d2h_slots) * plan_.chunk_bytes > input_.pinned_bytes)
      return fail(0, "pinned");
    if (plan_.h2d_slots < 2 || plan_.d2h_slots < 2) return fail(0, "too few slots");
    if (plan_.piece_bytes < 1 || plan_.piece_bytes > plan_.chunk_bytes) return fail(0, "piece");
    if (plan_.lda % kPanelAlignment != 0 || plan_.ldb % kPanelAlignment != 0) return fail(0, "ld");
    return true;
  }

  // An image has a unit for each 128 rows and 32 steps of its panel, and uploads begin at one.
  bool images() {
    const Images& images = plan_.images;
    if (!images.used()) return images.mark_bytes == 0 || fail(0, "marks without images");
    const KernelDescriptor& prepare = input_.kernels[images.prepare];
    if (prepare.role != KernelRole::prepare || prepare.precision != input_.precision)
      return fail(0, "prepared by another kernel");
    if (images.ranged() != (input_.precision == Precision::bf16x6)) return fail(0, "leftover kernel");
    if (images.ranged() && input_.kernels[images.leftover].role != KernelRole::gemm_leftover)
      return fail(0, "left over to another kernel");
    if (images.unit_bytes != image_facts(input_.precision).unit_bytes()) return fail(0, "unit_bytes");
    if (plan_.depth_padded % kImageK != 0 || plan_.lda % kImageRows != 0 || plan_.ldb % kImageRows != 0)
      return fail(0, "panels of parts of units");
    if (images.unit_pitch != plan_.depth_padded / kImageK) return fail(0, "unit_pitch");
    if (images.a_units != plan_.lda / kImageRows * images.unit_pitch) return fail(0, "a_units");
    if (images.b_units != plan_.ldb / kImageRows * images.unit_pitch) return fail(0, "b_units");
    for (std::size_t u = 0; u < size(); ++u)
      if (at(u).kind == StepKind::upload && in_buffer(at(u), at(u).operand).begin % kImageRows != 0)
        return fail(u, "uploads into the middle of a unit");
    return true;
  }

  // Each compute has marks of its own, and together they have all of them.
  bool marks() {
    if (!plan_.images.ranged()) return true;
    std::vector<std::size_t> computes;
    for (std::size_t i = 0; i < size(); ++i)
      if (at(i).kind == StepKind::compute) computes.push_back(i);
    std::sort(computes.begin(), computes.end(),
              [&](std::size_t x, std::size_t y) { return at(x).marks < at(y).marks; });
    std::int64_t next = 0;
    for (const std::size_t i : computes) {
      if (at(i).marks != next) return fail(i, "marks not its own");
      const auto tiles = [](const Range& range) { return (range.extent + kImageRows - 1) / kImageRows; };
      next += tiles(at(i).rows) * tiles(at(i).cols);
    }
    return next == plan_.images.mark_bytes || fail(0, "mark_bytes");
  }

  const Plan& plan_;
  const PlanInput& input_;
  std::vector<std::vector<std::uint64_t>> reach_;  // [step]: what happens before it
  std::string error_;
};

}  // namespace

std::string check(const Plan& plan, const PlanInput& input) {
  return Checker(plan, input).run();
}

}  // namespace gemmhoist::plan::testing
