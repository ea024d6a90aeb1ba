// NVBLAS, through sgemm_, in a process of its own for each configuration.
//
// The two processes talk in JSON lines: the parent sends {"do": "begin", "shape": ...}, {"do": "call"},
// {"do": "reset"}, {"do": "check"} or {"do": "end"}; the child answers {"seconds": s}, {"wrong": text} or
// {"error": text}. The child's operands are its own, filled with the same numbers in the same way.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "host_blas.hpp"
#include "peer.hpp"
#include "sampling.hpp"

extern char** environ;

namespace gemmhoist::bench {
namespace {

using nlohmann::json;

constexpr int kAnswerTimeoutMs =
    180'000;  // the slowest call seen, 16384 cubed in unpinned memory, takes 2.5 s

json to_json(const Shape& s) {
  return {{"m", s.m},
          {"n", s.n},
          {"k", s.k},
          {"trans", s.trans},
          {"row", s.order == Order::row},
          {"alpha", s.alpha},
          {"beta", s.beta},
          {"ld", s.ld_operands}};
}

Shape shape_from(const json& j) {
  Shape s;
  s.m = j.at("m");
  s.n = j.at("n");
  s.k = j.at("k");
  s.trans = j.at("trans");
  s.order = j.at("row").get<bool>() ? Order::row : Order::column;
  s.entry = Entry::fortran;
  s.alpha = j.at("alpha");
  s.beta = j.at("beta");
  s.ld_operands = j.at("ld");
  return s;
}

class Child {
 public:
  Child(const std::string& self, const std::string& nvblas, const std::string& config) {
    int to_child[2], from_child[2];
    if (pipe2(to_child, O_CLOEXEC) != 0) throw std::runtime_error("pipe failed");
    if (pipe2(from_child, O_CLOEXEC) != 0) {
      close(to_child[0]);
      close(to_child[1]);
      throw std::runtime_error("pipe failed");
    }
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to_child[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, from_child[1], STDOUT_FILENO);
    const std::string variable = "NVBLAS_CONFIG_FILE=" + config;
    std::vector<char*> environment{const_cast<char*>(variable.c_str())};
    for (char** entry = environ; *entry != nullptr; ++entry) {
      if (std::strncmp(*entry, "NVBLAS_CONFIG_FILE=", 19) != 0) environment.push_back(*entry);
    }
    environment.push_back(nullptr);
    const char* arguments[] = {self.c_str(), "nvblas-child", nvblas.c_str(), nullptr};
    const int status = posix_spawn(&pid_, self.c_str(), &actions, nullptr, const_cast<char**>(arguments),
                                   environment.data());
    posix_spawn_file_actions_destroy(&actions);
    close(to_child[0]);
    close(from_child[1]);
    requests_ = to_child[1];
    answers_ = from_child[0];
    if (status != 0) {
      pid_ = -1;
      throw std::runtime_error("cannot start a child process for NVBLAS");
    }
  }
  Child(const Child&) = delete;
  ~Child() {
    close(requests_);  // the child ends at the end of its input
    close(answers_);
    if (pid_ <= 0) return;
    for (int i = 0; i < 200; ++i) {
      if (waitpid(pid_, nullptr, WNOHANG) != 0) return;
      usleep(10'000);
    }
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  json ask(const json& request) {
    const std::string line = request.dump() + "\n";
    if (write(requests_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
      throw std::runtime_error("the NVBLAS process is gone");
    }
    const json answer = json::parse(read_line(), nullptr, false);
    if (!answer.is_object()) throw std::runtime_error("the NVBLAS process does not answer in JSON");
    if (answer.contains("error")) throw std::runtime_error(answer["error"].get<std::string>());
    return answer;
  }

 private:
  // NVBLAS prints its own messages to stdout: lines that are no objects are not ours.
  std::string read_line() {
    for (;;) {
      const auto end = text_.find('\n');
      if (end != std::string::npos) {
        std::string line = text_.substr(0, end);
        text_.erase(0, end + 1);
        if (!line.empty() && line[0] == '{') return line;
        continue;
      }
      pollfd waiting{answers_, POLLIN, 0};
      const int ready = poll(&waiting, 1, kAnswerTimeoutMs);
      if (ready < 0 && errno == EINTR) continue;
      if (ready <= 0) throw std::runtime_error("the NVBLAS process does not answer");
      char part[4096];
      const ssize_t got = read(answers_, part, sizeof part);
      if (got <= 0) throw std::runtime_error("the NVBLAS process is gone");
      text_.append(part, static_cast<std::size_t>(got));
    }
  }

  pid_t pid_ = -1;
  int requests_ = -1, answers_ = -1;
  std::string text_;
};

class Nvblas final : public Peer {
 public:
  Nvblas(const PeerOptions& options, std::string cpu_blas, bool autopin, int tile)
      : self_(options.self),
        nvblas_(options.nvblas),
        cpu_blas_(std::move(cpu_blas)),
        autopin_(autopin),
        tile_(tile) {
    setting = fmt::format("tile={}", tile);
  }
  ~Nvblas() override {
    child_.reset();
    std::error_code ignored;
    if (!config_.empty()) std::filesystem::remove(config_, ignored);
  }

  void begin(Workload& workload) override {
    workload_ = &workload;
    if (!child_) {
      write_config();
      child_.emplace(self_, nvblas_, config_);
    }
    child_->ask({{"do", "begin"}, {"shape", to_json(workload.shape())}});
  }
  void end() override {
    if (child_) child_->ask({{"do", "end"}});
  }
  void reset() override { child_->ask({{"do", "reset"}}); }
  std::string check() override { return child_->ask({{"do", "check"}}).value("wrong", ""); }
  CallTimes call() override {
    CallTimes times;
    times.end_to_end_s = child_->ask({{"do", "call"}}).at("seconds");
    return times;
  }

 private:
  void write_config() {
    config_ = (std::filesystem::temp_directory_path() /
               fmt::format("nvblas-{}-{}{}.conf", getpid(), tile_, autopin_ ? "-autopin" : ""))
                  .string();
    std::ofstream file(config_);
    file << "NVBLAS_LOGFILE /dev/null\n"
         << "NVBLAS_CPU_BLAS_LIB " << cpu_blas_ << "\n"
         << "NVBLAS_GPU_LIST 0\n"
         << "NVBLAS_TILE_DIM " << tile_ << "\n";
    if (autopin_) file << "NVBLAS_AUTOPIN_MEM_ENABLED\n";
    if (!file.flush()) throw std::runtime_error("cannot write " + config_);
  }

  std::string self_, nvblas_, cpu_blas_, config_;
  bool autopin_;
  int tile_;
  std::optional<Child> child_;
};

json serve(const json& request, const HostBlas& blas, std::optional<Workload>& workload) {
  const std::string what = request.at("do");
  if (what == "begin") {
    workload.reset();  // the old operands go before the new ones come
    workload.emplace(shape_from(request.at("shape")), Memory::pageable, nullptr);
    return json::object();
  }
  if (what == "end") {
    workload.reset();
    return json::object();
  }
  if (!workload) return {{"error", "no operands yet"}};
  if (what == "reset") {
    workload->reset_c();
    return json::object();
  }
  if (what == "check") return {{"wrong", workload->check_c()}};
  if (what != "call") return {{"error", "unknown request"}};
  const double start = now_s();
  blas.multiply(workload->shape(), workload->call());
  return {{"seconds", now_s() - start}};
}

}  // namespace

PeerGroup make_nvblas(const PeerOptions& options, const CudaRuntime& cuda, bool autopin) {
  PeerGroup group{autopin ? "NVBLAS autopin" : "NVBLAS", cuda.why_not, {}};
  if (!group.why_not.empty()) return group;
  const HostBlas openblas = find_openblas(options.openblas);
  if (!openblas.usable()) group.why_not = "it needs a CPU BLAS, and there is no OpenBLAS";
  if (!group.why_not.empty()) return group;
  for (const int tile : options.tiles) {
    group.settings.push_back(std::make_unique<Nvblas>(options, openblas.object().path(), autopin, tile));
    group.settings.back()->name = group.name;
  }
  return group;
}

int run_nvblas_child(const std::string& nvblas) {
  const HostBlas blas(
      SharedObject({nvblas, "libnvblas.so.13", "libnvblas.so.12", "/usr/local/cuda/lib64/libnvblas.so"}),
      true);
  std::optional<Workload> workload;
  for (std::string line; std::getline(std::cin, line);) {
    json answer;
    try {
      answer = blas.usable() ? serve(json::parse(line), blas, workload)
                             : json{{"error", "no NVBLAS: " + blas.object().error()}};
    } catch (const std::exception& failure) {
      answer = {{"error", failure.what()}};
    }
    std::cout << answer.dump() << std::endl;
  }
  return 0;
}

}  // namespace gemmhoist::bench
