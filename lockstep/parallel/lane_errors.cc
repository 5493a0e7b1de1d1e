#include "lockstep/parallel/lane_errors.h"

#include <c10/util/Exception.h>

#include <stdexcept>
#include <typeinfo>

#include "lockstep/base/error.h"
#include "lockstep/base/remote_error.h"

namespace lockstep::parallel {
namespace {

// Whether a copy of the exit code and the text is the same error. Those of the network name places of their own.
bool is_plain(const Error& error) {
  const std::type_info& type = typeid(error);
  return type == typeid(ConfigError) || type == typeid(DataError) || type == typeid(BugError) ||
         type == typeid(IoError);
}

bool names_a_step(const std::string& text) { return text.starts_with("step "); }

constexpr const char* kOneSample =
    ", whose batch has one sample; leave an epoch's last, smaller batch out by drop_last (train --drop-last), or use "
    "another batch size";
constexpr const char* kOtherClasses =
    ", whose target has other classes than the network outputs; the data set's classes() is their number, which a "
    "TensorDataset counts unless its option classes says it";

// Whether an error's text is libtorch's for a class beyond the outputs, or for probabilities of more or fewer classes.
bool has_other_classes(std::string_view text) {
  return text.find("multi-target not supported") != text.npos ||
         (text.find("Target ") != text.npos && text.find(" is out of bounds") != text.npos);
}

// What to do about an error, behind its place; empty where that is not known.
std::string advice_for(std::string_view text, int64_t samples) {
  if (samples == 1 && lacks_samples(text)) return kOneSample;
  return has_other_classes(text) ? kOtherClasses : "";
}

}  // namespace

bool lacks_samples(std::string_view text) {
  return text.find("more than 1 value per channel") != text.npos ||
         text.find("more than one value a channel") != text.npos;
}

void rethrow_from_lane(int64_t step, int lane, int64_t samples) {
  rethrow_from(cat("step ", step, ", lane ", lane), samples);
}

void rethrow_from(const std::string& where, int64_t samples) {
  try {
    throw;
  } catch (c10::Error& error) {
    error.add_context(where + advice_for(error.msg(), samples));
    throw;
  } catch (const Error& error) {
    if (!is_plain(error) || names_a_step(error.what())) throw;
    throw_error(error.exit_code(), cat(where, advice_for(error.what(), samples), ": ", error.what()));
  } catch (const std::runtime_error& error) {
    if (typeid(error) != typeid(std::runtime_error)) throw;
    throw std::runtime_error(cat(where, ": ", error.what()));
  }
}

}  // namespace lockstep::parallel
