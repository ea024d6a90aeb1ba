#include "sampling.hpp"

#include <algorithm>
#include <boost/math/statistics/univariate_statistics.hpp>
#include <chrono>
#include <cmath>
#include <limits>

namespace gemmhoist::bench {

Summary summarise(std::vector<double> samples) {
  std::erase_if(samples, [](double x) { return std::isnan(x); });
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  if (samples.empty()) return {0, none, none, none};
  Summary summary;
  summary.count = static_cast<int>(samples.size());
  summary.median = boost::math::statistics::median(samples);
  summary.iqr = samples.size() < 4 ? none : boost::math::statistics::interquartile_range(samples);
  // Not Boost's median_absolute_deviation: in 1.74 it returns a sample instead of its distance from the
  // centre.
  for (double& sample : samples) sample = std::abs(sample - summary.median);
  summary.mad = boost::math::statistics::median(samples);
  return summary;
}

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace gemmhoist::bench
