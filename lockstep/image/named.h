// Errors that name the image on which they came up.
#pragma once

#include <new>
#include <string>
#include <string_view>

#include "lockstep/base/error.h"

namespace lockstep::image {

// Returns work(). Its errors begin with `name` afterwards, and memory that is short is an IoError.
template <typename Work>
auto named(const std::string& name, const Work& work) -> decltype(work()) {
  const auto line = [&](const Error& error) {
    return std::string_view(error.what()).starts_with(name) ? error.what() : cat(name, ": ", error.what());
  };
  try {
    return work();
  } catch (const std::bad_alloc&) {
    throw IoError(name, ": no memory to read it; use fewer --workers");
  } catch (const IoError& error) {
    throw IoError(line(error));
  } catch (const DataError& error) {
    throw DataError(line(error));
  } catch (const BugError& error) {
    throw BugError(line(error));
  }
}

}  // namespace lockstep::image
