#include "lockstep/datasets/digits/mnist_json.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/shown.h"
#include "lockstep/datasets/files/file_bytes.h"
#include "lockstep/datasets/files/gzip.h"

namespace lockstep::datasets {
namespace {

constexpr uint64_t kMostText = 1ULL << 30;  // the course's file unpacks to about 0.3 GiB
constexpr size_t kPixels = 784;
constexpr size_t kMostImages = 200'000;  // of a part; all of MNIST has 70,000
constexpr std::array<const char*, 3> kParts = {"train", "validation", "test"};

// Follows the nesting of the arrays: depth 1 is the file, 2 a part, 3 its images or its labels, 4 one image. The
// functions are the events that nlohmann::json::sax_parse reports; each returns whether to continue.
class Reader {
 public:
  using Json = nlohmann::json;
  explicit Reader(const std::string& path) : path_(path) {}

  bool start_array(size_t) {
    if (depth_ == 4 || (depth_ == 3 && list_ == 1)) return refuse("an array where a number is expected");
    if (depth_ == 1 && part_ == kParts.size()) return refuse("a fourth part; there are three: train, validation, test");
    if (depth_ == 2 && list_ == 2) return refuse("a third list in a part; there are two: images, labels");
    if (depth_ == 3 && list_ == 0 && parts_[part_].pixels.size() == kMostImages * kPixels) {
      return refuse(cat("more than ", kMostImages, " images in a part"));
    }
    ++depth_;
    if (depth_ == 2) list_ = 0;
    if (depth_ == 4) pixel_ = 0;
    return true;
  }

  bool end_array() {
    if (depth_ == 4 && pixel_ != kPixels) return refuse(cat(pixel_, " pixels in an image of 28×28, which has 784"));
    if (depth_ == 2 && list_ != 2) return refuse(cat(list_, " lists in a part; there are two: images, labels"));
    if (depth_ == 1 && part_ != kParts.size()) {
      return refuse(cat(part_, " parts; there are three: train, validation, test"));
    }
    --depth_;
    if (depth_ == 2) ++list_;
    if (depth_ == 1 && !end_part()) return false;
    return true;
  }

  bool number_float(double value, const std::string&) {
    if (depth_ == 4) return pixel(value);
    if (depth_ == 3 && list_ == 1) return label(value);
    return refuse(cat("the number ", value, " where an array is expected"));
  }
  bool number_integer(int64_t value) { return number_float(static_cast<double>(value), {}); }
  bool number_unsigned(uint64_t value) { return number_float(static_cast<double>(value), {}); }

  bool null() { return refuse("null where a number or an array is expected"); }
  bool boolean(bool) { return refuse("true or false where a number or an array is expected"); }
  bool string(std::string&) { return refuse("text where a number or an array is expected"); }
  bool binary(Json::binary_t&) { return refuse("binary data"); }
  bool start_object(size_t) { return refuse("an object ({…}) where a number or an array is expected"); }
  bool key(std::string&) { return refuse("a key"); }
  bool end_object() { return refuse("an object's end"); }

  bool parse_error(size_t byte, const std::string& token, const nlohmann::detail::exception&) {
    throw DataError(shown(path_), ": byte ", byte, " of the JSON text", where(), ": no JSON goes on like this: '",
                    shown(token.substr(token.size() < 40 ? 0 : token.size() - 40)),
                    "'; the file is damaged: get it again");
  }

  MnistJson take() {
    return {.train = std::move(parts_[0]), .validation = std::move(parts_[1]), .test = std::move(parts_[2])};
  }

 private:
  // The reader's position in the file, in the words of messages.
  std::string where() const {
    if (depth_ < 2 || part_ >= kParts.size()) return "";
    const std::string part = cat(": in ", kParts[part_]);
    if (depth_ == 4) return cat(part, ", image ", parts_[part_].pixels.size() / kPixels, ", pixel ", pixel_);
    if (depth_ == 3 && list_ == 1) return cat(part, ", label ", parts_[part_].labels.size());
    return part;
  }

  bool refuse(const std::string& what) const {
    throw DataError(shown(path_), where(), ": ", what,
                    "; expected is [train, validation, test], each [images, labels]");
  }

  bool pixel(double value) {
    if (!(value >= 0 && value <= 1)) return refuse(cat("a pixel of ", value, ", but pixels go from 0 to 1"));
    if (pixel_ == kPixels) return refuse("more than the 784 pixels of an image of 28×28");
    parts_[part_].pixels.push_back(static_cast<float>(value));
    ++pixel_;
    return true;
  }

  bool label(double value) {
    if (!(value >= 0 && value <= 9 && value == std::floor(value))) {
      return refuse(cat("a label of ", value, ", but digits go from 0 to 9"));
    }
    parts_[part_].labels.push_back(static_cast<uint8_t>(value));
    return true;
  }

  bool end_part() {
    MnistJsonPart& part = parts_[part_];
    if (part.pixels.size() / kPixels != part.labels.size()) {
      throw DataError(shown(path_), ": in ", kParts[part_], ": ", part.pixels.size() / kPixels, " images, but ",
                      part.labels.size(), " labels; get the file again");
    }
    part.pixels.shrink_to_fit();
    ++part_;
    return true;
  }

  const std::string& path_;
  std::array<MnistJsonPart, 3> parts_;
  int depth_ = 0;
  size_t part_ = 0;
  int list_ = 0;
  size_t pixel_ = 0;
};

void check_begin(std::span<const uint8_t> text, const std::string& path) {
  const auto first = std::find_if(text.begin(), text.end(), [](uint8_t byte) { return !std::isspace(byte); });
  if (first != text.end() && *first == '[') return;
  throw DataError(shown(path), ": byte ", first - text.begin(),
                  ": not MNIST as JSON: it does not begin with '['; idx files are opened by the ",
                  "name of their directory");
}

// The beginning is looked at before all of it is unpacked.
Bytes read_text(const std::string& path) {
  constexpr size_t kHead = 1024;
  const DataFile file(path);
  Bytes bytes = file.all(kMostText);
  if (is_gzip(bytes.span())) {
    check_begin(gunzip_head(bytes.span(), kHead, path).span(), path);
    return gunzip(bytes.span(), gunzip_size_hint(bytes.span()), kMostText, path);
  }
  check_begin(bytes.span(), path);
  return bytes;
}

}  // namespace

MnistJson read_mnist_json(const std::string& path) {
  Bytes text = read_text(path);
  Reader reader(path);
  const auto* begin = reinterpret_cast<const char*>(text.data());
  nlohmann::json::sax_parse(begin, begin + text.size(), &reader);
  return reader.take();
}

}  // namespace lockstep::datasets
