// A TensorBoard event file: records of events in TFRecord's frame, that only grow.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/proto_writer.h"
#include "lockstep/base/shared_memory.h"

namespace lockstep::track {

// A record in its frame: length, its checksum, the bytes, their checksum.
std::string framed(std::string_view record);

// One thread.
class EventFile {
 public:
  // Creates a file in `folder`, which it creates if need be. `first_step` is the run's next step: what earlier files
  // say of it and of later ones the viewer drops. Throws IoError.
  EventFile(const std::string& folder, int64_t first_step);

  // Appends a tensorflow.Summary. `seconds`: since 1970. Throws IoError.
  void summary(int64_t step, double seconds, const ProtoWriter& summary);

  const std::string& path() const { return path_; }

 private:
  void write(const ProtoWriter& event);

  std::string path_;
  Descriptor file_;
};

// Whether a file has the name of one that this class makes.
bool is_event_file(const std::string& name);
// The paths of those in `folder`. Throws IoError.
std::vector<std::string> event_files(const std::string& folder);
// Removes them. Returns whether there were any. Throws IoError.
bool remove_event_files(const std::string& folder);
// Whether there are any.
bool has_event_files(const std::string& folder);

}  // namespace lockstep::track
