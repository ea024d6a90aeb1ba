#include "device/cuda/result_status.hpp"

namespace gemmhoist::device::cuda {
namespace {

// Errors after which the driver documents the context, or the process' use of the device, as inconsistent:
// every later call answers the same. The context has to go.
bool is_sticky(Result code) noexcept {
  switch (code) {
    case result::deinitialized:  // the process is past the driver's exit handler
    case result::not_initialized:
    case result::device_unavailable:
    case result::invalid_context:  // our context is not current any more: somebody destroyed it
    case result::ecc_uncorrectable:
    case result::nvlink_uncorrectable:
    case result::unsupported_devside_sync:
    case result::contained:
    case result::illegal_address:
    case result::launch_timeout:
    case result::context_is_destroyed:
    case result::device_assert:
    case result::hardware_stack_error:
    case result::illegal_instruction:
    case result::misaligned_address:
    case result::invalid_address_space:
    case result::invalid_pc:
    case result::launch_failed:
    case result::tensor_memory_leak:
    case result::mps_rpc_failure:
    case result::mps_client_terminated:
    case result::external_device:
    case result::unknown:
      return true;
    default:
      return false;
  }
}

// No device for us here: no such device, no licence, no right, a driver that is a stub, of another version
// than its kernel module, or too old for our code.
bool is_absent(Result code) noexcept {
  switch (code) {
    case result::not_initialized:
    case result::deinitialized:
    case result::stub_library:
    case result::call_requires_newer_driver:
    case result::device_unavailable:
    case result::no_device:
    case result::invalid_device:
    case result::device_not_licensed:
    case result::shared_object_init_failed:
    case result::operating_system:  // the device nodes cannot be opened
    case result::not_found:         // the image lacks the function
    case result::not_permitted:
    case result::not_supported:
    case result::system_not_ready:
    case result::system_driver_mismatch:
    case result::compat_not_supported:
    case result::mps_connection_failed:
    case result::mps_rpc_failure:
    case result::mps_server_not_ready:
    case result::mps_max_clients_reached:
    case result::mps_max_connections_reached:
    case result::mps_client_terminated:
    case result::unknown:  // what cuInit answers where the unified-memory module is missing
      return true;
    default:
      return image_unsuitable(code);
  }
}

}  // namespace

bool image_unsuitable(Result code) noexcept {
  switch (code) {
    case result::invalid_image:  // a fatbin format newer than the driver
    case result::no_binary_for_gpu:
    case result::invalid_ptx:
    case result::unsupported_ptx_version:
    case result::jit_compiler_not_found:
    case result::jit_compilation_disabled:
    case result::invalid_source:
      return true;
    default:
      return false;
  }
}

Status to_status(Result code, const char* what, Phase phase) noexcept {
  if (code == result::success) return {};
  if (code == result::out_of_memory) return {StatusCode::out_of_memory, what, code};
  if (phase == Phase::opening && is_absent(code)) return {StatusCode::unavailable, what, code};
  if (is_sticky(code)) return {StatusCode::device_lost, what, code};
  return {StatusCode::device_error, what, code};
}

}  // namespace gemmhoist::device::cuda
