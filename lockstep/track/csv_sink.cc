#include "lockstep/track/csv_sink.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/track/flat.h"
#include "lockstep/track/jsonl.h"

namespace lockstep::track {
namespace {

constexpr size_t kWriteBytes = size_t{1} << 20;  // that are written at a time

bool is_row(const Record& record) {
  const std::string kind = record.value("kind", "");
  return kind == "train" || kind == "eval";
}

// RFC 4180: a text with a comma, a quotation mark or a line's end stands between quotation marks.
std::string cell(const Record& value) {
  if (value.is_null() || (value.is_number_float() && !std::isfinite(value.get<double>()))) return "";
  if (!value.is_string()) return value.dump();
  const auto text = value.get<std::string>();
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char each : text) quoted += each == '"' ? std::string("\"\"") : std::string(1, each);
  return quoted + '"';
}

// Adds the columns that are missing. Returns whether there were any.
bool add_columns(const std::vector<std::pair<std::string, Record>>& values, std::vector<std::string>& columns) {
  const size_t before = columns.size();
  for (const auto& [name, value] : values) {
    if (std::find(columns.begin(), columns.end(), name) == columns.end()) columns.push_back(name);
  }
  return columns.size() > before;
}

std::string row(const std::vector<std::pair<std::string, Record>>& values, const std::vector<std::string>& columns) {
  std::string line;
  for (const std::string& column : columns) {
    const auto found =
        std::find_if(values.begin(), values.end(), [&](const auto& each) { return each.first == column; });
    line += (&column == columns.data() ? "" : ",") + (found == values.end() ? "" : cell(found->second));
  }
  return line + '\n';
}

Descriptor open_file(const std::string& path, int flags) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | flags, 0644));
  if (!file) throw IoError(path, ": can't be written: ", errno_text(errno));
  return file;
}

void put(const Descriptor& file, const std::string& path, const std::string& text) {
  if (!write_all(file.get(), text)) {
    throw IoError(path, ": can't be written: ", errno_text(errno), "; free some space, then --resume");
  }
}

}  // namespace

CsvSink::CsvSink(std::string path, std::string jsonl)
    : path_(std::move(path)), jsonl_(std::move(jsonl)), columns_{"kind",          "split",
                                                                 "step",          "epoch",
                                                                 "loss",          "lr",
                                                                 "gradient_norm", "time",
                                                                 "seconds",       "samples_per_second",
                                                                 "data_seconds"} {
  for_each_record(jsonl_, [this](const Record& record) {
    if (is_row(record)) add_columns(flat(record, '.'), columns_);
  });
  rewrite();
}

void CsvSink::write(const Record& record) {
  if (!is_row(record)) return;
  const auto values = flat(record, '.');
  if (add_columns(values, columns_)) return rewrite();
  put(file_, path_, row(values, columns_));
}

// A reader sees the old table or the new one.
void CsvSink::rewrite() {
  const std::string whole = path_ + ".tmp";
  file_ = open_file(whole, O_TRUNC);
  std::string text;
  for (const std::string& column : columns_) text += (text.empty() ? "" : ",") + cell(column);
  text += '\n';
  for_each_record(jsonl_, [&](const Record& record) {
    if (is_row(record)) text += row(flat(record, '.'), columns_);
    if (text.size() >= kWriteBytes) put(file_, whole, std::exchange(text, ""));
  });
  put(file_, whole, text);
  if (std::rename(whole.c_str(), path_.c_str()) != 0) {
    throw IoError(whole, ": can't be renamed to ", path_, ": ", errno_text(errno));
  }
}

}  // namespace lockstep::track
