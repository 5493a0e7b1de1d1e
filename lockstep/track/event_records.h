// What is in TensorBoard's event files: whether they are whole, and how they are cut back to a step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::track {

struct EventRecord {
  uint64_t end = 0;  // of its frame in the file
  int64_t step = 0;
};

struct EventRecords {
  std::vector<EventRecord> whole;
  bool has_half = false;  // the last one is cut short, as by a writer that was killed
};

// Reads a file's records. Throws DataError for one whose checksum or content is wrong, IoError.
EventRecords read_event_records(const std::string& path);

// Drops from the event files of a folder what they say of steps after `step`, and files that say nothing else. A
// damaged one is left as it is. Returns whether there was something to drop. Throws IoError.
bool cut_event_files(const std::string& folder, int64_t step);

}  // namespace lockstep::track
