// Writes pictures for people.
#pragma once

#include <string>

#include "lockstep/image/pixels.h"

namespace lockstep::datasets {

// Writes a PNG. Half a file is removed. Throws IoError that names the path.
void write_png(const std::string& path, const image::Pixels& pixels);

}  // namespace lockstep::datasets
