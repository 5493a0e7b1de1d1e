// A picture of some samples before and after augmentation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/datasets/survey/survey.h"
#include "lockstep/image/pixels.h"

namespace lockstep::datasets {

constexpr int kSheetSamples = 16;

struct ContactSheet {
  image::Pixels pixels;              // four samples a row, each as it is stored beside what training sees of it
  std::vector<std::string> samples;  // "cats/1.jpg, cats", in the order of reading
};

// Draws samples that `survey` found sound, those of the training part that options.seed chooses, beside what training
// makes of them with random numbers of that seed, before it is normalised. Masks lie over their images: a colour for
// each class but the first. Throws DataError where training would not start.
ContactSheet contact_sheet(const Survey& survey, const SurveyOptions& options);

// "  sheet        sheet.png, 4 samples a row:" and a line for each row.
std::string text_of(const ContactSheet& sheet, const std::string& path);

// Writes it as a PNG. Throws IoError.
void write_sheet(const ContactSheet& sheet, const std::string& path);

}  // namespace lockstep::datasets
