#include "lockstep/train/non_finite.h"

#include "lockstep/base/error.h"
#include "lockstep/comm/text_exchange.h"

namespace lockstep::train {
namespace {

// A scale of 65536 has gone down to 1 after 16 overflows; from there on it is not the scale's fault.
constexpr int kOverflowsToWarn = 17;

}  // namespace

void NonFinite::warn(double loss) {
  last_ = parts_.state.step + 1;
  if (count_++ > 0 && parts_.options.on_nan != OnNan::kStop) return;
  first_ = last_;
  const std::string line =
      cat("step ", last_, ": the gradient of ", form_.first_not_finite(), " is not finite (loss ", loss, ')');
  if (parts_.options.on_nan == OnNan::kStop) {
    throw DataError(line, "; ended by --on-nan stop; lower --lr, or --clip the gradient");
  }
  if (leads()) {
    log_.warning(line, "; lower --lr, --clip the gradient, or end such runs by --on-nan stop (further such steps are ",
                 "counted and told at the end)");
  }
}

void NonFinite::tell_count() const {
  if (!leads() || count_ < 2) return;
  log_.warning("the gradient was not finite in ", count_, " steps, from step ", first_, " to step ", last_);
}

std::string NonFinite::overflow(double loss, double scale) const {
  const std::string parameter = form_.first_not_finite();
  const int64_t step = parts_.state.step + 1;
  parts_.world->self().overflow.set(cat("step ", step, ": ", parameter));
  const int in_a_row = parts_.mixed->scaler().skipped_in_a_row();
  if (!leads() || in_a_row != kOverflowsToWarn) return parameter;
  const char* advice = !parts_.mixed->scaler().options().dynamic ? "lower --loss-scale, or leave it dynamic"
                       : parts_.mixed->policy().cast_model       ? "lower --lr, or use --dtype bf16 or --amp O1"
                                                                 : "lower --lr, or use --dtype bf16";
  log_.warning(cat("step ", step, ": ", in_a_row, " steps in a row were skipped, the gradient of ", parameter,
                   " is not finite at a loss scale of ", scale, " (loss ", loss, "); ", advice));
  return parameter;
}

void NonFinite::tell_anomaly(const std::string& found) const {
  const auto founds = comm::gather_texts(parts_.world->communicator(), found);
  for (size_t rank = 0; rank < founds.size(); ++rank) {
    if (!founds[rank].empty()) fail_at(parts_, cat("rank ", rank), founds[rank]);
  }
}

void fail_at(const Parts& parts, const std::string& where, const std::string& found) {
  throw DataError("step ", parts.state.step + 1, ", ", where, ": the first value that is not finite came from ", found,
                  "; look at what goes in there, lower --lr, or --clip the gradient");
}

}  // namespace lockstep::train
