// Status: what an internal function answers. Nothing of it crosses the exported BLAS interface.
#pragma once

#include <cstdint>

namespace gemmhoist {

enum class StatusCode : std::uint8_t {
  ok,
  unavailable,    // no device, no driver, or a driver too old for our code
  out_of_memory,  // device or pinned memory; may succeed later, when somebody else lets go of it
  device_error,   // one call to the device failed; the device itself may be fine
  device_lost,    // the device or its context is beyond use; nothing more may be asked of it
  timed_out,      // a wait reached its deadline
  cancelled,      // the caller took its call back
  unsupported,    // this request has no implementation here
};

// A code, the driver's own error number (0 where there is none) and the name of what failed: a string
// literal, never owned.
class [[nodiscard]] Status {
 public:
  constexpr Status() noexcept = default;
  constexpr Status(StatusCode code, const char* what, int native = 0) noexcept
      : code_(code), native_(native), what_(what) {}

  constexpr bool ok() const noexcept { return code_ == StatusCode::ok; }
  constexpr StatusCode code() const noexcept { return code_; }
  constexpr int native() const noexcept { return native_; }
  constexpr const char* what() const noexcept { return what_; }

 private:
  StatusCode code_ = StatusCode::ok;
  int native_ = 0;
  const char* what_ = "";
};

// Returns the first failure to the caller of the enclosing function.
// (The one macro of this layer: it is a return statement and reads as one.)
#define GEMMHOIST_RETURN_IF_FAILED(expression)                                     \
  do {                                                                             \
    if (::gemmhoist::Status status_ = (expression); !status_.ok()) return status_; \
  } while (false)

constexpr const char* to_string(StatusCode code) noexcept {
  switch (code) {
    case StatusCode::ok:
      return "ok";
    case StatusCode::unavailable:
      return "unavailable";
    case StatusCode::out_of_memory:
      return "out of memory";
    case StatusCode::device_error:
      return "device error";
    case StatusCode::device_lost:
      return "device lost";
    case StatusCode::timed_out:
      return "timed out";
    case StatusCode::cancelled:
      return "cancelled";
    case StatusCode::unsupported:
      return "unsupported";
  }
  return "?";
}

}  // namespace gemmhoist
