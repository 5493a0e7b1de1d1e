#include "lockstep/track/jsonl.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
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

Cut copy_jsonl(const std::string& from, const std::string& to, int64_t last) {
  std::ifstream in(from);
  if (!in) return {};
  Cut cut;
  const std::string beside = to + ".tmp";
  std::ofstream out(beside, std::ios::trunc);
  for (std::string line; std::getline(in, line) && !in.eof();) {
    const auto record = Record::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!record.is_object()) continue;
    const auto step = record.value("step", int64_t{0});
    if (step > last) {
      cut.dropped_to = std::max(cut.dropped_to, step);
      continue;
    }
    if (record.value("kind", "") == "eval" && step == last) cut.evaluated.push_back(record.value("split", ""));
    out << line << '\n';
  }
  out << std::flush;
  if (!out || std::rename(beside.c_str(), to.c_str()) != 0) {
    throw IoError(to, ": can't be written up to step ", last, ": ", errno_text(errno));
  }
  return cut;
}

}  // namespace lockstep::track
