#include "lockstep/data/mix.h"

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/data/beta.h"

namespace lockstep::data {
namespace {

// Slots of the lane's random numbers.
enum Slot : uint32_t { kCoin, kMixUp, kCutMix };

// A tensor whose rows lie one after the other, each without gaps.
char* bytes_of_rows(const at::Tensor& rows) {
  if (!rows.is_contiguous() && !rows.is_contiguous(at::MemoryFormat::ChannelsLast)) {
    throw BugError("a batch is mixed whose rows have gaps");
  }
  return static_cast<char*>(rows.mutable_data_ptr());
}

// Calls act(row, partner) for the bytes of every row, in an order in which each partner is still as it was. The last
// row is row 0's partner, and is copied before it changes.
template <typename Act>
void with_partners(char* rows, int64_t count, size_t row_bytes, const Act& act) {
  if (count == 0) return;
  const auto row = [&](int64_t i) { return rows + static_cast<size_t>(i) * row_bytes; };
  const std::vector<char> last(row(count - 1), row(count - 1) + row_bytes);
  for (int64_t i = count - 1; i > 0; --i) act(row(i), row(i - 1));
  act(row(0), last.data());
}

// row = own · row + other · partner, each product and the sum rounded once, as libtorch's operators do.
template <typename T>
void blend(T* row, const T* partner, size_t values, double lambda) {
  using Wide = at::opmath_type<T>;
  const auto own = static_cast<Wide>(lambda), other = static_cast<Wide>(1 - lambda);
  for (size_t i = 0; i < values; ++i) {
    row[i] = static_cast<T>(own * static_cast<Wide>(row[i]) + other * static_cast<Wide>(partner[i]));
  }
}

void mix_up(const at::Tensor& images, double lambda) {
  const auto values = static_cast<size_t>(images.numel() / std::max<int64_t>(1, images.size(0)));
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, images.scalar_type(), "mix_up", [&] {
    with_partners(bytes_of_rows(images), images.size(0), values * sizeof(scalar_t), [&](char* row, const char* other) {
      blend(reinterpret_cast<scalar_t*>(row), reinterpret_cast<const scalar_t*>(other), values, lambda);
    });
  });
}

struct Box {
  int64_t left = 0, top = 0, right = 0, bottom = 0;
};

// torchvision's: half its sides are cut to whole pixels, and it is cut at the image's edges.
Box draw_box(int64_t width, int64_t height, double lambda, RandomStream& random) {
  const int64_t x = random.below(static_cast<uint32_t>(width)), y = random.below(static_cast<uint32_t>(height));
  const double half = 0.5 * std::sqrt(1 - lambda);
  const auto half_width = static_cast<int64_t>(half * static_cast<double>(width));
  const auto half_height = static_cast<int64_t>(half * static_cast<double>(height));
  return {.left = std::max<int64_t>(0, x - half_width),
          .top = std::max<int64_t>(0, y - half_height),
          .right = std::min(width, x + half_width),
          .bottom = std::min(height, y + half_height)};
}

void paste(const at::Tensor& images, const Box& box) {
  const at::Tensor first = images.select(0, 0);
  const int64_t value = images.element_size(), channels = first.size(0);
  // Where channels lie innermost, a row of the box has them all.
  const bool innermost = first.stride(0) == 1 && channels > 1;
  const int64_t planes = innermost ? 1 : channels;
  const auto run = static_cast<size_t>((box.right - box.left) * first.stride(2) * value);
  with_partners(bytes_of_rows(images), images.size(0), static_cast<size_t>(first.numel() * value),
                [&](char* row, const char* partner) {
                  for (int64_t plane = 0; plane < planes; ++plane) {
                    for (int64_t y = box.top; y < box.bottom; ++y) {
                      const auto at = static_cast<size_t>(
                          (plane * first.stride(0) + y * first.stride(1) + box.left * first.stride(2)) * value);
                      std::memcpy(row + at, partner + at, run);
                    }
                  }
                });
}

// Returns the share that the box leaves.
double cut_mix(const at::Tensor& images, double lambda, RandomStream& random) {
  const int64_t height = images.size(2), width = images.size(3);
  const Box box = draw_box(width, height, lambda, random);
  if (images.size(0) > 0) paste(images, box);
  const auto area = static_cast<double>((box.right - box.left) * (box.bottom - box.top));
  return 1 - area / static_cast<double>(width * height);
}

// What torchvision makes of one-hot rows: λ · row i + (1 - λ) · row i-1.
at::Tensor mixed_classes(const at::Tensor& target, int64_t classes, double lambda) {
  const int64_t rows = target.size(0);
  at::Tensor mixed = at::zeros({rows, classes}, at::TensorOptions(at::kFloat));
  const auto* const class_of = target.const_data_ptr<int64_t>();
  auto* const shares = mixed.mutable_data_ptr<float>();
  for (int64_t row = 0; row < rows; ++row) {
    if (class_of[row] < 0 || class_of[row] >= classes) {
      throw DataError("a sample that is mixed is of class ", class_of[row], ", and the data set has ", classes,
                      " classes");
    }
  }
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t partner = row == 0 ? rows - 1 : row - 1;
    shares[row * classes + class_of[partner]] += static_cast<float>(1 - lambda);
    shares[row * classes + class_of[row]] += static_cast<float>(lambda);
  }
  return mixed;
}

class Mix final : public BatchTransform {
 public:
  explicit Mix(const MixOptions& options) : options_(options) {}

  void check(const Dataset& dataset) const override {
    const std::vector<Field> fields = dataset.fields();
    const auto is_target = [](const Field& field) {
      return field.name == "target" && field.dtype == at::kLong && field.shape.empty();
    };
    if (std::none_of(fields.begin(), fields.end(), is_target)) {
      throw ConfigError(text(), ": mixes images of classes, and these data have no target int64 []");
    }
    if (dataset.classes() < 1) {
      throw ConfigError(text(), ": mixes classes, and these data don't say how many there are (Dataset::classes())");
    }
    check_others(fields);
    const Field& images = fields.front();
    if (images.shape.size() != 3 || std::count(images.shape.begin(), images.shape.end(), 0) > 0) {
      throw ConfigError(text(), ": mixes images, and a sample of these data is none [C, H, W]");
    }
    if (options_.mixup > 0 && !at::isFloatingType(images.dtype)) {
      throw ConfigError(text(), ": MixUp blends images of a floating-point type; normalise them first (", images.dtype,
                        " in these data)");
    }
  }

  void apply(Batch& batch, const Dataset& dataset, const LaneDraw& draw) const override {
    const bool cuts = options_.mixup == 0 || (options_.cutmix > 0 && draw.stream(kCoin).below(2) == 1);
    RandomStream random = draw.stream(cuts ? kCutMix : kMixUp);
    double lambda = beta_variate(cuts ? options_.cutmix : options_.mixup, random);
    if (cuts) {
      lambda = cut_mix(batch.data(), lambda, random);
    } else {
      mix_up(batch.data(), lambda);
    }
    batch.target() = mixed_classes(batch.target().contiguous(), dataset.classes(), lambda);
  }

  bool takes_bytes() const override { return options_.mixup == 0; }

  std::string text() const override {
    const std::string mixup = cat("MixUp ", write_number(options_.mixup));
    const std::string cutmix = cat("CutMix ", write_number(options_.cutmix));
    if (options_.cutmix == 0) return mixup;
    return options_.mixup == 0 ? cutmix : cat(mixup, " or ", cutmix, ", by a coin for each lane's batch");
  }

 private:
  // A mask or another image of the sample would stay as it is beside an image that is mixed.
  void check_others(const std::vector<Field>& fields) const {
    for (const Field& field : fields) {
      if (field.name == "data" || field.name == "target" || field.shape.size() < 2) continue;
      throw ConfigError(text(), ": the field \"", field.name, "\" ", at::IntArrayRef(field.shape),
                        " of these data would not be mixed with their images; mixing is for one image and its class, ",
                        "beside numbers of the sample (such as a weight), which stay");
    }
  }

  MixOptions options_;
};

void check_alpha(const char* name, double alpha) {
  if (alpha == 0 || (alpha >= kLeastAlpha && std::isfinite(alpha))) return;
  throw ConfigError(name, ": the alpha of Beta(alpha, alpha) is ", alpha, "; expected ", kLeastAlpha,
                    " or more, or 0 for none");
}

}  // namespace

std::shared_ptr<const BatchTransform> mix(const MixOptions& options) {
  check_alpha("MixUp", options.mixup);
  check_alpha("CutMix", options.cutmix);
  if (options.mixup == 0 && options.cutmix == 0) throw ConfigError("mixing: neither MixUp nor CutMix has an alpha");
  return std::make_shared<Mix>(options);
}

}  // namespace lockstep::data
