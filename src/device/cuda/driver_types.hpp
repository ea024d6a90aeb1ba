// Driver types: the part of the CUDA driver's ABI that we use, in our own words.
//
// cuda.h maps each name to the newest version of its function (cuCtxCreate is _v2 in toolkit 12 and _v4, with
// another signature, in 13), so code written against the header is tied to a toolkit. The ABI behind it is
// not: a versioned symbol such as cuCtxCreate_v2 keeps its signature for good. We name those versions and
// need no toolkit to compile. Where one is present, abi_check.cpp compares every line below with its header.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gemmhoist::device::cuda {

using DeviceId = int;
using DevicePtr = unsigned long long;  // CUdeviceptr on 64-bit systems
using Context = struct ContextHandle*;
using Module = struct ModuleHandle*;
using Function = struct FunctionHandle*;
using StreamRef = struct StreamHandle*;
using EventRef = struct EventHandle*;

// CUresult, the values that we tell apart. An int, not an enum: a newer driver answers numbers unknown to us.
using Result = int;
namespace result {
inline constexpr Result success = 0;
inline constexpr Result invalid_value = 1;
inline constexpr Result out_of_memory = 2;
inline constexpr Result not_initialized = 3;
inline constexpr Result deinitialized = 4;  // the driver's own exit handler has run
inline constexpr Result stub_library = 34;
inline constexpr Result call_requires_newer_driver = 36;
inline constexpr Result device_unavailable =
    46;  // exclusive mode taken, prohibited mode, or fallen off the bus
inline constexpr Result no_device = 100;
inline constexpr Result invalid_device = 101;
inline constexpr Result device_not_licensed = 102;
inline constexpr Result invalid_image = 200;
inline constexpr Result invalid_context = 201;
inline constexpr Result no_binary_for_gpu = 209;
inline constexpr Result ecc_uncorrectable = 214;
inline constexpr Result invalid_ptx = 218;
inline constexpr Result nvlink_uncorrectable = 220;
inline constexpr Result jit_compiler_not_found = 221;
inline constexpr Result unsupported_ptx_version = 222;
inline constexpr Result jit_compilation_disabled = 223;
inline constexpr Result unsupported_devside_sync = 225;
inline constexpr Result contained = 226;
inline constexpr Result invalid_source = 300;
inline constexpr Result shared_object_init_failed = 303;
inline constexpr Result operating_system = 304;
inline constexpr Result invalid_handle = 400;
inline constexpr Result not_found = 500;
inline constexpr Result not_ready = 600;
inline constexpr Result illegal_address = 700;
inline constexpr Result launch_out_of_resources = 701;
inline constexpr Result launch_timeout = 702;
inline constexpr Result context_is_destroyed = 709;
inline constexpr Result device_assert = 710;
inline constexpr Result hardware_stack_error = 714;
inline constexpr Result illegal_instruction = 715;
inline constexpr Result misaligned_address = 716;
inline constexpr Result invalid_address_space = 717;
inline constexpr Result invalid_pc = 718;
inline constexpr Result launch_failed = 719;
inline constexpr Result tensor_memory_leak = 721;
inline constexpr Result not_permitted = 800;
inline constexpr Result not_supported = 801;
inline constexpr Result system_not_ready = 802;
inline constexpr Result system_driver_mismatch = 803;
inline constexpr Result compat_not_supported = 804;
inline constexpr Result mps_connection_failed = 805;
inline constexpr Result mps_rpc_failure = 806;
inline constexpr Result mps_server_not_ready = 807;
inline constexpr Result mps_max_clients_reached = 808;
inline constexpr Result mps_max_connections_reached = 809;
inline constexpr Result mps_client_terminated = 810;
inline constexpr Result external_device = 911;
inline constexpr Result unknown = 999;
}  // namespace result

namespace device_attribute {
inline constexpr int max_pitch = 11;
inline constexpr int multiprocessor_count = 16;
inline constexpr int compute_mode = 20;
inline constexpr int unified_addressing = 41;
inline constexpr int compute_capability_major = 75;
inline constexpr int compute_capability_minor = 76;
inline constexpr int max_shared_memory_per_block_optin = 97;
}  // namespace device_attribute

inline constexpr int kComputeModeProhibited = 2;

namespace function_attribute {
inline constexpr int max_threads_per_block = 0;
inline constexpr int max_dynamic_shared_size_bytes = 8;
}  // namespace function_attribute

namespace pointer_attribute {
inline constexpr int memory_type = 2;
inline constexpr int buffer_id = 7;  // one number an allocation or registration, unique in the process
inline constexpr int is_managed = 8;
inline constexpr int range_start_addr = 11;
inline constexpr int range_size = 12;
}  // namespace pointer_attribute

inline constexpr unsigned kMemoryTypeHost = 1;
inline constexpr unsigned kMemoryTypeDevice = 2;

inline constexpr int kCaptureModeRelaxed = 2;
inline constexpr unsigned kContextBlockingSync = 4;
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDefault = 0;
inline constexpr unsigned kEventDisableTiming = 2;
inline constexpr unsigned kRegisterPortable = 1;

// CUDA_MEMCPY2D of the _v2 copy functions.
struct MemoryCopy2D {
  std::size_t source_x_bytes, source_y;
  unsigned source_type;
  const void* source_host;
  DevicePtr source_device;
  void* source_array;
  std::size_t source_pitch;
  std::size_t destination_x_bytes, destination_y;
  unsigned destination_type;
  void* destination_host;
  DevicePtr destination_device;
  void* destination_array;
  std::size_t destination_pitch;
  std::size_t width_bytes, height;
};
static_assert(sizeof(MemoryCopy2D) == 128);

}  // namespace gemmhoist::device::cuda
