// CRC-32C (Castagnoli; RFC 3720), which guards the records of TensorBoard's event files.
#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep::track {

uint32_t crc32c(std::string_view bytes);

}  // namespace lockstep::track
