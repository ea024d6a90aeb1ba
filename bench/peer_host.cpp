// Peers that are called as a BLAS: OpenBLAS, and our library with its own log for two of the clocks.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
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

// The library's log, read as it grows: one JSON object a line and call.
class CallLog {
 public:
  explicit CallLog(std::string path) : path_(std::move(path)) {}
  ~CallLog() {
    if (fd_ >= 0) close(fd_);
  }
  CallLog(const CallLog&) = delete;

  void skip() { drain(); }
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
    if (fd_ < 0) fd_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd_ < 0) return;
    char part[4096];
    for (ssize_t got; (got = read(fd_, part, sizeof part)) > 0;)
      text_.append(part, static_cast<std::size_t>(got));
  }

  std::string path_;
  int fd_ = -1;
  std::string text_;
};

double seconds_of(const nlohmann::json& line, const char* field) {
  const auto found = line.find(field);
  if (found == line.end() || !found->is_number()) return kNoClock;
  const double seconds = found->get<double>();
  return seconds > 0 ? seconds : kNoClock;  // 0: not known
}

class Ours final : public Peer {
 public:
  Ours(const HostBlas& blas, std::shared_ptr<CallLog> log, Memory where) : blas_(blas), log_(std::move(log)) {
    name = "gemmhoist";
    memory = where;
  }

  void begin(Workload& workload) override {
    workload_ = &workload;
    log_->skip();
  }
  CallTimes call() override {
    CallTimes times;
    const double start = now_s();
    blas_.multiply(workload_->shape(), workload_->call());
    times.end_to_end_s = now_s() - start;
    const auto line = log_->last();
    if (line.is_null()) return times;
    times.submit_s = seconds_of(line, "submit_s");
    times.kernel_s = seconds_of(line, "kernel_s");
    times.route = line.value("route", "");
    return times;
  }

 private:
  HostBlas blas_;
  std::shared_ptr<CallLog> log_;
};

std::string fresh_log() {
  std::string path = (std::filesystem::temp_directory_path() / "gemmhoist-bench-XXXXXX").string();
  const int fd = mkstemp(path.data());
  if (fd < 0) throw std::runtime_error("cannot make a temporary file for the library's log");
  close(fd);
  return path;
}

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
  const std::string log_path = fresh_log();
  setenv("GEMMHOIST_ROUTE", "gpu", 0);
  setenv("GEMMHOIST_LOG_FILE", log_path.c_str(), 1);
  if (!options.openblas.empty()) setenv("GEMMHOIST_FALLBACK", options.openblas.c_str(), 0);
  HostBlas blas(SharedObject({options.library}), false);
  if (!blas.usable()) {
    std::filesystem::remove(log_path);
    pageable.why_not =
        blas.object().loaded() ? "the library lacks cblas_sgemm or sgemm_" : blas.object().error();
    return groups;
  }
  auto log = std::make_shared<CallLog>(log_path);
  std::atexit([] {
    if (const char* path = getenv("GEMMHOIST_LOG_FILE")) unlink(path);
  });
  pageable.settings.push_back(std::make_unique<Ours>(blas, log, Memory::pageable));
  if (options.pinned && cuda.usable()) {
    PeerGroup& pinned = groups.emplace_back();
    pinned.name = "gemmhoist pinned";
    pinned.settings.push_back(std::make_unique<Ours>(blas, log, Memory::pinned));
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
