#include "lockstep/track/jsonl.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "lockstep/base/error.h"
#include "lockstep/base/log.h"

namespace lockstep::track {

JsonlSink::JsonlSink(std::string path)
    : path_(std::move(path)), file_(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644)) {
  if (!file_) throw IoError(path_, ": can't be written: ", errno_text(errno));
}

void JsonlSink::write(const Record& record) {
  // NaN and infinity, which JSON cannot express, become null.
  if (!write_all(file_.get(), record.dump() + '\n')) {
    throw IoError(path_, ": can't be written: ", errno_text(errno), "; free some space, then --resume");
  }
}

Cut cut_jsonl(const std::string& path, int64_t last) {
  errno = 0;
  std::ifstream in(path);
  if (!in && errno == ENOENT) return {.is_there = false};
  Cut cut;
  size_t bytes = 0;
  for (std::string line; std::getline(in, line); bytes += line.size() + 1) {
    const bool half = in.eof();
    const auto record = half ? Record() : Record::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!record.is_object()) continue;
    const auto step = record.value("step", int64_t{0});
    if (step > last) {
      cut.dropped_to = std::max(cut.dropped_to, step);
      continue;
    }
    if (record.value("kind", "") == "eval" && step == last) cut.evaluated.push_back(record.value("split", ""));
    cut.text += line + '\n';
  }
  if (!in.eof()) throw IoError(path, ": can't be read: ", errno_text(errno));
  cut.whole = cut.text.size() == bytes;
  return cut;
}

void for_each_record(const std::string& path, const std::function<void(const Record& record)>& take) {
  errno = 0;
  std::ifstream in(path);
  if (!in && errno == ENOENT) return;
  for (std::string line; std::getline(in, line);) {
    const auto record = Record::parse(line, nullptr, /*allow_exceptions=*/false);
    if (record.is_object()) take(record);
  }
  if (!in.eof()) throw IoError(path, ": can't be read: ", errno_text(errno));
}

}  // namespace lockstep::track
