#include "lockstep/train/jpeg_decoder_of.h"

#include "lockstep/comm/plugins/plugin.h"
#include "lockstep/image/device/host_decoder.h"

namespace lockstep::train {
namespace {

constexpr comm::PluginName kNvjpegPlugin{
    "nvjpeg (--decode device)", "liblockstep_nvjpeg.so",
    "build it where a CUDA toolkit with nvcc, and nvjpeg.h, are (./run setup brings that), or use --decode host"};

}  // namespace

std::shared_ptr<image::JpegDecoder> jpeg_decoder_of(c10::Device device) {
  if (device.is_cpu()) return std::make_shared<image::HostDecoder>();
  auto* const make =
      comm::plugin_function<decltype(lockstep_make_jpeg_decoder)>(kNvjpegPlugin, "lockstep_make_jpeg_decoder");
  return std::shared_ptr<image::JpegDecoder>(make(device.index()));
}

}  // namespace lockstep::train
