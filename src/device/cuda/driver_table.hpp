// Driver table: every driver function that the library calls, as pointers filled from libcuda.so.1.
//
// It is also the seam for fault injection: a Device works on whatever table it is given, so tests hand it one
// whose entries count the calls and fail the k-th (tests/device_cuda/fault_table.hpp). The shipped library
// only ever makes the real one.
#pragma once

#include "core/status.hpp"
#include "device/cuda/driver_types.hpp"

namespace gemmhoist::device::cuda {

struct DriverTable {
  Result (*init)(unsigned flags) = nullptr;
  Result (*driver_get_version)(int* version) = nullptr;

  Result (*device_get)(DeviceId* device, int ordinal) = nullptr;
  Result (*device_get_count)(int* count) = nullptr;
  Result (*device_get_name)(char* name, int capacity, DeviceId device) = nullptr;
  Result (*device_get_attribute)(int* value, int attribute, DeviceId device) = nullptr;
  Result (*device_total_mem)(std::size_t* bytes, DeviceId device) = nullptr;

  Result (*thread_exchange_capture_mode)(int* mode) = nullptr;
  Result (*ctx_create)(Context* context, unsigned flags, DeviceId device) = nullptr;
  Result (*ctx_destroy)(Context context) = nullptr;
  Result (*ctx_get_stream_priority_range)(int* least, int* greatest) = nullptr;

  Result (*module_load_data)(Module* module, const void* image) = nullptr;
  Result (*module_unload)(Module module) = nullptr;
  Result (*module_get_function)(Function* function, Module module, const char* name) = nullptr;
  Result (*func_get_attribute)(int* value, int attribute, Function function) = nullptr;
  Result (*func_set_attribute)(Function function, int attribute, int value) = nullptr;
  Result (*func_load)(Function function) = nullptr;  // may stay null: drivers before 12.4 lack it
  Result (*launch_kernel)(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                          unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                          StreamRef stream, void** parameters, void** extra) = nullptr;

  Result (*mem_get_info)(std::size_t* free, std::size_t* total) = nullptr;
  Result (*mem_alloc)(DevicePtr* pointer, std::size_t bytes) = nullptr;
  Result (*mem_free)(DevicePtr pointer) = nullptr;
  Result (*mem_host_register)(void* memory, std::size_t bytes, unsigned flags) = nullptr;
  Result (*mem_host_unregister)(void* memory) = nullptr;
  Result (*pointer_get_attributes)(unsigned count, int* attributes, void** values,
                                   DevicePtr pointer) = nullptr;

  Result (*memcpy_h2d_async)(DevicePtr device, const void* host, std::size_t bytes,
                             StreamRef stream) = nullptr;
  Result (*memcpy_d2h_async)(void* host, DevicePtr device, std::size_t bytes, StreamRef stream) = nullptr;
  Result (*memcpy_2d_async)(const MemoryCopy2D* copy, StreamRef stream) = nullptr;
  Result (*memset_d32_async)(DevicePtr device, unsigned value, std::size_t words, StreamRef stream) = nullptr;
  Result (*memset_d2d32_async)(DevicePtr device, std::size_t pitch, unsigned value, std::size_t width_words,
                               std::size_t height, StreamRef stream) = nullptr;

  Result (*stream_create_with_priority)(StreamRef* stream, unsigned flags, int priority) = nullptr;
  Result (*stream_query)(StreamRef stream) = nullptr;
  Result (*stream_wait_event)(StreamRef stream, EventRef event, unsigned flags) = nullptr;

  Result (*event_create)(EventRef* event, unsigned flags) = nullptr;
  Result (*event_record)(EventRef event, StreamRef stream) = nullptr;
  Result (*event_query)(EventRef event) = nullptr;
  Result (*event_elapsed_time)(float* milliseconds, EventRef begin, EventRef end) = nullptr;
};

// Calls visit(member, symbol, required) for every entry, in the order of the struct: the one list of names
// that filling, wrapping and checking share. `member` is a pointer to a data member.
template <typename Visitor>
constexpr void for_each_entry(Visitor&& visit) {
  using T = DriverTable;
  visit(&T::init, "cuInit", true);
  visit(&T::driver_get_version, "cuDriverGetVersion", true);
  visit(&T::device_get, "cuDeviceGet", true);
  visit(&T::device_get_count, "cuDeviceGetCount", true);
  visit(&T::device_get_name, "cuDeviceGetName", true);
  visit(&T::device_get_attribute, "cuDeviceGetAttribute", true);
  visit(&T::device_total_mem, "cuDeviceTotalMem_v2", true);
  visit(&T::thread_exchange_capture_mode, "cuThreadExchangeStreamCaptureMode", true);
  visit(&T::ctx_create, "cuCtxCreate_v2", true);
  visit(&T::ctx_destroy, "cuCtxDestroy_v2", true);
  visit(&T::ctx_get_stream_priority_range, "cuCtxGetStreamPriorityRange", true);
  visit(&T::module_load_data, "cuModuleLoadData", true);
  visit(&T::module_unload, "cuModuleUnload", true);
  visit(&T::module_get_function, "cuModuleGetFunction", true);
  visit(&T::func_get_attribute, "cuFuncGetAttribute", true);
  visit(&T::func_set_attribute, "cuFuncSetAttribute", true);
  visit(&T::func_load, "cuFuncLoad", false);
  visit(&T::launch_kernel, "cuLaunchKernel", true);
  visit(&T::mem_get_info, "cuMemGetInfo_v2", true);
  visit(&T::mem_alloc, "cuMemAlloc_v2", true);
  visit(&T::mem_free, "cuMemFree_v2", true);
  visit(&T::mem_host_register, "cuMemHostRegister_v2", true);
  visit(&T::mem_host_unregister, "cuMemHostUnregister", true);
  visit(&T::pointer_get_attributes, "cuPointerGetAttributes", true);
  visit(&T::memcpy_h2d_async, "cuMemcpyHtoDAsync_v2", true);
  visit(&T::memcpy_d2h_async, "cuMemcpyDtoHAsync_v2", true);
  visit(&T::memcpy_2d_async, "cuMemcpy2DAsync_v2", true);
  visit(&T::memset_d32_async, "cuMemsetD32Async", true);
  visit(&T::memset_d2d32_async, "cuMemsetD2D32Async", true);
  visit(&T::stream_create_with_priority, "cuStreamCreateWithPriority", true);
  visit(&T::stream_query, "cuStreamQuery", true);
  visit(&T::stream_wait_event, "cuStreamWaitEvent", true);
  visit(&T::event_create, "cuEventCreate", true);
  visit(&T::event_record, "cuEventRecord", true);
  visit(&T::event_query, "cuEventQuery", true);
  visit(&T::event_elapsed_time, "cuEventElapsedTime", true);
}

// Fills `table` by asking `resolve` for each symbol; unavailable, naming the first that is missing.
Status fill_table(DriverTable& table, void* library,
                  void* (*resolve)(void* library, const char* symbol)) noexcept;

// The process' table: loads libcuda.so.1 at the first call and keeps the answer, good or bad. May block on
// the loader's lock, so never on a caller's thread. Does not initialise the driver.
const DriverTable* driver(Status& status) noexcept;

// The table if driver() has made it already, else null; never blocks.
const DriverTable* driver_if_loaded() noexcept;

}  // namespace gemmhoist::device::cuda
