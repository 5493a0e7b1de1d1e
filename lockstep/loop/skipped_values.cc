#include "lockstep/loop/skipped_values.h"

#include "lockstep/base/error.h"
#include "lockstep/base/shown.h"

namespace lockstep::loop {

checkpoint::List skipped_to_list(const std::vector<data::BadSample>& samples) {
  checkpoint::List list;
  for (const data::BadSample& each : samples) {
    list.push_back(checkpoint::List{shown(each.name), shown(each.why), each.index});
  }
  return list;
}

std::vector<data::BadSample> skipped_from_list(const checkpoint::ValueView& saved) {
  std::vector<data::BadSample> samples;
  for (const auto& item : saved.items()) {
    const auto parts = item.items();
    if (parts.size() != 3) {
      throw DataError(item.where(), ": a sample that was passed over has a name, a reason and an index");
    }
    samples.push_back({parts[0].text(), parts[1].text(), parts[2].integer()});
  }
  return samples;
}

}  // namespace lockstep::loop
