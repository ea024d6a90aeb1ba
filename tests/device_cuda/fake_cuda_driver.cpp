// A libcuda.so.1 on host memory: the part of the driver that the library uses, and what the tests' "host
// program" needs of it. Device memory is host memory, streams are done as soon as they are given work,
// kernels are loops over the parameter structs, told by the kernel's name. It answers errors where the real
// driver does (no context current, memory out of range, a capture of another thread broken), so that a sin
// against the rules shows without a GPU.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "core/checked.hpp"
#include "core/kernel_descriptor.hpp"
#include "device/cuda/driver_types.hpp"
#include "fake_cuda.hpp"
#include "support/image_reference.hpp"

namespace cuda = gemmhoist::device::cuda;
using cuda::Context;
using cuda::DevicePtr;
using cuda::EventRef;
using cuda::Function;
using cuda::MemoryCopy2D;
using cuda::Module;
using cuda::Result;
using cuda::StreamRef;
namespace result = cuda::result;

#define FAKE_API extern "C" __attribute__((visibility("default")))

namespace gemmhoist::device::cuda {
struct ContextHandle {
  bool primary = false;
};
struct ModuleHandle {
  Context owner;
  std::string text;  // of an image made for the fake; empty: any kernel is in it
};
struct FunctionHandle {
  std::string name;
  int dynamic_shared_bytes = 48 * 1024;
  bool loaded = false;
};
struct StreamHandle {
  Context owner;
  bool waits_for_default = false;  // not made NON_BLOCKING
  bool capturing = false;
};
struct EventHandle {
  Context owner;
  std::chrono::steady_clock::time_point time;
  bool recorded = false;
};
}  // namespace gemmhoist::device::cuda

namespace {

struct Block {
  Context owner;
  std::size_t bytes;
  enum Kind { device, managed, pinned_allocation, registered } kind;
  unsigned long long id;
};

struct Rule {
  std::string function;  // empty: any
  long left = 0;         // calls until it strikes; 0: never
  int code = 0;
  bool sticky = false;
  bool struck = false;
};

struct Driver {
  std::mutex mutex;
  std::map<std::string, long long> settings;
  std::vector<Rule> rules;
  std::vector<std::string> log;
  std::set<Context> contexts;
  std::map<Module, std::unique_ptr<cuda::ModuleHandle>> modules;
  std::map<Function, std::unique_ptr<cuda::FunctionHandle>> functions;
  std::map<StreamRef, std::unique_ptr<cuda::StreamHandle>> streams;
  std::map<EventRef, std::unique_ptr<cuda::EventHandle>> events;
  std::map<std::uintptr_t, Block> blocks;  // by first address
  unsigned long long next_id = 1;
  Context primary = nullptr;
  int global_captures = 0;
  bool capture_broken = false;
  bool initialised = false;

  Driver() { read_environment(); }
  void read_environment();
  std::size_t used_bytes() const {
    std::size_t sum = 0;
    for (const auto& [address, block] : blocks) sum += block.kind == Block::device ? block.bytes : 0;
    return sum;
  }
};

Driver& driver() {
  static Driver* it = new Driver;  // outlives every exit handler
  return *it;
}

thread_local Context current = nullptr;
thread_local int capture_mode = 0;  // GLOBAL

void Driver::read_environment() {
  settings = {
      {"version", 13000},      {"devices", 1}, {"arch", 90},           {"memory", 512LL << 20}, {"mode", 0},
      {"pitch", 0x7fffffffLL}, {"init", 0},    {"shared", 227 * 1024}, {"ranges", 1},           {"hang", 0},
      {"count", 132}};
  const char* text = std::getenv("FAKE_CUDA");
  for (std::string rest = text != nullptr ? text : ""; !rest.empty();) {
    const std::string item = rest.substr(0, rest.find(','));
    rest.erase(0, item.size() + 1);
    const std::string key = item.substr(0, item.find('='));
    const std::string value = item.size() > key.size() ? item.substr(key.size() + 1) : "";
    if (key == "fail") {
      const char* p = value.c_str();
      char* end = nullptr;
      Rule rule;
      rule.left = std::strtol(p, &end, 10);
      rule.code = *end == ':' ? static_cast<int>(std::strtol(end + 1, &end, 10)) : result::unknown;
      rule.sticky = std::strcmp(end, ":sticky") == 0;
      rules.push_back(rule);
    } else {
      settings[key] = std::strtoll(value.c_str(), nullptr, 0);
    }
  }
}

enum class Needs { nothing, context };
enum class UnderCapture { allowed, unsafe };

// One driver call: takes the lock, writes the log, applies failure rules and checks that the calling thread
// may.
class Call {
 public:
  Call(const char* name, Needs needs, UnderCapture capture = UnderCapture::allowed) : lock_(driver().mutex) {
    Driver& d = driver();
    d.log.emplace_back(name);
    for (Rule& rule : d.rules) {
      const bool counts = rule.function.empty() || rule.function == name;
      if (rule.sticky && rule.struck) answer_ = rule.code;
      if (counts && rule.left > 0 && --rule.left == 0) {
        rule.struck = true;
        answer_ = rule.code;
      }
    }
    if (answer_ != 0) return;
    if (capture == UnderCapture::unsafe && d.global_captures > 0 &&
        capture_mode != cuda::kCaptureModeRelaxed) {
      d.capture_broken = true;
      answer_ = 900;  // CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
    } else if (needs == Needs::context && (current == nullptr || d.contexts.count(current) == 0)) {
      answer_ = result::invalid_context;
    }
  }
  Result answer() const { return answer_; }

 private:
  std::lock_guard<std::mutex> lock_;
  Result answer_ = 0;
};

#define ENTER(...)              \
  const Call call(__VA_ARGS__); \
  if (call.answer() != 0) return call.answer()

// The block that holds all of [address, address + bytes), or null.
const Block* block_of(std::uintptr_t address, std::size_t bytes, std::uintptr_t* start = nullptr) {
  auto& blocks = driver().blocks;
  auto it = blocks.upper_bound(address);
  if (it == blocks.begin()) return nullptr;
  --it;
  if (address - it->first + bytes > it->second.bytes) return nullptr;
  if (start != nullptr) *start = it->first;
  return &it->second;
}

bool on_device(DevicePtr address, std::size_t bytes) {
  const Block* block = block_of(address, bytes);
  return block != nullptr && (block->kind == Block::device || block->kind == Block::managed);
}

bool stream_ok(StreamRef stream) {
  return stream == nullptr || (driver().streams.count(stream) != 0 && stream->owner == current);
}

void destroy_context(Context context) {
  Driver& d = driver();
  std::erase_if(d.modules, [&](const auto& entry) { return entry.second->owner == context; });
  std::erase_if(d.streams, [&](const auto& entry) { return entry.second->owner == context; });
  std::erase_if(d.events, [&](const auto& entry) { return entry.second->owner == context; });
  std::erase_if(d.blocks, [&](const auto& entry) {
    if (entry.second.owner != context) return false;
    if (entry.second.kind != Block::registered) std::free(reinterpret_cast<void*>(entry.first));
    return true;
  });
  d.contexts.erase(context);
  delete context;
}

Result add_block(std::size_t bytes, Block::Kind kind, std::uintptr_t* address) {
  Driver& d = driver();
  if (bytes == 0) return result::invalid_value;
  if (kind == Block::device && d.used_bytes() + bytes > static_cast<std::size_t>(d.settings["memory"])) {
    return result::out_of_memory;
  }
  void* memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (memory == nullptr) return result::out_of_memory;
  std::memset(memory, 0xff, bytes);  // NaN: nobody may count on zeros
  *address = reinterpret_cast<std::uintptr_t>(memory);
  d.blocks[*address] = Block{current, bytes, kind, d.next_id++};
  return result::success;
}

// --- kernels: the contracts of core/kernel_descriptor.hpp as loops ---

// A plain product, of host memory: its operands were looked at by its caller.
void multiply_panels(const gemmhoist::GemmKernelParams& p) {
  std::vector<float> column(static_cast<std::size_t>(p.m));
  for (std::int64_t j = 0; j < p.n; ++j) {
    std::fill(column.begin(), column.end(), 0.0f);
    for (std::int64_t q = 0; q < p.k; ++q) {
      const float b = p.b[j + q * p.ldb];
      const float* a = p.a + q * p.lda;
      for (std::int64_t i = 0; i < p.m; ++i) column[static_cast<std::size_t>(i)] += a[i] * b;
    }
    for (std::int64_t i = 0; i < p.m; ++i) {
      float& c = p.c[i + j * p.ldc];
      c = p.alpha * (column[static_cast<std::size_t>(i)] + (p.accumulate != 0 ? c : 0.0f));
    }
  }
}

Result run_gemm(const gemmhoist::GemmKernelParams& p) {
  if (p.m <= 0 || p.n <= 0 || p.k < 0) return result::invalid_value;
  const auto bytes = [](std::int64_t ld, std::int64_t lines, std::int64_t width) {
    return static_cast<std::size_t>(lines == 0 ? 0 : (lines - 1) * ld + width) * sizeof(float);
  };
  if (!on_device(reinterpret_cast<DevicePtr>(p.a), bytes(p.lda, p.k, p.m)) ||
      !on_device(reinterpret_cast<DevicePtr>(p.b), bytes(p.ldb, p.k, p.n)) ||
      !on_device(reinterpret_cast<DevicePtr>(p.c), bytes(p.ldc, p.n, p.m))) {
    return result::illegal_address;
  }
  multiply_panels(p);
  return result::success;
}

template <typename T>
bool has_units(gemmhoist::Precision precision, const void* image, const T* ranges, std::int64_t pitch,
               std::int64_t rows, std::int64_t k) {
  const auto units = static_cast<std::size_t>(
      (gemmhoist::divide_up(rows, gemmhoist::kImageRows) - 1) * pitch + k / gemmhoist::kImageK);
  const auto unit = static_cast<std::size_t>(gemmhoist::image_facts(precision).unit_bytes());
  return on_device(reinterpret_cast<DevicePtr>(image), units * unit) &&
         (precision != gemmhoist::Precision::bf16x6 ||
          on_device(reinterpret_cast<DevicePtr>(ranges), units * sizeof(T)));
}

Result run_prepare(gemmhoist::Precision precision, const gemmhoist::PrepareKernelParams& p) {
  if (p.rows <= 0 || p.k <= 0 || p.padded_rows < p.rows || p.padded_k < p.k) return result::invalid_value;
  const std::int64_t floats = (p.rows - 1) * p.row_stride + (p.k - 1) * p.k_stride + 1;
  if (!on_device(reinterpret_cast<DevicePtr>(p.source), static_cast<std::size_t>(floats) * sizeof(float)) ||
      !has_units(precision, p.image, p.ranges, p.unit_pitch, p.padded_rows, p.padded_k)) {
    return result::illegal_address;
  }
  gemmhoist::test::reference_prepare(precision, p);
  return result::success;
}

Result run_images(gemmhoist::Precision precision, bool leftover,
                  const gemmhoist::PreparedGemmKernelParams& p) {
  const gemmhoist::GemmKernelParams& g = p.gemm;
  if (g.m <= 0 || g.n <= 0 || g.k <= 0 || g.k % gemmhoist::kImageK != 0) return result::invalid_value;
  const auto tiles = static_cast<std::size_t>(gemmhoist::divide_up(g.m, gemmhoist::kImageRows) *
                                              gemmhoist::divide_up(g.n, gemmhoist::kImageRows));
  if (!has_units(precision, p.a_image, p.a_ranges, p.a_unit_pitch, g.m, g.k) ||
      !has_units(precision, p.b_image, p.b_ranges, p.b_unit_pitch, g.n, g.k) ||
      !on_device(reinterpret_cast<DevicePtr>(g.c),
                 static_cast<std::size_t>((g.n - 1) * g.ldc + g.m) * sizeof(float)) ||
      (p.out_of_range != nullptr && !on_device(reinterpret_cast<DevicePtr>(p.out_of_range), tiles))) {
    return result::illegal_address;
  }
  if (leftover)
    gemmhoist::test::reference_leftover(p, multiply_panels);
  else
    gemmhoist::test::reference_image_product(precision, p, multiply_panels);
  return result::success;
}

Result run_transpose(const gemmhoist::TransposeKernelParams& p) {
  if (p.rows <= 0 || p.cols <= 0) return result::invalid_value;
  const auto bytes = [](std::int64_t ld, std::int64_t lines, std::int64_t width) {
    return static_cast<std::size_t>((lines - 1) * ld + width) * sizeof(float);
  };
  if (!on_device(reinterpret_cast<DevicePtr>(p.source), bytes(p.ld_source, p.rows, p.cols)) ||
      !on_device(reinterpret_cast<DevicePtr>(p.destination), bytes(p.ld_destination, p.cols, p.rows))) {
    return result::illegal_address;
  }
  for (std::int64_t row = 0; row < p.rows; ++row) {
    for (std::int64_t col = 0; col < p.cols; ++col) {
      p.destination[row + col * p.ld_destination] = p.source[col + row * p.ld_source];
    }
  }
  return result::success;
}

}  // namespace

// --- controls ---

FAKE_API void fake_cuda_reset() {
  Driver& d = driver();
  const std::lock_guard lock(d.mutex);
  while (!d.contexts.empty()) destroy_context(*d.contexts.begin());
  d.primary = nullptr;
  d.rules.clear();
  d.log.clear();
  d.functions.clear();
  d.global_captures = 0;
  d.capture_broken = false;
  d.initialised = false;
  d.read_environment();
}
FAKE_API void fake_cuda_set(const char* setting, long long value) {
  const std::lock_guard lock(driver().mutex);
  driver().settings[setting] = value;
}
FAKE_API void fake_cuda_fail(long k, int code, int sticky) {
  const std::lock_guard lock(driver().mutex);
  driver().rules.clear();
  if (k > 0) driver().rules.push_back({"", k, code, sticky != 0, false});
}
FAKE_API void fake_cuda_fail_function(const char* function, long k, int code, int sticky) {
  const std::lock_guard lock(driver().mutex);
  driver().rules.push_back({function, k, code, sticky != 0, false});
}
FAKE_API long fake_cuda_calls() {
  const std::lock_guard lock(driver().mutex);
  return static_cast<long>(driver().log.size());
}
FAKE_API std::size_t fake_cuda_log(char* text, std::size_t capacity) {
  const std::lock_guard lock(driver().mutex);
  std::string all;
  for (const std::string& name : driver().log) all += name + "\n";
  const std::size_t bytes = std::min(capacity - 1, all.size());
  std::memcpy(text, all.data(), bytes);
  text[bytes] = '\0';
  return bytes;
}
FAKE_API long fake_cuda_live(const char* what) {
  Driver& d = driver();
  const std::lock_guard lock(d.mutex);
  const std::string name = what;
  const auto blocks = [&](bool registered) {
    return std::count_if(d.blocks.begin(), d.blocks.end(), [&](const auto& entry) {
      return (entry.second.kind == Block::registered) == registered;
    });
  };
  if (name == "contexts") return static_cast<long>(d.contexts.size());
  if (name == "allocations") return blocks(false);
  if (name == "registrations") return blocks(true);
  if (name == "modules") return static_cast<long>(d.modules.size());
  if (name == "streams") return static_cast<long>(d.streams.size());
  if (name == "blocking streams") {
    return std::count_if(d.streams.begin(), d.streams.end(),
                         [](const auto& entry) { return entry.second->waits_for_default; });
  }
  if (name == "events") return static_cast<long>(d.events.size());
  return -1;
}
FAKE_API int fake_cuda_capture_broken() {
  const std::lock_guard lock(driver().mutex);
  return driver().capture_broken ? 1 : 0;
}

// --- the driver, as the library uses it ---

FAKE_API Result cuInit(unsigned) {
  ENTER("cuInit", Needs::nothing);
  const auto code = static_cast<Result>(driver().settings["init"]);
  if (code == 0 && driver().settings["devices"] == 0) return result::no_device;
  driver().initialised = code == 0;
  return code;
}
FAKE_API Result cuDriverGetVersion(int* version) {
  ENTER("cuDriverGetVersion", Needs::nothing);
  *version = static_cast<int>(driver().settings["version"]);
  return 0;
}
FAKE_API Result cuDeviceGetCount(int* count) {
  ENTER("cuDeviceGetCount", Needs::nothing);
  *count = static_cast<int>(driver().settings["devices"]);
  return driver().initialised ? 0 : result::not_initialized;
}
FAKE_API Result cuDeviceGet(int* device, int ordinal) {
  ENTER("cuDeviceGet", Needs::nothing);
  if (!driver().initialised) return result::not_initialized;
  if (ordinal < 0 || ordinal >= driver().settings["devices"]) return result::invalid_device;
  *device = ordinal;
  return 0;
}
FAKE_API Result cuDeviceGetName(char* name, int capacity, int) {
  ENTER("cuDeviceGetName", Needs::nothing);
  std::strncpy(name, "Fake GPU", static_cast<std::size_t>(capacity));
  return 0;
}
FAKE_API Result cuDeviceGetAttribute(int* value, int attribute, int) {
  ENTER("cuDeviceGetAttribute", Needs::nothing);
  const auto setting = [](const char* name) { return static_cast<int>(driver().settings[name]); };
  switch (attribute) {
    case cuda::device_attribute::compute_capability_major:
      *value = setting("arch") / 10;
      return 0;
    case cuda::device_attribute::compute_capability_minor:
      *value = setting("arch") % 10;
      return 0;
    case cuda::device_attribute::multiprocessor_count:
      *value = setting("count");
      return 0;
    case cuda::device_attribute::max_pitch:
      *value = setting("pitch");
      return 0;
    case cuda::device_attribute::max_shared_memory_per_block_optin:
      *value = setting("shared");
      return 0;
    case cuda::device_attribute::compute_mode:
      *value = setting("mode");
      return 0;
    case cuda::device_attribute::unified_addressing:
      *value = 1;
      return 0;
    default:
      return result::invalid_value;
  }
}
FAKE_API Result cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  ENTER("cuDeviceTotalMem_v2", Needs::nothing);
  *bytes = static_cast<std::size_t>(driver().settings["memory"]);
  return 0;
}
FAKE_API Result cuThreadExchangeStreamCaptureMode(int* mode) {
  ENTER("cuThreadExchangeStreamCaptureMode", Needs::nothing);
  std::swap(*mode, capture_mode);
  return 0;
}
FAKE_API Result cuCtxCreate_v2(Context* context, unsigned, int) {
  ENTER("cuCtxCreate_v2", Needs::nothing, UnderCapture::unsafe);
  if (!driver().initialised) return result::not_initialized;
  if (driver().settings["mode"] == cuda::kComputeModeProhibited) return result::device_unavailable;
  *context = new cuda::ContextHandle;
  driver().contexts.insert(*context);
  current = *context;
  return 0;
}
FAKE_API Result cuCtxDestroy_v2(Context context) {
  ENTER("cuCtxDestroy_v2", Needs::nothing);
  if (driver().contexts.count(context) == 0) return result::invalid_context;
  destroy_context(context);
  if (current == context) current = nullptr;
  return 0;
}
FAKE_API Result cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  ENTER("cuCtxGetStreamPriorityRange", Needs::context);
  *least = 0;
  *greatest = -5;
  return 0;
}

// An image that begins with "fake:" says what it is: "fake:error=209" or the names of its kernels, separated
// by spaces. Everything else, a real fatbin for one, holds every kernel.
FAKE_API Result cuModuleLoadData(Module* module, const void* image) {
  ENTER("cuModuleLoadData", Needs::context, UnderCapture::unsafe);
  const char* text = static_cast<const char*>(image);
  auto made = std::make_unique<cuda::ModuleHandle>();
  made->owner = current;
  if (std::strncmp(text, "fake:", 5) == 0) {
    made->text = std::string(" ") + (text + 5) + " ";
    if (std::strncmp(text + 5, "error=", 6) == 0) return std::atoi(text + 11);
  }
  *module = made.get();
  driver().modules[*module] = std::move(made);
  return 0;
}
FAKE_API Result cuModuleUnload(Module module) {
  ENTER("cuModuleUnload", Needs::context, UnderCapture::unsafe);
  return driver().modules.erase(module) == 1 ? 0 : result::invalid_handle;
}
FAKE_API Result cuModuleGetFunction(Function* function, Module module, const char* name) {
  ENTER("cuModuleGetFunction", Needs::context);
  if (driver().modules.count(module) == 0) return result::invalid_handle;
  if (!module->text.empty() && module->text.find(std::string(" ") + name + " ") == std::string::npos) {
    return result::not_found;
  }
  auto made = std::make_unique<cuda::FunctionHandle>();
  made->name = name;
  *function = made.get();
  driver().functions[*function] = std::move(made);
  return 0;
}
FAKE_API Result cuFuncLoad(Function function) {
  ENTER("cuFuncLoad", Needs::context, UnderCapture::unsafe);
  function->loaded = true;
  return 0;
}
FAKE_API Result cuFuncGetAttribute(int* value, int attribute, Function function) {
  ENTER("cuFuncGetAttribute", Needs::context);
  function->loaded = true;
  if (attribute != cuda::function_attribute::max_threads_per_block) return result::invalid_value;
  *value = 1024;
  return 0;
}
FAKE_API Result cuFuncSetAttribute(Function function, int attribute, int value) {
  ENTER("cuFuncSetAttribute", Needs::context);
  if (attribute != cuda::function_attribute::max_dynamic_shared_size_bytes) return result::invalid_value;
  if (value > driver().settings["shared"]) return result::invalid_value;
  function->dynamic_shared_bytes = value;
  return 0;
}
FAKE_API Result cuLaunchKernel(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                               unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                               StreamRef stream, void** parameters, void** extra) {
  ENTER("cuLaunchKernel", Needs::context);
  if (driver().functions.count(function) == 0 || !stream_ok(stream)) return result::invalid_handle;
  const bool shape =
      grid_x > 0 && grid_y > 0 && grid_z > 0 && block_x * block_y * block_z <= 1024 && block_x > 0;
  if (!shape || extra != nullptr || static_cast<int>(shared_bytes) > function->dynamic_shared_bytes) {
    return result::invalid_value;
  }
  const auto named = [&](const char* part) { return function->name.find(part) != std::string::npos; };
  const bool tf32 = named("tf32"), leftover = named("leftover");
  const gemmhoist::Precision precision = tf32 ? gemmhoist::Precision::tf32 : gemmhoist::Precision::bf16x6;
  if (named("transpose"))
    return run_transpose(*static_cast<gemmhoist::TransposeKernelParams*>(parameters[0]));
  if (named("prepare"))
    return run_prepare(precision, *static_cast<gemmhoist::PrepareKernelParams*>(parameters[0]));
  if (tf32 || leftover || named("bf16x6"))
    return run_images(precision, leftover, *static_cast<gemmhoist::PreparedGemmKernelParams*>(parameters[0]));
  return run_gemm(*static_cast<gemmhoist::GemmKernelParams*>(parameters[0]));
}

FAKE_API Result cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total) {
  ENTER("cuMemGetInfo_v2", Needs::context);
  *total = static_cast<std::size_t>(driver().settings["memory"]);
  *free_bytes = *total - driver().used_bytes();
  return 0;
}
FAKE_API Result cuMemAlloc_v2(DevicePtr* pointer, std::size_t bytes) {
  ENTER("cuMemAlloc_v2", Needs::context, UnderCapture::unsafe);
  std::uintptr_t address = 0;
  const Result answer = add_block(bytes, Block::device, &address);
  *pointer = address;
  return answer;
}
FAKE_API Result cuMemFree_v2(DevicePtr pointer) {
  ENTER("cuMemFree_v2", Needs::context, UnderCapture::unsafe);
  const auto it = driver().blocks.find(pointer);
  if (it == driver().blocks.end() || it->second.kind == Block::registered) return result::invalid_value;
  std::free(reinterpret_cast<void*>(it->first));
  driver().blocks.erase(it);
  return 0;
}
FAKE_API Result cuMemHostRegister_v2(void* memory, std::size_t bytes, unsigned) {
  ENTER("cuMemHostRegister_v2", Needs::context, UnderCapture::unsafe);
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  if (memory == nullptr || bytes == 0) return result::invalid_value;
  for (const auto& [address, block] : driver().blocks) {
    if (begin < address + block.bytes && address < begin + bytes) return 712;  // already registered
  }
  driver().blocks[begin] = Block{current, bytes, Block::registered, driver().next_id++};
  return 0;
}
FAKE_API Result cuMemHostUnregister(void* memory) {
  ENTER("cuMemHostUnregister", Needs::context, UnderCapture::unsafe);
  const auto it = driver().blocks.find(reinterpret_cast<std::uintptr_t>(memory));
  if (it == driver().blocks.end() || it->second.kind != Block::registered) return 713;  // not registered
  driver().blocks.erase(it);
  return 0;
}
FAKE_API Result cuPointerGetAttributes(unsigned count, int* attributes, void** values, DevicePtr pointer) {
  ENTER("cuPointerGetAttributes", Needs::context);
  std::uintptr_t start = 0;
  const Block* block = block_of(pointer, 1, &start);
  const bool ranges = driver().settings["ranges"] != 0;
  for (unsigned i = 0; i < count; ++i) {
    switch (attributes[i]) {
      case cuda::pointer_attribute::memory_type:
        *static_cast<unsigned*>(values[i]) = block == nullptr ? 0
                                             : block->kind == Block::device || block->kind == Block::managed
                                                 ? cuda::kMemoryTypeDevice
                                                 : cuda::kMemoryTypeHost;
        break;
      case cuda::pointer_attribute::is_managed:  // a boolean of one byte
        *static_cast<bool*>(values[i]) = block != nullptr && block->kind == Block::managed;
        break;
      case cuda::pointer_attribute::range_start_addr:
        *static_cast<DevicePtr*>(values[i]) = block == nullptr || !ranges ? 0 : start;
        break;
      case cuda::pointer_attribute::range_size:
        *static_cast<std::size_t*>(values[i]) = block == nullptr || !ranges ? 0 : block->bytes;
        break;
      case cuda::pointer_attribute::buffer_id:
        *static_cast<unsigned long long*>(values[i]) = block == nullptr ? 0 : block->id;
        break;
      default:
        return result::invalid_value;
    }
  }
  return 0;
}

FAKE_API Result cuMemcpyHtoDAsync_v2(DevicePtr device, const void* host, std::size_t bytes,
                                     StreamRef stream) {
  ENTER("cuMemcpyHtoDAsync_v2", Needs::context);
  if (!stream_ok(stream)) return result::invalid_handle;
  if (!on_device(device, bytes)) return result::invalid_value;
  std::memcpy(reinterpret_cast<void*>(device), host, bytes);
  return 0;
}
FAKE_API Result cuMemcpyDtoHAsync_v2(void* host, DevicePtr device, std::size_t bytes, StreamRef stream) {
  ENTER("cuMemcpyDtoHAsync_v2", Needs::context);
  if (!stream_ok(stream)) return result::invalid_handle;
  if (!on_device(device, bytes)) return result::invalid_value;
  std::memcpy(host, reinterpret_cast<const void*>(device), bytes);
  return 0;
}
FAKE_API Result cuMemcpy2DAsync_v2(const MemoryCopy2D* copy, StreamRef stream) {
  ENTER("cuMemcpy2DAsync_v2", Needs::context);
  if (!stream_ok(stream)) return result::invalid_handle;
  const auto limit = static_cast<std::size_t>(driver().settings["pitch"]);
  if (copy->width_bytes > copy->source_pitch || copy->width_bytes > copy->destination_pitch ||
      copy->source_pitch > limit || copy->destination_pitch > limit) {
    return result::invalid_value;
  }
  const bool to_device = copy->destination_type == cuda::kMemoryTypeDevice;
  const DevicePtr device = to_device ? copy->destination_device : copy->source_device;
  const std::size_t pitch = to_device ? copy->destination_pitch : copy->source_pitch;
  if (!on_device(device, (copy->height - 1) * pitch + copy->width_bytes)) return result::invalid_value;
  const char* from =
      to_device ? static_cast<const char*>(copy->source_host) : reinterpret_cast<const char*>(device);
  char* to = to_device ? reinterpret_cast<char*>(device) : static_cast<char*>(copy->destination_host);
  for (std::size_t row = 0; row < copy->height; ++row) {
    std::memcpy(to + row * copy->destination_pitch, from + row * copy->source_pitch, copy->width_bytes);
  }
  return 0;
}
FAKE_API Result cuMemsetD32Async(DevicePtr device, unsigned value, std::size_t words, StreamRef stream) {
  ENTER("cuMemsetD32Async", Needs::context);
  if (!stream_ok(stream)) return result::invalid_handle;
  if (!on_device(device, words * 4)) return result::invalid_value;
  std::fill_n(reinterpret_cast<unsigned*>(device), words, value);
  return 0;
}
FAKE_API Result cuMemsetD2D32Async(DevicePtr device, std::size_t pitch, unsigned value, std::size_t width,
                                   std::size_t height, StreamRef stream) {
  ENTER("cuMemsetD2D32Async", Needs::context);
  if (!stream_ok(stream)) return result::invalid_handle;
  if (!on_device(device, (height - 1) * pitch + width * 4)) return result::invalid_value;
  if (pitch > static_cast<std::size_t>(driver().settings["pitch"])) return result::invalid_value;
  for (std::size_t row = 0; row < height; ++row) {
    std::fill_n(reinterpret_cast<unsigned*>(device + row * pitch), width, value);
  }
  return 0;
}

FAKE_API Result cuStreamCreateWithPriority(StreamRef* stream, unsigned flags, int priority) {
  ENTER("cuStreamCreateWithPriority", Needs::context, UnderCapture::unsafe);
  if (flags > 1 || priority > 0 || priority < -5) return result::invalid_value;
  auto made = std::make_unique<cuda::StreamHandle>();
  made->owner = current;
  made->waits_for_default = (flags & cuda::kStreamNonBlocking) == 0;
  *stream = made.get();
  driver().streams[*stream] = std::move(made);
  return 0;
}
FAKE_API Result cuStreamQuery(StreamRef stream) {
  ENTER("cuStreamQuery", Needs::context, UnderCapture::unsafe);
  if (!stream_ok(stream)) return result::invalid_handle;
  return driver().settings["hang"] != 0 ? result::not_ready : 0;
}
FAKE_API Result cuStreamWaitEvent(StreamRef stream, EventRef event, unsigned) {
  ENTER("cuStreamWaitEvent", Needs::context);
  return stream_ok(stream) && driver().events.count(event) != 0 ? 0 : result::invalid_handle;
}
FAKE_API Result cuEventCreate(EventRef* event, unsigned) {
  ENTER("cuEventCreate", Needs::context);
  auto made = std::make_unique<cuda::EventHandle>();
  made->owner = current;
  *event = made.get();
  driver().events[*event] = std::move(made);
  return 0;
}
FAKE_API Result cuEventRecord(EventRef event, StreamRef stream) {
  ENTER("cuEventRecord", Needs::context);
  if (!stream_ok(stream) || driver().events.count(event) == 0) return result::invalid_handle;
  event->time = std::chrono::steady_clock::now();
  event->recorded = true;
  return 0;
}
FAKE_API Result cuEventQuery(EventRef event) {
  ENTER("cuEventQuery", Needs::context, UnderCapture::unsafe);
  if (driver().events.count(event) == 0) return result::invalid_handle;
  return driver().settings["hang"] != 0 ? result::not_ready : 0;
}
FAKE_API Result cuEventElapsedTime(float* milliseconds, EventRef begin, EventRef end) {
  ENTER("cuEventElapsedTime", Needs::context);
  if (!begin->recorded || !end->recorded) return result::invalid_handle;
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - begin->time).count();
  return 0;
}

// --- the driver, as a program that hosts the library uses it ---

FAKE_API Result cuDevicePrimaryCtxRetain(Context* context, int) {
  ENTER("cuDevicePrimaryCtxRetain", Needs::nothing);
  if (!driver().initialised) return result::not_initialized;
  if (driver().primary == nullptr) {
    driver().primary = new cuda::ContextHandle{true};
    driver().contexts.insert(driver().primary);
  }
  *context = driver().primary;
  return 0;
}
FAKE_API Result cuDevicePrimaryCtxReset_v2(int) {
  ENTER("cuDevicePrimaryCtxReset_v2", Needs::nothing);
  if (driver().primary != nullptr) destroy_context(driver().primary);
  driver().primary = nullptr;
  return 0;
}
FAKE_API Result cuDevicePrimaryCtxRelease_v2(int) {
  ENTER("cuDevicePrimaryCtxRelease_v2", Needs::nothing);
  return 0;
}
FAKE_API Result cuCtxSetCurrent(Context context) {
  ENTER("cuCtxSetCurrent", Needs::nothing);
  current = context;
  return 0;
}
FAKE_API Result cuCtxGetCurrent(Context* context) {
  ENTER("cuCtxGetCurrent", Needs::nothing);
  *context = current;
  return 0;
}
FAKE_API Result cuStreamCreate(StreamRef* stream, unsigned) {
  ENTER("cuStreamCreate", Needs::context);
  auto made = std::make_unique<cuda::StreamHandle>();
  made->owner = current;
  *stream = made.get();
  driver().streams[*stream] = std::move(made);
  return 0;
}
FAKE_API Result cuStreamBeginCapture_v2(StreamRef stream, int mode) {
  ENTER("cuStreamBeginCapture_v2", Needs::context);
  if (stream == nullptr || stream->capturing) return result::invalid_value;
  stream->capturing = true;
  if (mode == 0) ++driver().global_captures;
  return 0;
}
FAKE_API Result cuStreamEndCapture(StreamRef stream, void** graph) {
  ENTER("cuStreamEndCapture", Needs::context);
  if (stream == nullptr || !stream->capturing) return result::invalid_value;
  stream->capturing = false;
  if (driver().global_captures > 0) --driver().global_captures;
  *graph = stream;
  return driver().capture_broken ? 901 : 0;  // CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
}
FAKE_API Result cuGraphDestroy(void*) {
  ENTER("cuGraphDestroy", Needs::nothing);
  return 0;
}
FAKE_API Result cuMemHostAlloc(void** memory, std::size_t bytes, unsigned) {
  ENTER("cuMemHostAlloc", Needs::context, UnderCapture::unsafe);
  std::uintptr_t address = 0;
  const Result answer = add_block(bytes, Block::pinned_allocation, &address);
  *memory = reinterpret_cast<void*>(address);
  return answer;
}
FAKE_API Result cuMemFreeHost(void* memory) {
  return cuMemFree_v2(reinterpret_cast<DevicePtr>(memory));
}
FAKE_API Result cuMemAllocManaged(DevicePtr* pointer, std::size_t bytes, unsigned) {
  ENTER("cuMemAllocManaged", Needs::context, UnderCapture::unsafe);
  std::uintptr_t address = 0;
  const Result answer = add_block(bytes, Block::managed, &address);
  *pointer = address;
  return answer;
}
