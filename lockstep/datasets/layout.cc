#include "lockstep/datasets/layout.h"

#include <functional>
#include <sstream>

#include "lockstep/base/error.h"
#include "lockstep/datasets/files/listing.h"

namespace lockstep::datasets {
namespace {

// The first name of a test part, with the ending, for which is_part(its path) holds; empty if there is none.
std::string test_part(const std::string& path, const std::string& ending,
                      const std::function<bool(const std::string&)>& is_part) {
  for (const char* name : kTestParts) {
    if (is_part(path + "/" + name + ending)) return name + ending;
  }
  return "";
}

}  // namespace

Layout find_layout(const std::string& path) {
  Layout found{.kind = kind_of(path)};
  const auto parts = [&](const std::string& ending, const std::function<bool(const std::string&)>& is_part) {
    found.one_part = false;
    found.test = test_part(path, ending, is_part);
  };
  switch (found.kind) {
    case Kind::kTrainAndVal:
      // ImageNet's test/ has no classes. Who opens any other part says that it has none.
      parts("", [](const std::string& part) {
        return is_folder(part) && (!part.ends_with("/test") || !list_folders(part).empty());
      });
      break;
    case Kind::kPacked:
      found.packed = packed_kind(path);
      if (!is_file(path + "/manifest.json")) parts("", is_folder);
      break;
    case Kind::kRecordIo:
      if (!is_file(path)) parts(".rec", is_file);
      break;
    case Kind::kPairs:
      if (!pair_folders(path).found()) parts("", [](const std::string& part) { return pair_folders(part).found(); });
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
