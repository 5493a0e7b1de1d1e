#include "lockstep/checkpoint/formats/pt_writer.h"

#include "lockstep/checkpoint/formats/atomic_file.h"
#include "lockstep/checkpoint/formats/pickle_writer.h"
#include "lockstep/checkpoint/formats/storage_plan.h"
#include "lockstep/checkpoint/formats/zip_writer.h"

namespace lockstep::checkpoint {

void write_pt(const Value& value, ByteSink& sink) {
  const StoragePlan plan(value);
  ZipWriter zip(sink);
  zip.add("archive/data.pkl", write_pickle(value, plan));  // first: PyTorch takes the folder's name from it
  zip.add("archive/.format_version", "1");
  zip.add("archive/.storage_alignment", std::to_string(ZipWriter::kAlignment));
  zip.add("archive/byteorder", "little");
  for (size_t i = 0; i < plan.storages().size(); ++i) {
    zip.add("archive/data/" + std::to_string(i), plan.storages()[i].bytes());
  }
  zip.add("archive/version", "3\n");
  zip.finish();
}

void write_pt(const Value& value, const std::string& path, const std::function<void()>& on_progress) {
  write_atomically(
      path, [&](ByteSink& sink) { write_pt(value, sink); }, on_progress);
}

}  // namespace lockstep::checkpoint
