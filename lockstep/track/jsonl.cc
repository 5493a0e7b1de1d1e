#include "lockstep/track/jsonl.h"

#include <fcntl.h>
#include <unistd.h>

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

bool cut_jsonl(const std::string& path, int64_t last) {
  std::ifstream in(path);
  if (!in) return false;
  bool evaluated = false;
  std::string kept;
  for (std::string line; std::getline(in, line) && !in.eof();) {
    const auto record = Record::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!record.is_object() || record.value("step", int64_t{0}) > last) continue;
    evaluated = evaluated || (record.value("kind", "") == "eval" && record.value("step", int64_t{0}) == last);
    kept += line + '\n';
  }
  const std::string beside = path + ".tmp";
  std::ofstream out(beside, std::ios::trunc);
  out << kept << std::flush;
  if (!out || std::rename(beside.c_str(), path.c_str()) != 0) {
    throw IoError(path, ": can't be cut back to step ", last, ": ", errno_text(errno));
  }
  return evaluated;
}

}  // namespace lockstep::track
