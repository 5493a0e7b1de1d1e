#include "lockstep/checkpoint/formats/pt_writer.h"

#include "lockstep/checkpoint/files/atomic_file.h"
#include "lockstep/checkpoint/files/zip_writer.h"
#include "lockstep/checkpoint/formats/pt_entries.h"
#include "lockstep/checkpoint/formats/storage_plan.h"

namespace lockstep::checkpoint {

void write_pt(const Value& value, ByteSink& sink) {
  const StoragePlan plan(value);
  ZipWriter zip(sink);
  for (const PtEntry& entry : pt_entries(value, plan)) {
    zip.add(entry.name, entry.storage ? plan.storages()[*entry.storage].bytes() : entry.text);
  }
  zip.finish();
}

void write_pt(const Value& value, const std::string& path, const std::function<void()>& on_progress) {
  write_atomically(
      path, [&](ByteSink& sink) { write_pt(value, sink); }, on_progress);
}

}  // namespace lockstep::checkpoint
