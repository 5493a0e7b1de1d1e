// safetensors files for tests, sound or not.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::checkpoint::testing_support {

// The header's length, the header, the data.
inline std::string safetensors_file(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header + data;
}

// "name":{…}
inline std::string safetensors_entry(const std::string& name, const std::string& dtype, const std::string& shape,
                                     uint64_t begin, uint64_t end) {
  return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":[)" +
         std::to_string(begin) + "," + std::to_string(end) + "]}";
}

}  // namespace lockstep::checkpoint::testing_support
