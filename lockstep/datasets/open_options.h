// What a recipe says when it opens images.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/data/findings.h"
#include "lockstep/data/on_one_rank.h"
#include "lockstep/datasets/options/image_options.h"

namespace lockstep::datasets {

struct OpenOptions {
  std::string path;
  ImageOptions images = {};
  int size = 224;                     // pixels a side of the result; of masks the shorter side
  std::optional<double> scale = {};   // with masks: the result as a share of the image's own size, instead
  std::optional<int> crop = {};       // with masks: the sides of training images, as random parts of the result
  bool channels_last = false;         // how images lie in memory
  at::ScalarType dtype = at::kFloat;  // of images
  bool as_bytes = false;              // images come as ImageSetup::as_bytes says
  bool encoded = false;               // training images come as ImageSetup::encoded says
  bool passes_over_bad = false;       // an image that can't be read is no reason not to open the others
  int threads = 1;                    // for scanning masks and the like
  std::optional<int> channels = {};   // of images with masks: 1 to 4; none: 1 or 3, as they have
  std::optional<int> classes = {};    // --classes: the most values that masks may have, but 1 stands for two
  // All values of the masks to train on, ascending, where who opens them has seen them; none: the masks are scanned.
  std::vector<uint32_t> mask_values = {};
  data::OnOneRank on_one_rank = {};
  std::shared_ptr<data::Findings> findings = nullptr;  // of a former opening, and then of this; null: none are kept
};

}  // namespace lockstep::datasets
