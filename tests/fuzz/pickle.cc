// Bare pickles: as the one in a .pt, with storages, and as a file of Paddle's.
#include <ATen/ATen.h>

#include <algorithm>

#include "fuzz.h"
#include "lockstep/checkpoint/contents/describe.h"
#include "lockstep/checkpoint/formats/paddle_reader.h"
#include "lockstep/checkpoint/formats/paddle_writer.h"
#include "lockstep/checkpoint/formats/pickle_reader.h"
#include "lockstep/checkpoint/formats/pickle_writer.h"

namespace lockstep::fuzz {
namespace {

using checkpoint::Value;

// Storages of any size that a file of 64 KiB may have.
class Storages : public checkpoint::StorageSource {
 public:
  c10::Storage storage(const checkpoint::StorageRequest& request) override {
    if (request.bytes > 1 << 16) throw DataError("pickle: no such storage");
    return at::zeros({request.bytes}, at::kByte).storage();
  }
};

bool has_opaque(const Value& value) {
  if (value.get_if<checkpoint::Opaque>() != nullptr) return true;
  if (const auto* dict = value.get_if<checkpoint::Dict>()) {
    return std::any_of(dict->begin(), dict->end(), [](const auto& entry) { return has_opaque(entry.value); });
  }
  const auto* items = value.items();
  return items != nullptr && std::any_of(items->begin(), items->end(), has_opaque);
}

Value read(std::string_view pickle, bool ignore_unknown) {
  constexpr uint64_t kMemory = 1u << 20;  // which also bounds what is listed and written below
  Storages storages;
  checkpoint::MemoryBudget budget(kMemory);
  return checkpoint::read_pickle(pickle, {.name = "pickle",
                                          .storages = &storages,
                                          .max_tensor_bytes = kMemory,
                                          .budget = &budget,
                                          .ignore_unknown = ignore_unknown})
      .value;
}

// Whatever is read is the same when it is written and read again.
void check_written(const Value& value) {
  if (has_opaque(value)) return;
  const std::string written = checkpoint::write_pickle(value, checkpoint::StoragePlan(value));
  const bool again = reads("pickle", [&] {
    const Value back = read(written, /*ignore_unknown=*/false);
    check(checkpoint::describe(back).size() == checkpoint::describe(value).size(), "a value that changes");
  });
  static_cast<void>(again);  // larger than the bound above, for texts are written anew
}

}  // namespace
}  // namespace lockstep::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  if (size == 0) return 0;
  const bool ignore_unknown = (data[0] & 1) != 0;
  const std::string_view pickle(reinterpret_cast<const char*>(data) + 1, size - 1);
  fuzz::reads("pickle", [&] { fuzz::check_written(fuzz::read(pickle, ignore_unknown)); });
  static fuzz::FileInMemory file;
  if (!checkpoint::is_paddle(pickle)) return 0;
  file.hold({data + 1, size - 1});
  fuzz::reads(file.path(), [&] {
    checkpoint::read_paddle(file.path(), checkpoint::open_input(file.path()), {.ignore_unknown = ignore_unknown});
  });
  return 0;
}
