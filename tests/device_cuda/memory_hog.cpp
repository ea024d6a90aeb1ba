// memory_hog LEFT_MIB: another process that takes the GPU's memory until so much of it is left, says "ready",
// and keeps it until its standard input ends.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "device/cuda/driver_table.hpp"

using namespace gemmhoist::device::cuda;

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::size_t left = std::strtoull(argv[1], nullptr, 10) << 20;
  gemmhoist::Status status;
  const DriverTable* driver = gemmhoist::device::cuda::driver(status);
  DeviceId device = 0;
  Context context = nullptr;
  if (driver == nullptr || driver->init(0) != 0 || driver->device_get(&device, 0) != 0 ||
      driver->ctx_create(&context, 0, device) != 0) {
    return 1;
  }
  // Ever smaller pieces: the last ones fit the rest to within a MiB or two.
  for (std::size_t piece = std::size_t{8} << 30; piece >= (std::size_t{2} << 20); piece /= 2) {
    for (;;) {
      std::size_t free_bytes = 0, total = 0;
      DevicePtr pointer = 0;
      if (driver->mem_get_info(&free_bytes, &total) != 0 || free_bytes < left + piece) break;
      if (driver->mem_alloc(&pointer, piece) != 0) break;
    }
  }
  std::puts("ready");
  std::fflush(stdout);
  char byte = 0;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  return 0;
}
