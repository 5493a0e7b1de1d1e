// nvJPEG's functions, of the library that is there when the plug-in runs.
#pragma once

#include <nvjpeg.h>

#include <string>

namespace lockstep::image {

struct NvjpegLibrary {
  decltype(&::nvjpegGetProperty) get_property;
  decltype(&::nvjpegCreateExV2) create;
  decltype(&::nvjpegDestroy) destroy;
  decltype(&::nvjpegJpegStateCreate) create_state;
  decltype(&::nvjpegJpegStateDestroy) destroy_state;
  decltype(&::nvjpegDecodeBatchedInitialize) initialize_batch;
  decltype(&::nvjpegDecodeBatched) decode_batch;
  decltype(&::nvjpegDecode) decode;
  decltype(&::nvjpegJpegStreamCreate) create_stream;
  decltype(&::nvjpegJpegStreamDestroy) destroy_stream;
  decltype(&::nvjpegJpegStreamParse) parse;
  decltype(&::nvjpegDecodeBatchedSupported) batch_takes;

  std::string version() const;  // "13.3.2"
};

// Opens the library for the rest of the process: where the loader finds it, or beside CUDA's runtime library. Throws
// ConfigError with what to install if it is missing or lacks a function.
NvjpegLibrary open_nvjpeg();

// Throws IoError that says what failed, unless it succeeded.
void check(nvjpegStatus_t status, const char* what);

// Whether a status is about the JPEG that was given, and not about the device or the library.
bool is_about_the_picture(nvjpegStatus_t status);

}  // namespace lockstep::image
