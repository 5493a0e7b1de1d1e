#include "lockstep/checkpoint/contents/check_file.h"

#include "lockstep/checkpoint/contents/leaves.h"
#include "lockstep/checkpoint/formats/file_reader.h"
#include "lockstep/checkpoint/formats/pickle_reader.h"
#include "lockstep/checkpoint/formats/read_checkpoint.h"
#include "lockstep/checkpoint/formats/zip_archive.h"
#include "lockstep/checkpoint/formats/zip_check.h"

namespace lockstep::checkpoint {
namespace {

bool is_archive(const std::string& path, const InputFile& file) {
  constexpr std::string_view kMagic = "PK\x03\x04";
  std::string start(kMagic.size(), '\0');
  if (file.bytes < start.size()) return false;
  read_at(file.fd.get(), path, 0, start.data(), start.size());
  return start == kMagic;
}

}  // namespace

CheckedFile check_file(const std::string& path) {
  CheckedFile checked;
  {
    const InputFile file = open_input(path);
    checked.bytes = file.bytes;
    if (is_archive(path, file)) {
      MemoryBudget budget(kReadingMemory);
      check_zip_directory(path, file, budget);
      ZipArchive archive(path, file, ZipArchive::Headers::kCompared);
      for (const std::string& name : archive.names()) archive.check(name);
    }
  }
  for_each_leaf(open_checkpoint(path), [&](const std::string&, const Value& leaf) {
    ++(leaf.is_tensor() ? checked.tensors : checked.values);
  });
  return checked;
}

}  // namespace lockstep::checkpoint
