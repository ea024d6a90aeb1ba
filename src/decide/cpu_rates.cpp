// How long a product takes the CPU: a prior that favours the CPU, and rates learnt by size.
#include <algorithm>

#include "core/powers.hpp"
#include "decide/decide.hpp"

namespace gemmhoist::decide {
namespace {

// The prior is what the best CPUs reach at best, since a wrong guess must not cost: a call that stays on the
// CPU teaches the true rate, one that goes to the GPU teaches nothing. An AVX-512 core does 64 flops a cycle;
// OpenBLAS was measured at 73 GFLOP/s a core on all 16, and a core on its own runs at a higher clock.
constexpr double kPeakPerThread = 120e9;
// Memory: a core alone streams about 15 to 25 GB/s, a socket 100 to 300.
constexpr double kMemoryPerThread = 25e9;
constexpr double kMemoryMost = 300e9;
// A thread joins in for every so many flops (OpenBLAS stays on one thread under about 1e6 multiply-adds).
constexpr double kFlopsPerThread = 2e6;
// Rates grow with size: a larger product than any learnt may run so much faster, each doubling of its flops,
// up to the prior.
constexpr double kGrowthPerBucket = 1.3;
constexpr int kFarthestBucket = 8;

// Of the time on the GPU, for looking at the CPU again.
constexpr double kLookShare = 0.01;
// Half of a machine's CPUs may have been somebody else's, or three quarters; a CPU that seemed eight times as
// slow as the GPU will not have been the faster one.
constexpr double kFarthestLook = 8;

struct Cell {
  int bucket, thinness;
};

double flops_of(std::int64_t m, std::int64_t n, std::int64_t k) noexcept {
  return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
}

Cell cell_of(std::int64_t m, std::int64_t n, std::int64_t k) noexcept {
  const int exponent = exponent_of(std::max(flops_of(m, n, k), 1.0));
  const std::int64_t thinnest = std::min({m, n, k});
  return {std::clamp(exponent - CpuRates::kFirstBucket, 0, CpuRates::kBuckets - 1), thinnest < 32    ? 0
                                                                                    : thinnest < 128 ? 1
                                                                                                     : 2};
}

double prior_seconds(std::int64_t m, std::int64_t n, std::int64_t k, const MachineProfile& profile) noexcept {
  const double flops = flops_of(m, n, k);
  const double rows = static_cast<double>(m), cols = static_cast<double>(n), depth = static_cast<double>(k);
  const double usable = std::max<double>(profile.host_threads, 1);
  const double threads = std::clamp(flops / kFlopsPerThread, 1.0, usable);
  const double bytes = 4 * (rows * depth + depth * cols + rows * cols);
  return std::max(flops / (threads * kPeakPerThread),
                  bytes / std::min(threads * kMemoryPerThread, kMemoryMost));
}

// A learnt rate, or 0. Two sources have the same shape but not the same type: a saved profile and the
// atomics.
using RateAt = double (*)(const void* source, Cell cell) noexcept;

double predict_from(RateAt rate_at, const void* source, std::int64_t m, std::int64_t n, std::int64_t k,
                    const MachineProfile& profile) noexcept {
  const double flops = flops_of(m, n, k);
  const Cell cell = cell_of(m, n, k);
  if (const double own = rate_at(source, cell); own > 0) return flops / own;
  double below = 0, above = 0;
  int down = 1, up = 1;
  for (; down <= kFarthestBucket && cell.bucket - down >= 0; ++down) {
    below = rate_at(source, {cell.bucket - down, cell.thinness});
    if (below > 0) break;
  }
  for (; up <= kFarthestBucket && cell.bucket + up < CpuRates::kBuckets; ++up) {
    above = rate_at(source, {cell.bucket + up, cell.thinness});
    if (above > 0) break;
  }
  const double prior = prior_seconds(m, n, k, profile);
  if (below > 0 && above > 0) {
    const double weight = static_cast<double>(down) / (down + up);
    return flops / (below * root_power(above / below, weight));
  }
  // Larger products run no slower: the rate above is an optimistic one here.
  if (above > 0) return flops / above;
  if (below > 0) return std::max(prior, flops / (below * whole_power(kGrowthPerBucket, down)));
  return prior;
}

double saved_rate(const void* source, Cell cell) noexcept {
  return static_cast<const CpuRates*>(source)->flops_per_s[cell.bucket][cell.thinness];
}

using Atomics = std::atomic<float>[CpuRates::kBuckets][CpuRates::kThinness];

double learnt_rate(const void* source, Cell cell) noexcept {
  const auto& rates = *static_cast<const Atomics*>(source);
  return rates[cell.bucket][cell.thinness].load(std::memory_order_relaxed);
}

float updated(float known, float sample) noexcept {
  constexpr float kForget = 0.9F;
  if (known == 0) return -sample;                  // the first: unconfirmed
  if (known < 0) return std::max(-known, sample);  // the second: the better of the two
  return sample > known ? sample : std::max(sample, kForget * known);
}

}  // namespace

double predict_cpu_seconds(std::int64_t m, std::int64_t n, std::int64_t k,
                           const MachineProfile& profile) noexcept {
  return predict_from(saved_rate, &profile.cpu, m, n, k, profile);
}

void CpuRateLearner::learn(std::int64_t m, std::int64_t n, std::int64_t k, double seconds) noexcept {
  const double rate = flops_of(m, n, k) / seconds;
  // A clock that stood still or ran back teaches nothing; 1e15 is beyond any CPU.
  if (!(seconds > 0) || !(rate > 0) || rate > 1e15) return;
  const Cell cell = cell_of(m, n, k);
  std::atomic<float>& known = flops_per_s_[cell.bucket][cell.thinness];
  float before = known.load(std::memory_order_relaxed);
  while (!known.compare_exchange_weak(before, updated(before, static_cast<float>(rate)),
                                      std::memory_order_relaxed)) {
  }
}

bool CpuRateLearner::look_again(std::int64_t m, std::int64_t n, std::int64_t k, double cpu_s,
                                double gpu_s) noexcept {
  if (!(gpu_s > 0) || !(cpu_s < kFarthestLook * gpu_s)) return false;
  const Cell cell = cell_of(m, n, k);
  std::atomic<float>& aside = aside_s_[cell.bucket][cell.thinness];
  const auto price = static_cast<float>(std::max(cpu_s - gpu_s, 0.0));
  float before = aside.load(std::memory_order_relaxed), after = 0;
  bool enough = false;
  do {
    after = before + static_cast<float>(kLookShare * gpu_s);
    enough = after > price;
    if (enough) after -= price;
  } while (!aside.compare_exchange_weak(before, after, std::memory_order_relaxed));
  return enough;
}

void CpuRateLearner::learn_looking_again(std::int64_t m, std::int64_t n, std::int64_t k, double expected_s,
                                         double seconds) noexcept {
  const Cell cell = cell_of(m, n, k);
  const float known = flops_per_s_[cell.bucket][cell.thinness].load(std::memory_order_relaxed);
  if (!(known > 0) || flops_of(m, n, k) / seconds > known) learn(m, n, k, seconds);
  if (seconds > expected_s)
    aside_s_[cell.bucket][cell.thinness].fetch_sub(static_cast<float>(seconds - expected_s),
                                                   std::memory_order_relaxed);
}

void CpuRateLearner::snapshot(CpuRates& rates) const noexcept {
  for (int bucket = 0; bucket < CpuRates::kBuckets; ++bucket) {
    for (int thinness = 0; thinness < CpuRates::kThinness; ++thinness)
      rates.flops_per_s[bucket][thinness] = std::max(0.0, learnt_rate(&flops_per_s_, {bucket, thinness}));
  }
}

void CpuRateLearner::preload(const CpuRates& rates) noexcept {
  for (int bucket = 0; bucket < CpuRates::kBuckets; ++bucket) {
    for (int thinness = 0; thinness < CpuRates::kThinness; ++thinness) {
      const double rate = rates.flops_per_s[bucket][thinness];
      float nothing = 0;
      if (rate > 0)
        flops_per_s_[bucket][thinness].compare_exchange_strong(nothing, static_cast<float>(rate),
                                                               std::memory_order_relaxed);
    }
  }
}

double CpuRateLearner::predict(std::int64_t m, std::int64_t n, std::int64_t k,
                               const MachineProfile& profile) const noexcept {
  return predict_from(learnt_rate, &flops_per_s_, m, n, k, profile);
}

}  // namespace gemmhoist::decide
