#include "lockstep/predict/class_output.h"

#include <fcntl.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/base/shown.h"
#include "lockstep/datasets/files/file_errors.h"
#include "lockstep/predict/class_table.h"

namespace lockstep::predict {

void ClassOutput::add(const std::string& image, const at::Tensor& scores) {
  const ImageClasses found = likeliest(image, scores, options_.top);
  if (!std::exchange(begun_, true)) begin(found.classes.size());
  write(options_.format == train::TableFormat::kCsv    ? to_csv(found, options_.class_names)
        : options_.format == train::TableFormat::kJson ? to_json(found, options_.class_names)
                                                       : to_text(found, options_.class_names));
}

void ClassOutput::begin(size_t classes) {
  if (!options_.file.empty()) {
    file_ = Descriptor(open(options_.file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (!file_) datasets::throw_write_error(options_.file, errno);
  }
  if (options_.format == train::TableFormat::kCsv) write(csv_header(classes));
}

void ClassOutput::write(const std::string& text) const {
  if (options_.file.empty()) return options_.print(text);
  if (!write_all(file_.get(), text)) datasets::throw_write_error(options_.file, errno);
}

void refuse_overwriting(const std::string& output, const std::vector<std::string>& files) {
  std::error_code error;
  if (output.empty() || !std::filesystem::exists(output, error)) return;
  for (const std::string& file : files) {
    if (!std::filesystem::equivalent(output, file, error)) continue;
    throw ConfigError("--output ", output, ": this is ", shown(file), ", which is read; choose another name");
  }
}

}  // namespace lockstep::predict
