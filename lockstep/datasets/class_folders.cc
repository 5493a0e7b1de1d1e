#include "lockstep/datasets/class_folders.h"

#include <algorithm>
#include <set>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/shown.h"
#include "lockstep/data/dataset.h"
#include "lockstep/datasets/files/file_bytes.h"
#include "lockstep/datasets/image_files.h"

namespace lockstep::datasets {
namespace {

// The folder's files, in which a folder without any is listed as "name/".
Listing list_with_empty_folders(const std::string& path, const OnProblem& on_problem) {
  Listing files = list_files(path, 8, on_problem), empty;
  const OnProblem told_already = [](const std::string&) {};
  for (const std::string& name : list_folders(path, on_problem ? told_already : nullptr)) {
    const std::string prefix = name + "/";
    const auto first = std::lower_bound(files.begin(), files.end(), prefix,
                                        [](const Listed& file, const std::string& text) { return file.name < text; });
    if (first == files.end() || !first->name.starts_with(prefix)) empty.push_back({prefix, 0});
  }
  files.insert(files.end(), empty.begin(), empty.end());
  std::sort(files.begin(), files.end(), [](const Listed& a, const Listed& b) { return a.name < b.name; });
  return files;
}

std::string class_name_of(const Listed& file) { return file.name.substr(0, file.name.find('/')); }

class ClassFolders final : public ImageSource {
 public:
  ClassFolders(std::string path, const ClassFoldersOptions& options) : path_(std::move(path)) {
    const auto list = [&] { return text_of(list_with_empty_folders(path_, options.on_problem)); };
    Listing all = listing_of(options.on_one_rank(list));
    check_folders(all);
    take_images(std::move(all), options.on_problem);
    if (files_.empty()) throw_no_folders("");
    number_classes(options);
  }

  int64_t size() const override { return static_cast<int64_t>(files_.size()); }

  Encoded read(int64_t index, std::vector<uint8_t>& memory) const override {
    return {read_whole(path_of(index), memory)};
  }

  int64_t class_of(int64_t index) const override {
    data::check_index(index, size());
    return classes_[static_cast<size_t>(index)];
  }

  std::string name_of(int64_t index) const override { return shown(path_of(index)); }
  std::string short_name_of(int64_t index) const override { return file_of(index).name; }
  std::vector<std::string> class_names() const override { return class_names_; }
  std::string fingerprint() const override { return fingerprint_of(files_); }
  Listing listing() const override { return files_; }

  std::string text() const override {
    return cat(
        count_of_images(files_), " of ", class_names_.size(), " classes in ", shown(path_),
        left_out_ == 0 ? "" : cat(" (", left_out_, left_out_ == 1 ? " other file" : " other files", " left out)"));
  }

 private:
  const Listed& file_of(int64_t index) const {
    data::check_index(index, size());
    return files_[static_cast<size_t>(index)];
  }
  std::string path_of(int64_t index) const { return path_ + "/" + file_of(index).name; }

  [[noreturn]] void throw_no_folders(const std::string& advice) const {
    throw DataError(shown(path_), ": no class folders with images (", kImageEndings, ") in it", advice);
  }

  // One line for all images that lie side by side.
  void check_folders(const Listing& all) const {
    if (std::any_of(all.begin(), all.end(), [](const Listed& file) { return file.name.find('/') != file.name.npos; })) {
      return;
    }
    const auto images = std::count_if(all.begin(), all.end(), [](const Listed& file) { return is_image(file.name); });
    throw_no_folders(
        images == 0 ? ""
                    : cat("; move its ", images, images == 1 ? " image" : " images", " into a folder for each class"));
  }

  // Keeps the images of `all` and refuses folders that have none.
  void take_images(Listing all, const OnProblem& on_problem) {
    std::string last;  // class folder
    for (size_t i = 0; i < all.size(); ++i) {
      const std::string folder = class_name_of(all[i]);
      const bool in_folder = folder.size() < all[i].name.size();
      if (!is_image(all[i].name)) {
        left_out_ += !all[i].name.ends_with('/');
      } else if (!in_folder) {
        tell(on_problem,
             cat(shown(path_ + "/" + all[i].name), ": an image beside the class folders; move it into one"));
      } else {
        files_.push_back(std::move(all[i]));
        last = folder;
      }
      const bool ends = i + 1 == all.size() || class_name_of(all[i + 1]) != folder;
      if (in_folder && ends && last != folder) {
        tell(on_problem, cat(shown(path_ + "/" + folder), ": a class folder without images (", kImageEndings,
                             "); remove it, or fill it"));
      }
    }
  }

  void number_classes(const ClassFoldersOptions& options) {
    class_names_ = options.classes;
    if (class_names_.empty()) {  // "cats-2/1.jpg" comes before "cats/1.jpg"
      std::set<std::string> names;
      for (const Listed& file : files_) names.insert(class_name_of(file));
      class_names_.assign(names.begin(), names.end());
    }
    std::set<std::string> strange;
    std::erase_if(files_, [&](const Listed& file) {
      const std::string name = class_name_of(file);
      const auto found = std::lower_bound(class_names_.begin(), class_names_.end(), name);
      const bool known = found != class_names_.end() && *found == name;
      if (known) classes_.push_back(static_cast<int32_t>(found - class_names_.begin()));
      if (!known && strange.insert(name).second) {
        tell(options.on_problem, cat(shown(path_ + "/" + name),
                                     ": a class that the training part doesn't have; add it there, or remove it"));
      }
      return !known;
    });
  }

  std::string path_;
  Listing files_;
  std::vector<int32_t> classes_;  // of each file
  std::vector<std::string> class_names_;
  int64_t left_out_ = 0;
};

}  // namespace

std::shared_ptr<const ImageSource> class_folders(const std::string& path, const ClassFoldersOptions& options) {
  return std::make_shared<ClassFolders>(path, options);
}

}  // namespace lockstep::datasets
