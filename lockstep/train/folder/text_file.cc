#include "lockstep/train/folder/text_file.h"

#include <filesystem>
#include <system_error>

#include "lockstep/base/error.h"
#include "lockstep/base/file_content.h"
#include "lockstep/checkpoint/files/atomic_file.h"

namespace lockstep::train {

std::string read_text(const std::string& path) { return file_content(path).value_or(""); }

void write_text(const std::string& path, const std::string& text) {
  checkpoint::write_atomically(path, [&](checkpoint::ByteSink& sink) { sink.write(text); });
}

void write_or_remove(const std::string& path, const std::string& text) {
  if (!text.empty()) return write_text(path, text);
  std::error_code error;
  std::filesystem::remove(path, error);
  if (error) throw IoError(path, ": can't be removed: ", error.message());
}

}  // namespace lockstep::train
