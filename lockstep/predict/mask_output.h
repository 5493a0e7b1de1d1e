// Where masks go: NAME_mask.png and NAME_overlay.png of each image, in a folder.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace lockstep::predict {

// One thread.
class MaskOutput {
 public:
  // `names` are those of output_names(), without endings. `turned`: images are turned as their EXIF orientation says.
  // Creates the folder. Throws ConfigError where it holds a mask of these names that has no overlay, so that it is no
  // prediction's, and may be drawn by people; IoError.
  MaskOutput(std::string folder, std::vector<std::string> names, bool turned);

  // Writes the two pictures of image `number`, which lies in `image`, with these scores [classes, h, w]. Returns a line
  // for people. Throws DataError that names the image, also for scores that are no numbers, IoError.
  std::string add(size_t number, const std::string& image, const at::Tensor& scores) const;

 private:
  std::string path(size_t number, const char* ending) const { return folder_ + '/' + names_[number] + ending; }

  std::string folder_;
  std::vector<std::string> names_;
  bool turned_;
};

}  // namespace lockstep::predict
