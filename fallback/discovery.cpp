// Discovery: which BLAS serves a spelling. The order is a list of steps; each either fills a Provider or
// leaves the matter to the next.
#include <dlfcn.h>
#include <sched.h>
#include <sys/resource.h>
#include <time.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

#include "config/options.hpp"
#include "fallback/adapters.hpp"
#include "fallback/calls.hpp"
#include "fallback/fallback.hpp"
#include "fallback/library_facts.hpp"
#include "fallback/loaded_objects.hpp"
#include "fallback/opened_libraries.hpp"
#include "observe/decision_log.hpp"

namespace gemmhoist::fallback {
namespace {

constexpr const char* kNames[kSpellings] = {
    "cblas_sgemm", "cblas_sgemm64_", "cblas_sgemm_64", "scipy_cblas_sgemm", "scipy_cblas_sgemm64_",
    "sgemm_",      "sgemm",          "sgemm_64_",      "scipy_sgemm_",      "scipy_sgemm_64_",
};

// --- what the process already has under the caller's own spelling ---

struct Own {
  void* function = nullptr;
  LoadedObject object;
  LibraryFacts facts;
  bool ilp64 = false;
};

bool describe(Spelling spelling, void* function, Own& own) noexcept {
  own.object = object_of(function);
  if (function == nullptr || !own.object || is_ours(own.object)) return false;
  void* handle = hold(own.object);
  if (handle == nullptr) return false;
  own.function = function;
  own.facts = facts_of(handle, own.object);
  own.ilp64 = is_plain_name(spelling) ? own.facts.plain_names_ilp64 : is_64bit_name(spelling);
  return true;
}

// A library loaded privately: RTLD_NEXT does not reach the dependencies of a module that was dlopened
// (NumPy's BLAS, say). Of several, the one that is neither naive nor of an unexpected integer width.
bool find_private(Spelling spelling, Own& best) noexcept {
  const char* name = spelling_name(spelling);
  int best_rank = 4;
  LoadedObject object;
  for (int index = 0; best_rank > 0 && (object = object_defining(name, index)); ++index) {
    if (opened_by_us(object)) continue;
    void* handle = hold(object);
    Own own;
    if (handle == nullptr || !describe(spelling, dlsym(handle, name), own) ||
        own.object.base != object.base) {
      continue;
    }
    const int rank = (own.facts.naive ? 2 : 0) + (own.ilp64 != is_64bit_name(spelling) ? 1 : 0);
    if (rank >= best_rank) continue;
    best_rank = rank;
    best = own;
  }
  return best_rank < 4;
}

bool find_own(Spelling spelling, Own& own) noexcept {
  return describe(spelling, dlsym(RTLD_NEXT, spelling_name(spelling)), own) || find_private(spelling, own);
}

Provider provider_of(const Own& own, Spelling spelling) noexcept {
  Provider p;
  p.function = p.target = own.function;
  p.cblas = is_cblas(spelling);
  p.arguments_ilp64 = p.ilp64 = own.ilp64;
  p.may_reenter = p.target_may_reenter = !own.facts.openblas;
  p.path = own.object.path;
  return p;
}

// --- a library named by a path or a soname ---

// The best of the library's spellings: the caller's own, else an equivalent; another interface is a matter of
// passing arguments, another integer width may cost cutting the product into blocks.
bool choose_symbol(void* library, Spelling spelling, bool arguments_ilp64, Provider& p) noexcept {
  int best_cost = 8;
  for (int i = 0; i < kSpellings; ++i) {
    const auto candidate = static_cast<Spelling>(i);
    void* symbol = dlsym(library, kNames[i]);
    if (symbol == nullptr) continue;
    const LoadedObject object = object_of(symbol);
    void* handle = is_ours(object) ? nullptr : hold(object);
    if (handle == nullptr) continue;
    const LibraryFacts facts = facts_of(handle, object);
    const bool ilp64 = is_plain_name(candidate) ? facts.plain_names_ilp64 : is_64bit_name(candidate);
    const bool same_interface = is_cblas(candidate) == is_cblas(spelling);
    const int cost =
        (ilp64 != arguments_ilp64 ? 4 : 0) + (same_interface ? 0 : 2) + (candidate == spelling ? 0 : 1);
    if (cost >= best_cost) continue;
    best_cost = cost;
    p.target = symbol;
    p.cblas = is_cblas(candidate);
    p.ilp64 = ilp64;
    p.target_may_reenter = !facts.openblas;
    p.path = object.path;
    const bool direct = same_interface && ilp64 == arguments_ilp64;
    p.function = direct ? symbol : adapter_of(spelling);
    p.may_reenter = direct && p.target_may_reenter;  // an adapter guards its own calls
  }
  return best_cost < 8;
}

bool from_library(const char* name, Spelling spelling, bool arguments_ilp64, Provider& p) noexcept {
  void* library = open_library(name);
  if (library == nullptr) return false;
  p.arguments_ilp64 = arguments_ilp64;
  if (choose_symbol(library, spelling, arguments_ilp64, p)) return true;
  dlclose(library);
  return false;
}

bool from_setting(Spelling spelling, bool arguments_ilp64, Provider& p) noexcept {
  const char* path = config::options().fallback;
  if (path[0] == '\0') return false;
  if (from_library(path, spelling, arguments_ilp64, p)) return true;
  observe::warn(
      observe::Warning::bad_setting,
      "GEMMHOIST_FALLBACK=%s is no BLAS library with a single-precision product, or cannot be loaded; "
      "allowed: the path of a shared library that exports cblas_sgemm or sgemm_; ignored",
      path);
  return false;
}

#if defined(__x86_64__)
#define GEMMHOIST_MULTIARCH "/usr/lib/x86_64-linux-gnu/"
#elif defined(__aarch64__)
#define GEMMHOIST_MULTIARCH "/usr/lib/aarch64-linux-gnu/"
#else
#define GEMMHOIST_MULTIARCH "/usr/lib/"
#endif

// By soname first; then by path, for when the soname leads to ourselves (installed under OpenBLAS' name).
constexpr const char* kOpenBlas[] = {
    "libopenblas.so.0",
    "libopenblasp.so.0",
    "libopenblas.so",
    GEMMHOIST_MULTIARCH "libopenblas.so.0",
    GEMMHOIST_MULTIARCH "openblas-pthread/libopenblas.so.0",
    GEMMHOIST_MULTIARCH "openblas-openmp/libopenblas.so.0",
    GEMMHOIST_MULTIARCH "openblas-serial/libopenblas.so.0",
    "/usr/lib64/libopenblas.so.0",
    "/usr/lib64/libopenblasp.so.0",
    "/usr/lib/libopenblas.so.0",
    "/usr/local/lib/libopenblas.so.0",
    "/opt/OpenBLAS/lib/libopenblas.so.0",
};
constexpr const char* kOpenBlas64[] = {
    "libopenblas64.so.0",
    "libopenblas64_.so.0",
    "libopenblasp64.so.0",
    "libopenblasp64_.so.0",
    "libopenblas64_.so",
    GEMMHOIST_MULTIARCH "libopenblas64.so.0",
    GEMMHOIST_MULTIARCH "openblas64-pthread/libopenblas64.so.0",
    GEMMHOIST_MULTIARCH "openblas64-openmp/libopenblas64.so.0",
    GEMMHOIST_MULTIARCH "openblas64-serial/libopenblas64.so.0",
    "/usr/lib64/libopenblas64_.so.0",
    "/usr/lib64/libopenblas64.so.0",
};
constexpr const char* kOthers[] = {
    "libmkl_rt.so.2",    "libmkl_rt.so",   "libblis.so.4",     "libblis.so",
    "libflexiblas.so.3", "libsatlas.so.3", "libblas.so.3",     GEMMHOIST_MULTIARCH "blas/libblas.so.3",
    "libblas64.so.3",    "libcblas.so.3",  "libgslcblas.so.0",
};
#undef GEMMHOIST_MULTIARCH

template <std::size_t N>
bool from_list(const char* const (&names)[N], Spelling spelling, bool arguments_ilp64, Provider& p) noexcept {
  for (const char* name : names) {
    if (from_library(name, spelling, arguments_ilp64, p)) return true;
  }
  return false;
}

bool from_openblas(Spelling spelling, bool arguments_ilp64, Provider& p) noexcept {
  return arguments_ilp64
             ? from_list(kOpenBlas64, spelling, true, p) || from_list(kOpenBlas, spelling, true, p)
             : from_list(kOpenBlas, spelling, false, p) || from_list(kOpenBlas64, spelling, false, p);
}

Provider built_in(Spelling spelling, bool arguments_ilp64) noexcept {
  observe::warn(
      observe::Warning::no_blas,
      "no BLAS library was found: products on the CPU run in a plain loop (GEMMHOIST_FALLBACK names one)");
  Provider p;
  p.function = adapter_of(spelling);
  p.arguments_ilp64 = arguments_ilp64;
  p.path = "built-in";
  return p;
}

// OpenBLAS makes a thread and a buffer of some 32 MiB for each CPU as it is loaded; where it cannot, it ends
// the process or hangs. A program with a BLAS of its own does not get another one in such a place, however
// slow its own.
bool may_load_another() noexcept {
  constexpr rlim_t kFewThreads = 1024;  // of the user's, all processes together
  rlimit memory{}, threads{};
  if (getrlimit(RLIMIT_AS, &memory) != 0 || getrlimit(RLIMIT_NPROC, &threads) != 0) return false;
  return memory.rlim_cur == RLIM_INFINITY && threads.rlim_cur >= kFewThreads;
}

Provider discover(Spelling spelling) noexcept {
  Own own;
  const bool have_own = find_own(spelling, own);
  const bool arguments_ilp64 = have_own ? own.ilp64 : is_64bit_name(spelling);
  Provider p;
  if (from_setting(spelling, arguments_ilp64, p)) return p;
  if (have_own && (!own.facts.naive || !may_load_another())) return provider_of(own, spelling);
  if (from_openblas(spelling, arguments_ilp64, p)) return p;
  if (have_own) return provider_of(own, spelling);
  if (from_list(kOthers, spelling, arguments_ilp64, p)) return p;
  return built_in(spelling, arguments_ilp64);
}

// --- published results ---

// Threads that meet a spelling for the first time together each look for themselves and the first to finish
// is believed: no lock that a fork could leave held, no thread that waits for another inside the loader's
// lock. What the others found is wasted, hence a pool.
constexpr int kPoolSize = 256;
constinit Provider g_pool[kPoolSize];
constinit std::atomic<int> g_pool_used{0};

// --- discovery and fork ---

// A fork in the middle of a dlopen leaves the child with half a library. So a fork waits for the discoveries
// under way, and holds up those that come; for a second at most, since a thread in a discovery may itself
// wait for the loader's lock, which a constructor that forks holds.
constexpr int kLongestWaitMs = 1000;
constinit std::atomic<int> g_discovering{0};  // threads
constinit std::atomic<int> g_forking{0};      // threads between prepare and parent
constinit thread_local bool t_discovering = false;

void wait_while(const std::atomic<int>& threads) noexcept {
  for (int i = 0; i < kLongestWaitMs && threads.load() != 0; ++i) {
    const timespec millisecond{0, 1'000'000};
    nanosleep(&millisecond, nullptr);
  }
}

class Discovering {
 public:
  Discovering() noexcept : outermost_(!t_discovering) {
    if (!outermost_) return;  // a constructor of a library that discovery opens multiplies
    t_discovering = true;
    g_discovering.fetch_add(1);
    if (g_forking.load() == 0) return;
    g_discovering.fetch_sub(1);
    wait_while(g_forking);
    g_discovering.fetch_add(1);
  }
  ~Discovering() {
    if (!outermost_) return;
    g_discovering.fetch_sub(1);
    t_discovering = false;
  }
  Discovering(const Discovering&) = delete;
  Discovering& operator=(const Discovering&) = delete;

 private:
  const bool outermost_;
};

[[gnu::noinline, gnu::cold]] const Provider& find_and_publish(Spelling spelling) noexcept {
  const int saved_errno = errno;
  const Discovering discovering;
  std::atomic<const Provider*>& slot = detail::known.published[static_cast<int>(spelling)];
  const Provider found = discover(spelling);
  if (found.may_reenter || found.target_may_reenter) put_guards_in_use();
  const Provider* expected = slot.load(std::memory_order_acquire);
  if (expected == nullptr) {
    const int index = g_pool_used.fetch_add(1, std::memory_order_relaxed);
    if (index < kPoolSize) {
      g_pool[index] = found;
      slot.compare_exchange_strong(expected, &g_pool[index], std::memory_order_release,
                                   std::memory_order_acquire);
    } else {
      g_pool_used.store(kPoolSize, std::memory_order_relaxed);
      while (slot.load(std::memory_order_acquire) == nullptr) sched_yield();  // 256 others are at it
    }
  }
  (void)dlerror();  // a name that we did not find is no error of the host's
  errno = saved_errno;
  return *slot.load(std::memory_order_acquire);
}

}  // namespace

constinit detail::Known detail::known;

const char* spelling_name(Spelling spelling) noexcept {
  return spelling < Spelling::count_ ? kNames[static_cast<int>(spelling)] : "";
}

void before_fork() noexcept {
  const int saved_errno = errno;
  g_forking.fetch_add(1);
  if (!t_discovering) wait_while(g_discovering);
  errno = saved_errno;
}

void after_fork_in_parent() noexcept {
  g_forking.fetch_sub(1);
}

void after_fork_in_child() noexcept {
  g_forking.store(0);
  g_discovering.store(t_discovering ? 1 : 0);
}

const Provider& provider(Spelling spelling) noexcept {
  const Provider* known = known_provider(spelling);
  return known != nullptr ? *known : find_and_publish(spelling);
}

}  // namespace gemmhoist::fallback
