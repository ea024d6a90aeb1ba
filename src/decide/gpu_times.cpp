// How long calls take on the GPU, over what was estimated.
#include <algorithm>

#include "core/powers.hpp"
#include "decide/decide.hpp"

namespace gemmhoist::decide {
namespace {

// One call that was held up by the host (a page fault storm, a debugger) must not send the GPU away for good,
// nor a lucky one bind everything to it: a sample counts as at most four times what was known. A GPU that
// stays slow (others' work on it, a link of one lane) is followed all the same, within a few calls.
constexpr double kLeast = 0.5;
constexpr double kMost = 1000;
constexpr double kMostAtOnce = 4;
// A moving average over some five calls; the first ones of a size are believed sooner.
constexpr double kWeight = 0.2;
constexpr double kFirstWeight = 0.5;
constexpr double kForgiven = 0.01;

constexpr double kShortest = 16e-6;

double known_ratio(float ratio) noexcept {
  return ratio > 0 ? static_cast<double>(ratio) : 1.0;
}

void blend(std::atomic<float>& ratio, double target, double weight, double first_weight) noexcept {
  float before = ratio.load(std::memory_order_relaxed);
  float after;
  do {
    const double known = known_ratio(before);
    const double share = before > 0 ? weight : first_weight;
    after = static_cast<float>((1 - share) * known + share * std::min(target, kMostAtOnce * known));
  } while (!ratio.compare_exchange_weak(before, after, std::memory_order_relaxed));
}

}  // namespace

int GpuTimeLearner::octave_of(double seconds) noexcept {
  return std::clamp(exponent_of(std::max(seconds, kShortest) / kShortest), 0, kOctaves - 1);
}

void GpuTimeLearner::learn(double estimated_s, double measured_s) noexcept {
  if (!(estimated_s > 0) || !(measured_s > 0)) return;
  const double ratio = std::clamp(measured_s / estimated_s, kLeast, kMost);
  blend(ratio_[octave_of(estimated_s)], ratio, kWeight, kFirstWeight);
}

double GpuTimeLearner::correction(double estimated_s) const noexcept {
  const int octave = octave_of(estimated_s);
  for (int distance = 0; distance < kOctaves; ++distance) {
    // The larger neighbour last: what delays small calls does not delay large ones, and the other way round a
    // large one's ratio is the more cautious guess for a small one.
    for (const int at : {octave - distance, octave + distance}) {
      if (at < 0 || at >= kOctaves) continue;
      const float ratio = ratio_[at].load(std::memory_order_relaxed);
      if (ratio <= 0) continue;
      // Overheads fade with size: each octave up halves what a smaller size's ratio has over 1.
      const double excess = static_cast<double>(ratio) - 1;
      return at < octave && excess > 0 ? 1 + excess / whole_power(2, octave - at)
                                       : static_cast<double>(ratio);
    }
  }
  return 1;
}

void GpuTimeLearner::forgive(double estimated_s) noexcept {
  std::atomic<float>& ratio = ratio_[octave_of(estimated_s)];
  // A size that only its neighbour speaks for begins from the neighbour's word.
  if (ratio.load(std::memory_order_relaxed) <= 0) {
    float nothing = 0;
    (void)ratio.compare_exchange_strong(nothing, static_cast<float>(correction(estimated_s)),
                                        std::memory_order_relaxed);
  }
  blend(ratio, 1, kForgiven, kForgiven);
}

}  // namespace gemmhoist::decide
