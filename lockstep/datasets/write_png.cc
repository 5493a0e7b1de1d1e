#include "lockstep/datasets/write_png.h"

#include "lockstep/datasets/files/write_file.h"
#include "lockstep/image/encode.h"

namespace lockstep::datasets {

void write_png(const std::string& path, const image::Pixels& pixels) { write_file(path, image::encode_png(pixels)); }

}  // namespace lockstep::datasets
