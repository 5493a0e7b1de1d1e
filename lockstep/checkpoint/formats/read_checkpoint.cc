#include "lockstep/checkpoint/formats/read_checkpoint.h"

#include <filesystem>
#include <string_view>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/formats/file_reader.h"
#include "lockstep/checkpoint/formats/paddle_reader.h"
#include "lockstep/checkpoint/formats/printable.h"
#include "lockstep/checkpoint/formats/pt_reader.h"
#include "lockstep/checkpoint/formats/safetensors_index.h"
#include "lockstep/checkpoint/formats/safetensors_reader.h"
#include "lockstep/checkpoint/formats/stored_tensor.h"

namespace lockstep::checkpoint {
namespace {

constexpr uint64_t kSmall = 64u << 10;  // bytes of a storage, counters and biases for example

struct Format {
  bool (*matches)(std::string_view start);
  Value (*open)(const std::string& path, const InputFile& file, const ReadOptions& options);
};

// The first that matches is taken. A length in a safetensors file may begin with the bytes of any other format.
constexpr Format kFormats[] = {
    {is_safetensors, [](const auto& path, const auto& file, const auto&) { return open_safetensors(path, file); }},
    {is_pt, open_pt},
    {is_paddle, read_paddle},
    {is_safetensors_index,
     [](const auto& path, const auto& file, const auto&) { return open_safetensors_index(path, file); }},
};

void find_optimizers(const Value& value, std::vector<const Value*>& found) {
  const auto* dict = value.get_if<Dict>();
  if (dict == nullptr) return;
  if (dict->contains("state") && dict->contains("param_groups")) {
    found.push_back(&value);
    return;
  }
  for (const auto& [key, item] : *dict) find_optimizers(item, found);
}

Value read(const std::string& named, uint64_t largest_in_memory, const ReadOptions& options) {
  std::error_code error;
  const bool is_folder = std::filesystem::is_directory(named, error);
  const std::string path = is_folder ? find_safetensors(named).value_or(named) : named;
  const InputFile file = open_input(path);
  const std::string start = start_of(path, file);
  for (const Format& format : kFormats) {
    if (!format.matches(start)) continue;
    Value root = format.open(path, file, options);
    std::vector<const Value*> taken;
    if (options.takes_optimizers) find_optimizers(root, taken);
    verify_stored(root, largest_in_memory, taken, options.checks_on_the_way);
    return root;
  }
  throw DataError(path, ": neither a checkpoint of torch.save, safetensors nor of Paddle: it starts with ",
                  quoted_start(start));
}

}  // namespace

Value read_checkpoint(const std::string& path, const ReadOptions& options) { return read(path, kEverything, options); }

Value open_checkpoint(const std::string& path, const ReadOptions& options) { return read(path, kSmall, options); }

}  // namespace lockstep::checkpoint
