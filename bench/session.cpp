#include "session.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <stdexcept>
#include <thread>

namespace gemmhoist::bench {
namespace {

constexpr int kWarmUps = 2;
constexpr int kScreeningCalls = 2;
constexpr double kShortCall_s = 2e-3;  // under it, waking threads would show in the time

// One peer on its way through the rounds.
struct Contestant {
  Peer* peer = nullptr;
  Result result;
  std::vector<double> end_to_end, submit, kernel;  // by round
  double spent_s = 0;

  bool runs() const { return peer != nullptr && result.status.empty(); }
};

using Workloads = std::map<Memory, Workload>;

void settle(const Peer& peer) {
  if (peer.settle_s() > 0) std::this_thread::sleep_for(std::chrono::duration<double>(peer.settle_s()));
}

double timed(const CallTimes& times) {
  return std::isnan(times.end_to_end_s) ? times.kernel_s : times.end_to_end_s;
}

// First call, check of its result, warm-up. The best of a few calls, to choose between settings.
double try_out(Peer& peer, Workload& workload, Result& result, int warm_ups) {
  peer.begin(workload);
  peer.reset();
  result.first_s = timed(peer.call());
  const std::string wrong = peer.check();
  if (!wrong.empty()) result.status = "WRONG: " + wrong;
  double best = result.first_s;
  for (int i = 0; i < warm_ups && wrong.empty(); ++i) best = std::min(best, timed(peer.call()));
  settle(peer);
  return best;
}

Result blank(const Peer& peer) {
  Result result;
  result.peer = peer.name;
  result.setting = peer.setting;
  result.memory = peer.memory;
  return result;
}

// The fastest setting of a group, warmed up; the others are put away. A wrong setting stands for its group,
// so that it is seen.
Contestant choose(PeerGroup& group, Workloads& workloads) {
  Contestant chosen;
  chosen.result.peer = group.name;
  if (!group.why_not.empty()) {
    chosen.result.status = "n/a: " + group.why_not;
    return chosen;
  }
  double best = std::numeric_limits<double>::infinity();
  const int warm_ups = group.settings.size() > 1 ? kScreeningCalls : kWarmUps;
  std::string failure;
  for (auto& setting : group.settings) {
    Result result = blank(*setting);
    try {
      const double seconds = try_out(*setting, workloads.at(setting->memory), result, warm_ups);
      const bool wrong = !result.status.empty();
      if (wrong || seconds < best) {
        if (chosen.peer != nullptr) chosen.peer->end();
        best = wrong ? 0 : seconds;
        chosen.peer = setting.get();
        chosen.result = std::move(result);
      } else {
        setting->end();
      }
      if (wrong) break;
    } catch (const std::exception& error) {
      failure = error.what();
    }
  }
  if (chosen.peer == nullptr) chosen.result.status = "n/a: " + failure;
  return chosen;
}

void call_once(Contestant& contestant) {
  try {
    // A short call after a pause finds cold caches and sleeping threads, whoever's turn it is: one more goes
    // first.
    const bool is_short = contestant.result.first_s < kShortCall_s;
    if (is_short) contestant.peer->call();
    const CallTimes times = contestant.peer->call();
    contestant.end_to_end.push_back(times.end_to_end_s);
    contestant.submit.push_back(times.submit_s);
    contestant.kernel.push_back(times.kernel_s);
    contestant.spent_s += timed(times) + contestant.peer->settle_s();
    std::string& route = contestant.result.route;
    if (contestant.end_to_end.size() == 1) route = times.route;
    if (route != times.route) route = "mixed";
  } catch (const std::exception& error) {
    contestant.result.status = std::string("n/a: ") + error.what();
  }
  settle(*contestant.peer);
}

void run_rounds(std::vector<Contestant>& contestants, const SessionOptions& options) {
  const auto running =
      std::count_if(contestants.begin(), contestants.end(), [](auto& c) { return c.runs(); });
  const double share = options.seconds_per_shape / static_cast<double>(std::max<std::ptrdiff_t>(running, 1));
  for (int round = 0; round < options.reps; ++round) {
    for (auto& contestant : contestants) {
      if (!contestant.runs()) continue;
      if (round >= kFewestCalls && contestant.spent_s > share) continue;
      call_once(contestant);
    }
  }
}

// Speed is worth nothing where results go wrong under repetition: one more call on fresh values, checked.
void check_again(Contestant& contestant) {
  if (!contestant.runs()) return;
  try {
    contestant.peer->reset();
    contestant.peer->call();
    const std::string wrong = contestant.peer->check();
    contestant.result.status = wrong.empty() ? "ok" : "WRONG: " + wrong;
    contestant.peer->end();
  } catch (const std::exception& error) {
    contestant.result.status = std::string("n/a: ") + error.what();
  }
}

// Median of the ratios within rounds: drift that both saw cancels out.
double paired_ratio(const std::vector<double>& theirs, const std::vector<double>& ours) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(theirs.size(), ours.size()); ++i)
    ratios.push_back(theirs[i] / ours[i]);
  return summarise(ratios).median;
}

void finish(ShapeReport& report, std::vector<Contestant>& contestants, const Rates& rates) {
  double fastest_kernel = std::numeric_limits<double>::infinity();
  for (auto& contestant : contestants) {
    Result& result = contestant.result;
    result.end_to_end = summarise(contestant.end_to_end);
    result.submit = summarise(contestant.submit);
    result.kernel = summarise(contestant.kernel);
    result.ratio = paired_ratio(contestant.end_to_end, contestants.front().end_to_end);
    const bool sets_the_rate = result.peer.starts_with("gemmhoist") || result.peer == "cuBLAS kernel";
    if (result.ok() && sets_the_rate && result.kernel.count > 0) {
      fastest_kernel = std::min(fastest_kernel, result.kernel.median);
    }
    report.results.push_back(result);
  }
  if (std::isinf(fastest_kernel)) return;
  report.kernel_flops_per_s = report.shape.flops() / fastest_kernel;
  report.floor_s = floor_s(report.shape, rates, report.kernel_flops_per_s);
  report.staged_floor_s = staged_floor_s(report.shape, rates, report.kernel_flops_per_s);
}

Workloads make_workloads(const Shape& shape, const std::vector<PeerGroup>& groups, const CudaRuntime& cuda) {
  Workloads workloads;
  for (const auto& group : groups) {
    for (const auto& setting : group.settings) {
      if (workloads.contains(setting->memory)) continue;
      workloads.try_emplace(setting->memory, shape, setting->memory, &cuda);
    }
  }
  return workloads;
}

}  // namespace

ShapeReport run_shape(const Shape& shape, std::vector<PeerGroup>& groups, const Rates& rates,
                      const CudaRuntime& cuda, const SessionOptions& options) {
  ShapeReport report;
  report.shape = shape;
  Workloads workloads = make_workloads(shape, groups, cuda);
  std::vector<Contestant> contestants;
  for (auto& group : groups) contestants.push_back(choose(group, workloads));
  run_rounds(contestants, options);
  for (auto& contestant : contestants) check_again(contestant);
  finish(report, contestants, rates);
  return report;
}

}  // namespace gemmhoist::bench
