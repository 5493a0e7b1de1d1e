#include "lockstep/image/device/nvjpeg/nvjpeg_library.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <array>
#include <filesystem>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/find_function.h"

namespace lockstep::image {
namespace {

constexpr const char* kRemedy =
    "; install it (./run setup, or pip install nvidia-nvjpeg beside torch, or the CUDA toolkit's), or use --decode "
    "host";

std::string library_name() { return cat("libnvjpeg.so.", NVJPEG_VER_MAJOR); }

// The folder of the CUDA runtime library that this process uses.
std::string runtime_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&cudaRuntimeGetVersion), &info) == 0 || info.dli_fname == nullptr) return {};
  return std::filesystem::path(info.dli_fname).parent_path();
}

void* open_library() {
  const std::vector<std::string> places = {library_name(), cat(runtime_folder(), '/', library_name())};
  std::string why;
  for (const std::string& place : places) {
    void* library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) return library;
    const char* text = dlerror();
    why += cat(why.empty() ? "" : "; ", text == nullptr ? place.c_str() : text);
  }
  throw ConfigError("--decode device: nvJPEG's library is missing (", why, ')', kRemedy);
}

template <typename Function>
void find(void* library, const char* name, Function& function) {
  if (find_function(library, name, function)) return;
  throw ConfigError("--decode device: ", library_name(), " has no ", name, ", so it is older than this build's",
                    kRemedy);
}

}  // namespace

std::string NvjpegLibrary::version() const {
  std::string text;
  for (const libraryPropertyType part : {MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL}) {
    int number = 0;
    check(get_property(part, &number), "asking for its version");
    text += cat(text.empty() ? "" : ".", number);
  }
  return text;
}

NvjpegLibrary open_nvjpeg() {
  void* const library = open_library();
  NvjpegLibrary functions{};
  find(library, "nvjpegGetProperty", functions.get_property);
  find(library, "nvjpegCreateExV2", functions.create);
  find(library, "nvjpegDestroy", functions.destroy);
  find(library, "nvjpegJpegStateCreate", functions.create_state);
  find(library, "nvjpegJpegStateDestroy", functions.destroy_state);
  find(library, "nvjpegDecodeBatchedInitialize", functions.initialize_batch);
  find(library, "nvjpegDecodeBatched", functions.decode_batch);
  find(library, "nvjpegDecode", functions.decode);
  find(library, "nvjpegJpegStreamCreate", functions.create_stream);
  find(library, "nvjpegJpegStreamDestroy", functions.destroy_stream);
  find(library, "nvjpegJpegStreamParse", functions.parse);
  find(library, "nvjpegDecodeBatchedSupported", functions.batch_takes);
  return functions;
}

void check(nvjpegStatus_t status, const char* what) {
  if (status == NVJPEG_STATUS_SUCCESS) return;
  constexpr std::array kTexts = {"success",        "not initialized", "invalid parameter",    "bad JPEG",
                                 "not supported",  "out of memory",   "execution failed",     "architecture mismatch",
                                 "internal error", "not implemented", "incomplete bit stream"};
  const auto number = static_cast<size_t>(status);
  throw IoError("nvJPEG: ", what, " failed (", number < kTexts.size() ? kTexts[number] : "unknown", ", status ", number,
                "); use --decode host");
}

// A damaged scan may end in a failed execution, too. Where it is the GPU that failed, the next call for it says so.
bool is_about_the_picture(nvjpegStatus_t status) {
  return status == NVJPEG_STATUS_BAD_JPEG || status == NVJPEG_STATUS_JPEG_NOT_SUPPORTED ||
         status == NVJPEG_STATUS_INVALID_PARAMETER || status == NVJPEG_STATUS_IMPLEMENTATION_NOT_SUPPORTED ||
         status == NVJPEG_STATUS_INCOMPLETE_BITSTREAM || status == NVJPEG_STATUS_EXECUTION_FAILED ||
         status == NVJPEG_STATUS_INTERNAL_ERROR;
}

}  // namespace lockstep::image
