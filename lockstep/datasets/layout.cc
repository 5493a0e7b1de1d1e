#include "lockstep/datasets/layout.h"

#include <functional>
#include <sstream>

#include "lockstep/base/error.h"
#include "lockstep/datasets/files/listing.h"

namespace lockstep::datasets {
namespace {

using IsPart = std::function<bool(const std::string& name)>;

// The first name of a test part, with the ending, for which is_part() holds; empty if there is none.
std::string test_part(const std::string& ending, const IsPart& is_part) {
  for (const char* part : kTestParts) {
    if (is_part(part + ending)) return part + ending;
  }
  return "";
}

}  // namespace

Layout find_layout(const std::string& path) {
  Layout found{.kind = kind_of(path)};
  const auto at = [&path](const std::string& name) { return path + "/" + name; };
  const auto parts = [&found](const std::string& ending, const IsPart& is_part) {
    found.one_part = false;
    found.test = test_part(ending, is_part);
  };
  switch (found.kind) {
    case Kind::kTrainAndVal:
      // ImageNet's test/ has no classes. Who opens any other part says that it has none.
      parts("", [&](const std::string& name) {
        return is_folder(at(name)) && (name != "test" || !list_folders(at(name)).empty());
      });
      break;
    case Kind::kPacked:
      found.packed = packed_kind(path);
      if (is_file(at("manifest.json"))) break;
      parts("", [&](const std::string& name) { return is_folder(at(name)); });
      break;
    case Kind::kRecordIo:
      if (!is_file(path)) parts(".rec", [&](const std::string& name) { return is_file(at(name)); });
      break;
    case Kind::kPairs:
      if (pair_folders(path).found()) break;
      parts("", [&](const std::string& name) { return pair_folders(at(name)).found(); });
      break;
    default:
      break;
  }
  return found;
}

Layout find_layout(const std::string& path, const data::OnOneRank& on_one_rank) {
  std::istringstream text(on_one_rank([&] {
    const Layout found = find_layout(path);
    return cat(static_cast<int>(found.kind), ' ', found.one_part, ' ', static_cast<int>(found.packed), ' ', found.test);
  }));
  int kind = 0, packed = 0;
  Layout layout;
  text >> kind >> layout.one_part >> packed >> layout.test;
  layout.kind = static_cast<Kind>(kind);
  layout.packed = static_cast<Packed>(packed);
  return layout;
}

PairFolders pair_folders(const std::string& path, const data::OnOneRank& on_one_rank) {
  std::istringstream text(on_one_rank([&] {
    const PairFolders found = pair_folders(path);
    return cat(found.images, ' ', found.masks);
  }));
  PairFolders folders;
  text >> folders.images >> folders.masks;
  return folders;
}

}  // namespace lockstep::datasets
