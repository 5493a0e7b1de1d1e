#include "lockstep/datasets/grey_images.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/xxh3.h"

namespace lockstep::datasets {
namespace {

// float(byte) / 255 for every byte. The table holds the bits of the division.
std::array<float, 256> byte_shares() {
  std::array<float, 256> shares{};
  for (size_t byte = 0; byte < shares.size(); ++byte) shares[byte] = static_cast<float>(byte) / 255.f;
  return shares;
}

void write_pixels(std::span<const uint8_t> from, float* to) {
  static const std::array<float, 256> kShares = byte_shares();
  for (const uint8_t byte : from) *to++ = kShares[byte];
}

void write_pixels(std::span<const float> from, float* to) { std::copy(from.begin(), from.end(), to); }

class GreyImageSet final : public data::Dataset {
 public:
  explicit GreyImageSet(GreyImages images) : images_(std::move(images)) {}

  int64_t size() const override { return static_cast<int64_t>(images_.labels.size()); }

  std::vector<data::Field> fields() const override {
    return {{.name = "data", .dtype = at::kFloat, .shape = {1, images_.rows, images_.columns}},
            {.name = "target", .dtype = at::kLong, .shape = {}}};
  }

  void read(int64_t index, const Draw& /*draw*/, std::span<const at::Tensor> rows,
            data::ReadStats& /*stats*/) const override {
    data::check_index(index, size());
    const auto at = static_cast<size_t>(index), pixels_each = static_cast<size_t>(images_.rows * images_.columns);
    auto* to = rows[0].mutable_data_ptr<float>();
    std::visit([&](const auto& all) { write_pixels(std::span(all).subspan(at * pixels_each, pixels_each), to); },
               images_.pixels);
    *rows[1].mutable_data_ptr<int64_t>() = images_.labels[at];
  }

  std::string fingerprint() const override {
    Xxh3 bytes;
    const std::string sizes = cat(images_.rows, "x", images_.columns, " kind ", images_.pixels.index(), '\n');
    bytes.add(sizes.data(), sizes.size());
    std::visit([&](const auto& all) { bytes.add(std::span(all)); }, images_.pixels);
    bytes.add(std::span(images_.labels));
    return cat("images ", hex(bytes.value()));
  }

  int64_t classes() const override { return images_.classes; }
  int64_t class_of(int64_t index) const override {
    data::check_index(index, size());
    return images_.labels[static_cast<size_t>(index)];
  }
  std::string description() const override {
    return cat(images_.name, ", ", size(), " images of ", images_.rows, "×", images_.columns);
  }

 private:
  GreyImages images_;
};

}  // namespace

std::shared_ptr<const data::Dataset> make_dataset(GreyImages images) {
  const size_t pixels = std::visit([](const auto& all) { return all.size(); }, images.pixels);
  const auto pixels_each = static_cast<size_t>(images.rows * images.columns);
  const size_t count = pixels_each == 0 ? 0 : pixels / pixels_each;
  const auto& labels = images.labels;
  if (labels.size() != count || count * pixels_each != pixels) {
    throw DataError(images.name, ": ", count, " images, but ", labels.size(),
                    " labels; do the two belong together? Get both again");
  }
  if (count == 0) throw DataError(images.name, ": holds no images (count 0); get it again");
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] >= images.classes) {
      throw DataError(images.name, ": label ", i, " is ", +labels[i], ", but classes go from 0 to ", images.classes - 1,
                      "; the file is damaged or not what it seems");
    }
  }
  return std::make_shared<GreyImageSet>(std::move(images));
}

}  // namespace lockstep::datasets
