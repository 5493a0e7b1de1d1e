#include "bench_source.h"

#include "lockstep/base/error.h"
#include "lockstep/datasets/files/kind.h"
#include "lockstep/datasets/mnist.h"
#include "lockstep/datasets/open_images.h"
#include "lockstep/datasets/open_pairs.h"
#include "lockstep/recipes/options/recipe_options.h"

namespace lockstep::worker {
namespace {

at::ScalarType dtype_of(apps::BenchType type) {
  switch (type) {
    case apps::BenchType::kBf16:
      return at::kBFloat16;
    case apps::BenchType::kFp16:
      return at::kHalf;
    case apps::BenchType::kFp32:
      break;
  }
  return at::kFloat;
}

// The side that the recipe takes where nobody says one.
template <typename RecipeOptions>
int side(const apps::BenchDataOptions& options) {
  RecipeOptions recipe;
  recipe.size = options.size;
  return recipe.side(options.path);
}

std::shared_ptr<const data::Dataset> digits(const apps::BenchDataOptions& options) {
  const datasets::ImageOptions& images = options.images;
  if (options.size || options.dtype || images.augment || images.exif || images.fast_decode) {
    throw ConfigError(options.path, ": this is MNIST, whose digits are 28 x 28 in fp32 and are not augmented; leave ",
                      "--size, --dtype, --augment, --exif and --fast-decode out");
  }
  return datasets::open_mnist(options.path).train;
}

}  // namespace

std::shared_ptr<const data::Dataset> open_bench_source(const apps::BenchDataOptions& options, int threads,
                                                       bool as_bytes, bool encoded) {
  const datasets::Kind kind = datasets::kind_of(options.path);
  if (kind == datasets::Kind::kMnist) return digits(options);
  const bool pairs = kind == datasets::Kind::kPairs;
  const datasets::OpenOptions open{
      .path = options.path,
      .images = options.images,
      .size = pairs ? side<recipes::UNetOptions>(options) : side<recipes::ImagenetOptions>(options),
      .channels_last = options.channels_last,
      .dtype = dtype_of(options.dtype.value_or(apps::BenchType::kFp32)),
      .as_bytes = as_bytes,
      .encoded = encoded,
      .threads = threads};
  return (pairs ? datasets::open_pairs(open) : datasets::open_images(open)).train;
}

}  // namespace lockstep::worker
