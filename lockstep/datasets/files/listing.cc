#include "lockstep/datasets/files/listing.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <memory>

#include "lockstep/base/error.h"
#include "lockstep/base/shown.h"
#include "lockstep/base/xxh3.h"
#include "lockstep/datasets/files/file_errors.h"

namespace lockstep::datasets {
namespace {

struct CloseFolder {
  void operator()(DIR* folder) const { closedir(folder); }
};
using OpenFolder = std::unique_ptr<DIR, CloseFolder>;

OpenFolder open_folder(const std::string& path) {
  OpenFolder folder(opendir(path.c_str()));
  if (!folder) throw_file_error(path, "the folder can't be read", errno);
  return folder;
}

// Does something whose DataError is a problem among others.
template <typename Act>
void or_tell(const OnProblem& on_problem, const Act& act) {
  try {
    act();
  } catch (const DataError& error) {
    if (!on_problem) throw;
    on_problem(error.what());
  }
}

// Calls visit(name, status) for each name in the folder but hidden ones. Links count as what they lead to.
template <typename Visit>
void for_each_name(const std::string& path, DIR* folder, const OnProblem& on_problem, const Visit& visit) {
  for (;;) {
    errno = 0;
    const dirent* const entry = readdir(folder);
    if (entry == nullptr) {
      if (errno != 0) throw_file_error(path, "the folder can't be read", errno);
      return;
    }
    if (entry->d_name[0] == '.') continue;
    struct stat status {};
    const int error = fstatat(dirfd(folder), entry->d_name, &status, 0) == 0 ? 0 : errno;
    or_tell(on_problem, [&] {
      if (error != 0) throw_file_error(path + "/" + entry->d_name, "can't be looked at", error);
      visit(entry->d_name, status);
    });
  }
}

// Lists folder after folder; `above` holds those that lead to the one that is being listed.
class Walk {
 public:
  Walk(const std::string& root, int depth, const OnProblem& on_problem)
      : root_(root), depth_(depth), on_problem_(on_problem) {}

  Listing listing() {
    walk("");
    std::sort(files_.begin(), files_.end(), [](const Listed& a, const Listed& b) { return a.name < b.name; });
    return std::move(files_);
  }

 private:
  struct Identity {
    dev_t device;
    ino_t number;
    bool operator==(const Identity&) const = default;
  };

  void walk(const std::string& prefix) {
    const std::string path = prefix.empty() ? root_ : root_ + "/" + prefix;
    const OpenFolder folder = open_folder(path);
    struct stat own {};
    if (fstat(dirfd(folder.get()), &own) != 0) throw_file_error(path, "the folder can't be read", errno);
    const Identity identity{own.st_dev, own.st_ino};
    if (std::find(above_.begin(), above_.end(), identity) != above_.end()) {
      throw DataError(shown(path), ": leads back to a folder that it lies in; remove the link");
    }
    if (static_cast<int>(above_.size()) > depth_) {
      throw DataError(shown(path), ": lies deeper than ", depth_, " folders; is this the right data set?");
    }
    above_.push_back(identity);
    std::vector<std::string> folders;
    for_each_name(path, folder.get(), on_problem_, [&](const char* name, const struct stat& status) {
      const std::string relative = prefix.empty() ? name : prefix + "/" + name;
      if (S_ISDIR(status.st_mode)) {
        folders.push_back(relative);
      } else if (S_ISREG(status.st_mode)) {
        files_.push_back({relative, static_cast<uint64_t>(status.st_size)});
      } else {
        throw DataError(shown(root_ + "/" + relative), ": is a device, pipe or socket among the files; remove it");
      }
    });
    const auto own_depth = static_cast<ptrdiff_t>(above_.size());
    for (const std::string& name : folders) {
      or_tell(on_problem_, [&] { walk(name); });
      above_.erase(above_.begin() + own_depth, above_.end());
    }
    above_.pop_back();
  }

  std::string root_;
  int depth_;
  const OnProblem& on_problem_;
  Listing files_;
  std::vector<Identity> above_;
};

}  // namespace

Listing list_files(const std::string& folder, int depth, const OnProblem& on_problem) {
  return Walk(folder, depth, on_problem).listing();
}

std::vector<std::string> list_folders(const std::string& folder, const OnProblem& on_problem) {
  std::vector<std::string> names;
  for_each_name(folder, open_folder(folder).get(), on_problem, [&](const char* name, const struct stat& status) {
    if (S_ISDIR(status.st_mode)) names.emplace_back(name);
  });
  std::sort(names.begin(), names.end());
  return names;
}

std::string fingerprint_of(const Listing& listing) {
  return cat("files ", listing.size(), " xxh3 ", hex(xxh3(text_of(listing))));
}

// "812 cats/1.jpg\0": names have no zeros, and all else.
std::string text_of(const Listing& listing) {
  std::string text;
  for (const Listed& file : listing) {
    text += std::to_string(file.bytes);
    text += ' ';
    text += file.name;
    text += '\0';
  }
  return text;
}

Listing listing_of(std::string_view text) {
  Listing listing;
  while (!text.empty()) {
    const size_t end = text.find('\0'), space = text.find(' ');
    Listed file;
    if (end == text.npos || space > end ||
        std::from_chars(text.data(), text.data() + space, file.bytes).ptr != text.data() + space) {
      throw DataError("a list of files is damaged");
    }
    file.name = text.substr(space + 1, end - space - 1);
    listing.push_back(std::move(file));
    text.remove_prefix(end + 1);
  }
  return listing;
}

bool has_ending(std::string_view name, const std::vector<std::string_view>& endings) {
  const size_t dot = name.rfind('.');
  if (dot == name.npos || name.find('/', dot) != name.npos) return false;
  const std::string_view ending = name.substr(dot + 1);
  return std::any_of(endings.begin(), endings.end(), [&](std::string_view wanted) {
    return std::equal(ending.begin(), ending.end(), wanted.begin(), wanted.end(),
                      [](unsigned char a, unsigned char b) { return std::tolower(a) == b; });
  });
}

}  // namespace lockstep::datasets
