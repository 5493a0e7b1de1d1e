// The id of a GPU among all machines'.
#pragma once

#include <cuda_runtime_api.h>

#include <iomanip>
#include <sstream>
#include <string>

namespace lockstep::comm {

// Its UUID: "GPU-5f0c…".
inline std::string id_of_gpu(const cudaDeviceProp& gpu) {
  std::ostringstream text;
  text << "GPU-" << std::hex << std::setfill('0');
  for (const char byte : gpu.uuid.bytes) text << std::setw(2) << static_cast<int>(static_cast<unsigned char>(byte));
  return text.str();
}

}  // namespace lockstep::comm
