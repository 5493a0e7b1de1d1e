#include "lockstep/checkpoint/formats/pt_entries.h"

#include "lockstep/checkpoint/files/zip_layout.h"
#include "lockstep/checkpoint/formats/pickle_writer.h"

namespace lockstep::checkpoint {

std::vector<PtEntry> pt_entries(const Value& value, const StoragePlan& plan) {
  std::vector<PtEntry> entries;
  for (size_t i = 0; i < plan.storages().size(); ++i) {
    entries.push_back({.name = "archive/data/" + std::to_string(i), .storage = i});
  }
  entries.push_back({.name = "archive/data.pkl", .text = write_pickle(value, plan)});
  entries.push_back({.name = "archive/.format_version", .text = "1"});
  entries.push_back({.name = "archive/.storage_alignment", .text = std::to_string(ZipLayout::kAlignment)});
  entries.push_back({.name = "archive/byteorder", .text = "little"});
  entries.push_back({.name = "archive/version", .text = "3\n"});
  return entries;
}

}  // namespace lockstep::checkpoint
