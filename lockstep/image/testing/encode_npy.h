// Writes npy files for tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::image::testing_support {

// An array with this header: encode_npy("'|u1'", "(2, 3)", {0, 1, 2, 3, 4, 5}).
inline std::vector<uint8_t> encode_npy(const std::string& type, const std::string& shape,
                                       const std::vector<uint8_t>& elements, bool columns_first = false,
                                       int version = 1) {
  std::string header =
      "{'descr': " + type + ", 'fortran_order': " + (columns_first ? "True" : "False") + ", 'shape': " + shape + ", }";
  header.append(63 - header.size() % 64, ' ');
  header += '\n';
  std::vector<uint8_t> bytes = {0x93, 'N', 'U', 'M', 'P', 'Y', static_cast<uint8_t>(version), 0};
  const size_t digits = version == 1 ? 2 : 4;
  for (size_t i = 0; i < digits; ++i) bytes.push_back(static_cast<uint8_t>(header.size() >> (8 * i)));
  bytes.insert(bytes.end(), header.begin(), header.end());
  bytes.insert(bytes.end(), elements.begin(), elements.end());
  return bytes;
}

}  // namespace lockstep::image::testing_support
