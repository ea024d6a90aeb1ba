// Samples of one clock and what is said of them. The statistics are Boost.Math's.
#pragma once

#include <vector>

namespace gemmhoist::bench {

struct Summary {
  int count = 0;
  double median = 0;  // NaN without samples
  double mad = 0;     // median absolute deviation from the median; NaN without samples
  double iqr = 0;     // interquartile range; NaN under four samples
};

// NaN samples (a clock that the peer does not have) are left out.
Summary summarise(std::vector<double> samples);

// Seconds on the monotonic clock.
double now_s();

}  // namespace gemmhoist::bench
