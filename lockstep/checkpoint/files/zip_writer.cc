#include "lockstep/checkpoint/files/zip_writer.h"

#include "lockstep/checkpoint/files/crc32.h"

namespace lockstep::checkpoint {

void ZipWriter::add(const std::string& name, std::string_view content) {
  ZipEntry& entry = layout_.add(name, content.size());
  entry.crc = crc32(content);
  sink_.write(local_header(entry));
  sink_.write(content);
}

void ZipWriter::finish() { sink_.write(layout_.directory()); }

}  // namespace lockstep::checkpoint
