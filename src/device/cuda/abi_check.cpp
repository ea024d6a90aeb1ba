// Compares driver_types.hpp and driver_table.hpp with the toolkit's cuda.h, at compile time. Built where
// there is a toolkit, never linked into anything that runs.
#define __CUDA_API_VERSION_INTERNAL  // declares the versioned names instead of mapping plain ones to them
#include <cuda.h>

#include <cstddef>
#include <type_traits>

#include "device/cuda/driver_table.hpp"

namespace gemmhoist::device::cuda {
namespace {

static_assert(result::success == CUDA_SUCCESS);
static_assert(result::invalid_value == CUDA_ERROR_INVALID_VALUE);
static_assert(result::out_of_memory == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(result::not_initialized == CUDA_ERROR_NOT_INITIALIZED);
static_assert(result::deinitialized == CUDA_ERROR_DEINITIALIZED);
static_assert(result::stub_library == CUDA_ERROR_STUB_LIBRARY);
static_assert(result::device_unavailable == CUDA_ERROR_DEVICE_UNAVAILABLE);
static_assert(result::no_device == CUDA_ERROR_NO_DEVICE);
static_assert(result::invalid_device == CUDA_ERROR_INVALID_DEVICE);
static_assert(result::device_not_licensed == CUDA_ERROR_DEVICE_NOT_LICENSED);
static_assert(result::invalid_image == CUDA_ERROR_INVALID_IMAGE);
static_assert(result::invalid_context == CUDA_ERROR_INVALID_CONTEXT);
static_assert(result::no_binary_for_gpu == CUDA_ERROR_NO_BINARY_FOR_GPU);
static_assert(result::ecc_uncorrectable == CUDA_ERROR_ECC_UNCORRECTABLE);
static_assert(result::invalid_ptx == CUDA_ERROR_INVALID_PTX);
static_assert(result::nvlink_uncorrectable == CUDA_ERROR_NVLINK_UNCORRECTABLE);
static_assert(result::jit_compiler_not_found == CUDA_ERROR_JIT_COMPILER_NOT_FOUND);
static_assert(result::unsupported_ptx_version == CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
static_assert(result::jit_compilation_disabled == CUDA_ERROR_JIT_COMPILATION_DISABLED);
static_assert(result::invalid_source == CUDA_ERROR_INVALID_SOURCE);
static_assert(result::shared_object_init_failed == CUDA_ERROR_SHARED_OBJECT_INIT_FAILED);
static_assert(result::operating_system == CUDA_ERROR_OPERATING_SYSTEM);
static_assert(result::invalid_handle == CUDA_ERROR_INVALID_HANDLE);
static_assert(result::not_found == CUDA_ERROR_NOT_FOUND);
static_assert(result::not_ready == CUDA_ERROR_NOT_READY);
static_assert(result::illegal_address == CUDA_ERROR_ILLEGAL_ADDRESS);
static_assert(result::launch_out_of_resources == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
static_assert(result::launch_timeout == CUDA_ERROR_LAUNCH_TIMEOUT);
static_assert(result::context_is_destroyed == CUDA_ERROR_CONTEXT_IS_DESTROYED);
static_assert(result::device_assert == CUDA_ERROR_ASSERT);
static_assert(result::hardware_stack_error == CUDA_ERROR_HARDWARE_STACK_ERROR);
static_assert(result::illegal_instruction == CUDA_ERROR_ILLEGAL_INSTRUCTION);
static_assert(result::misaligned_address == CUDA_ERROR_MISALIGNED_ADDRESS);
static_assert(result::invalid_address_space == CUDA_ERROR_INVALID_ADDRESS_SPACE);
static_assert(result::invalid_pc == CUDA_ERROR_INVALID_PC);
static_assert(result::launch_failed == CUDA_ERROR_LAUNCH_FAILED);
static_assert(result::not_permitted == CUDA_ERROR_NOT_PERMITTED);
static_assert(result::not_supported == CUDA_ERROR_NOT_SUPPORTED);
static_assert(result::system_not_ready == CUDA_ERROR_SYSTEM_NOT_READY);
static_assert(result::system_driver_mismatch == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
static_assert(result::compat_not_supported == CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE);
static_assert(result::mps_connection_failed == CUDA_ERROR_MPS_CONNECTION_FAILED);
static_assert(result::mps_rpc_failure == CUDA_ERROR_MPS_RPC_FAILURE);
static_assert(result::mps_server_not_ready == CUDA_ERROR_MPS_SERVER_NOT_READY);
static_assert(result::mps_max_clients_reached == CUDA_ERROR_MPS_MAX_CLIENTS_REACHED);
static_assert(result::mps_max_connections_reached == CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED);
static_assert(result::mps_client_terminated == CUDA_ERROR_MPS_CLIENT_TERMINATED);
static_assert(result::external_device == CUDA_ERROR_EXTERNAL_DEVICE);
static_assert(result::unknown == CUDA_ERROR_UNKNOWN);
#if CUDA_VERSION >= 13000  // numbers that the oldest supported headers lack
static_assert(result::call_requires_newer_driver == CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER);
static_assert(result::unsupported_devside_sync == CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC);
static_assert(result::contained == CUDA_ERROR_CONTAINED);
static_assert(result::tensor_memory_leak == CUDA_ERROR_TENSOR_MEMORY_LEAK);
#endif

static_assert(device_attribute::max_pitch == CU_DEVICE_ATTRIBUTE_MAX_PITCH);
static_assert(device_attribute::multiprocessor_count == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
static_assert(device_attribute::compute_mode == CU_DEVICE_ATTRIBUTE_COMPUTE_MODE);
static_assert(device_attribute::unified_addressing == CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING);
static_assert(device_attribute::compute_capability_major == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(device_attribute::compute_capability_minor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(device_attribute::max_shared_memory_per_block_optin ==
              CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
static_assert(kComputeModeProhibited == CU_COMPUTEMODE_PROHIBITED);
static_assert(function_attribute::max_threads_per_block == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
static_assert(function_attribute::max_dynamic_shared_size_bytes ==
              CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
static_assert(pointer_attribute::memory_type == CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
static_assert(pointer_attribute::buffer_id == CU_POINTER_ATTRIBUTE_BUFFER_ID);
static_assert(pointer_attribute::is_managed == CU_POINTER_ATTRIBUTE_IS_MANAGED);
static_assert(pointer_attribute::range_start_addr == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR);
static_assert(pointer_attribute::range_size == CU_POINTER_ATTRIBUTE_RANGE_SIZE);
static_assert(kMemoryTypeHost == CU_MEMORYTYPE_HOST);
static_assert(kMemoryTypeDevice == CU_MEMORYTYPE_DEVICE);
static_assert(kCaptureModeRelaxed == CU_STREAM_CAPTURE_MODE_RELAXED);
static_assert(kContextBlockingSync == CU_CTX_SCHED_BLOCKING_SYNC);
static_assert(kStreamNonBlocking == CU_STREAM_NON_BLOCKING);
static_assert(kEventDefault == CU_EVENT_DEFAULT);
static_assert(kEventDisableTiming == CU_EVENT_DISABLE_TIMING);
static_assert(kRegisterPortable == CU_MEMHOSTREGISTER_PORTABLE);

// The copy's fields lie where the header has them.
static_assert(sizeof(MemoryCopy2D) == sizeof(CUDA_MEMCPY2D));
static_assert(offsetof(MemoryCopy2D, source_type) == offsetof(CUDA_MEMCPY2D, srcMemoryType));
static_assert(offsetof(MemoryCopy2D, source_host) == offsetof(CUDA_MEMCPY2D, srcHost));
static_assert(offsetof(MemoryCopy2D, source_device) == offsetof(CUDA_MEMCPY2D, srcDevice));
static_assert(offsetof(MemoryCopy2D, source_pitch) == offsetof(CUDA_MEMCPY2D, srcPitch));
static_assert(offsetof(MemoryCopy2D, destination_type) == offsetof(CUDA_MEMCPY2D, dstMemoryType));
static_assert(offsetof(MemoryCopy2D, destination_host) == offsetof(CUDA_MEMCPY2D, dstHost));
static_assert(offsetof(MemoryCopy2D, destination_device) == offsetof(CUDA_MEMCPY2D, dstDevice));
static_assert(offsetof(MemoryCopy2D, destination_pitch) == offsetof(CUDA_MEMCPY2D, dstPitch));
static_assert(offsetof(MemoryCopy2D, width_bytes) == offsetof(CUDA_MEMCPY2D, WidthInBytes));
static_assert(offsetof(MemoryCopy2D, height) == offsetof(CUDA_MEMCPY2D, Height));

// Signatures: as many arguments, each of the same size and passed the same way.
template <typename Ours, typename Theirs>
inline constexpr bool kPassedAlike =
    sizeof(Ours) == sizeof(Theirs) && std::is_pointer_v<Ours> == std::is_pointer_v<Theirs>;

template <typename... Ours, typename... Theirs>
constexpr bool same_shape(Result (*)(Ours...), CUresult (*)(Theirs...)) {
  if constexpr (sizeof...(Ours) != sizeof...(Theirs)) {
    return false;
  } else {
    return (kPassedAlike<Ours, Theirs> && ...);
  }
}

constexpr DriverTable kTable;
static_assert(sizeof(CUresult) == sizeof(Result));
static_assert(sizeof(CUdeviceptr) == sizeof(DevicePtr));
static_assert(sizeof(CUdevice) == sizeof(DeviceId));
static_assert(same_shape(kTable.init, cuInit));
static_assert(same_shape(kTable.driver_get_version, cuDriverGetVersion));
static_assert(same_shape(kTable.device_get, cuDeviceGet));
static_assert(same_shape(kTable.device_get_count, cuDeviceGetCount));
static_assert(same_shape(kTable.device_get_name, cuDeviceGetName));
static_assert(same_shape(kTable.device_get_attribute, cuDeviceGetAttribute));
static_assert(same_shape(kTable.device_total_mem, cuDeviceTotalMem_v2));
static_assert(same_shape(kTable.thread_exchange_capture_mode, cuThreadExchangeStreamCaptureMode));
static_assert(same_shape(kTable.ctx_create, cuCtxCreate_v2));
static_assert(same_shape(kTable.ctx_destroy, cuCtxDestroy_v2));
static_assert(same_shape(kTable.ctx_get_stream_priority_range, cuCtxGetStreamPriorityRange));
static_assert(same_shape(kTable.module_load_data, cuModuleLoadData));
static_assert(same_shape(kTable.module_unload, cuModuleUnload));
static_assert(same_shape(kTable.module_get_function, cuModuleGetFunction));
static_assert(same_shape(kTable.func_get_attribute, cuFuncGetAttribute));
static_assert(same_shape(kTable.func_set_attribute, cuFuncSetAttribute));
#if CUDA_VERSION >= 12040
static_assert(same_shape(kTable.func_load, cuFuncLoad));
#endif
static_assert(same_shape(kTable.launch_kernel, cuLaunchKernel));
static_assert(same_shape(kTable.mem_get_info, cuMemGetInfo_v2));
static_assert(same_shape(kTable.mem_alloc, cuMemAlloc_v2));
static_assert(same_shape(kTable.mem_free, cuMemFree_v2));
static_assert(same_shape(kTable.mem_host_register, cuMemHostRegister_v2));
static_assert(same_shape(kTable.mem_host_unregister, cuMemHostUnregister));
static_assert(same_shape(kTable.pointer_get_attributes, cuPointerGetAttributes));
static_assert(same_shape(kTable.memcpy_h2d_async, cuMemcpyHtoDAsync_v2));
static_assert(same_shape(kTable.memcpy_d2h_async, cuMemcpyDtoHAsync_v2));
static_assert(same_shape(kTable.memcpy_2d_async, cuMemcpy2DAsync_v2));
static_assert(same_shape(kTable.memset_d32_async, cuMemsetD32Async));
static_assert(same_shape(kTable.memset_d2d32_async, cuMemsetD2D32Async));
static_assert(same_shape(kTable.stream_create_with_priority, cuStreamCreateWithPriority));
static_assert(same_shape(kTable.stream_query, cuStreamQuery));
static_assert(same_shape(kTable.stream_wait_event, cuStreamWaitEvent));
static_assert(same_shape(kTable.event_create, cuEventCreate));
static_assert(same_shape(kTable.event_record, cuEventRecord));
static_assert(same_shape(kTable.event_query, cuEventQuery));
static_assert(same_shape(kTable.event_elapsed_time, cuEventElapsedTime));

}  // namespace
}  // namespace gemmhoist::device::cuda
