// A CUDA driver with three GPUs, as far as the launcher asks one.
#include <cstdio>

extern "C" {

int cuInit(unsigned) { return 0; }

int cuDeviceGetCount(int* count) {
  *count = 3;
  return 0;
}

int cuDeviceGetPCIBusId(char* bus, int size, int gpu) {
  constexpr const char* kBuses[] = {"0000:3B:00.0", "0000:AF:00.0", "0000:D8:00.0"};
  std::snprintf(bus, static_cast<size_t>(size), "%s", kBuses[gpu]);
  return 0;
}
}
