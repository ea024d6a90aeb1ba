// Peers that are called as a BLAS: OpenBLAS, and our library with its own log for two of the clocks.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "host_blas.hpp"
#include "peer.hpp"
#include "sampling.hpp"

namespace gemmhoist::bench {
namespace {

class OpenBlas final : public Peer {
 public:
  explicit OpenBlas(HostBlas blas) : blas_(std::move(blas)) { name = "OpenBLAS"; }

  void begin(Workload& workload) override { workload_ = &workload; }
  CallTimes call() override {
    CallTimes times;
    const double start = now_s();
    blas_.multiply(workload_->shape(), workload_->call());
    times.end_to_end_s = now_s() - start;
    return times;
  }
  // OpenBLAS' threads poll for 2^26 cycles (its THREAD_TIMEOUT) before they sleep: 27 ms at 2.5 GHz.
  double settle_s() const override { return 0.035; }

 private:
  HostBlas blas_;
};

// The library's log, one JSON object a line and call, read as it grows. It lives in memory: a line on a
// disk's file system costs tens of microseconds, which a small product's time would show, and leaves a file
// behind.
class CallLog {
 public:
  CallLog() : fd_(memfd_create("gemmhoist-log", MFD_CLOEXEC)) {
    if (fd_ < 0) throw std::runtime_error("no memory file for the library's log");
  }
  ~CallLog() { close(fd_); }
  CallLog(const CallLog&) = delete;

  std::string path() const { return fmt::format("/proc/self/fd/{}", fd_); }
  void skip() {
    drain();
    text_.clear();
  }
  // The last line that was written since, or null.
  nlohmann::json last() {
    drain();
    const auto end = text_.rfind('\n');
    if (end == std::string::npos) return nullptr;
    const auto before = end == 0 ? std::string::npos : text_.rfind('\n', end - 1);
    const std::size_t start = before == std::string::npos ? 0 : before + 1;
    auto line = nlohmann::json::parse(text_.substr(start, end - start), nullptr, false);
    text_.clear();
    return line.is_object() ? line : nlohmann::json(nullptr);
  }

 private:
  void drain() {
    char part[4096];
    for (ssize_t got; (got = pread(fd_, part, sizeof part, read_)) > 0; read_ += got) {
      text_.append(part, static_cast<std::size_t>(got));
    }
  }

  int fd_;
  off_t read_ = 0;
  std::string text_;
};

// A time of the library's log, which is in milliseconds.
double seconds_of(const nlohmann::json& line, const char* field) {
  const auto found = line.find(field);
  if (found == line.end() || !found->is_number()) return kNoClock;
  const double seconds = 1e-3 * found->get<double>();
  return seconds > 0 ? seconds : kNoClock;  // 0: not known
}

class Ours final : public Peer {
 public:
  Ours(const HostBlas& blas, CallLog* log, Memory where, Arithmetic arithmetic)
      : blas_(blas), log_(log), arithmetic_(arithmetic) {
    name = "gemmhoist";
    memory = where;
  }

  void begin(Workload& workload) override {
    workload_ = &workload;
    log_->skip();
  }
  std::string check() override { return workload_->check_c(arithmetic_); }
  CallTimes call() override {
    CallTimes times;
    const double start = now_s();
    blas_.multiply(workload_->shape(), workload_->call());
    times.end_to_end_s = now_s() - start;
    const auto line = log_->last();
    if (line.is_null()) return times;
    times.submit_s = seconds_of(line, "submit_ms");
    times.kernel_s = seconds_of(line, "kernel_ms");
    times.route = line.value("route", "");
    return times;
  }

 private:
  HostBlas blas_;
  CallLog* log_;
  Arithmetic arithmetic_;
};

}  // namespace

std::vector<PeerGroup> make_ours(const PeerOptions& options, const CudaRuntime& cuda) {
  std::vector<PeerGroup> groups;
  PeerGroup& pageable = groups.emplace_back();
  pageable.name = "gemmhoist";
  if (options.library.empty()) {
    pageable.why_not = "no --library";
    return groups;
  }
  // The library reads its settings once, when it is loaded. What the user set stays.
  static auto* const log = new CallLog;  // never destroyed: the library writes to it at exit
  setenv("GEMMHOIST_ROUTE", "gpu", 0);
  setenv("GEMMHOIST_LOG_FILE", log->path().c_str(), 1);
  if (!options.openblas.empty()) setenv("GEMMHOIST_FALLBACK", options.openblas.c_str(), 0);
  if (!options.precision.empty()) setenv("GEMMHOIST_PRECISION", options.precision.c_str(), 1);
  const char* precision = std::getenv("GEMMHOIST_PRECISION");
  const Arithmetic arithmetic =
      precision != nullptr && std::strcmp(precision, "tf32") == 0 ? Arithmetic::tf32 : Arithmetic::single;
  HostBlas blas(SharedObject({options.library}), false);
  if (!blas.usable()) {
    pageable.why_not =
        blas.object().loaded() ? "the library lacks cblas_sgemm or sgemm_" : blas.object().error();
    return groups;
  }
  pageable.settings.push_back(std::make_unique<Ours>(blas, log, Memory::pageable, arithmetic));
  if (options.pinned && cuda.usable()) {
    PeerGroup& pinned = groups.emplace_back();
    pinned.name = "gemmhoist pinned";
    pinned.settings.push_back(std::make_unique<Ours>(blas, log, Memory::pinned, arithmetic));
    pinned.settings.back()->name = pinned.name;
  }
  return groups;
}

PeerGroup make_openblas(const PeerOptions& options) {
  PeerGroup group;
  group.name = "OpenBLAS";
  HostBlas blas = find_openblas(options.openblas);
  if (blas.usable()) {
    group.settings.push_back(std::make_unique<OpenBlas>(std::move(blas)));
  } else {
    group.why_not = blas.object().loaded() ? "it lacks cblas_sgemm or sgemm_" : blas.object().error();
  }
  return group;
}

}  // namespace gemmhoist::bench
