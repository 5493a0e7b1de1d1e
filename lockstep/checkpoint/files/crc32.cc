#include "lockstep/checkpoint/files/crc32.h"

#include <isa-l/crc.h>
#include <zlib.h>

namespace lockstep::checkpoint {

uint32_t crc32(std::string_view bytes, uint32_t before) {
  return crc32_gzip_refl(before, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

uint32_t joined_crc(uint32_t first, uint32_t second, uint64_t second_bytes) {
  return static_cast<uint32_t>(crc32_combine64(first, second, static_cast<z_off64_t>(second_bytes)));
}

}  // namespace lockstep::checkpoint
