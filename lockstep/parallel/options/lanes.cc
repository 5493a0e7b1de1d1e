#include "lockstep/parallel/options/lanes.h"

#include <algorithm>
#include <string>
#include <vector>

#include "lockstep/base/board.h"
#include "lockstep/base/error.h"
#include "lockstep/base/lanes_fit.h"
#include "lockstep/config/values.h"

namespace lockstep::parallel {

void check_lanes(int nproc, int lanes) {
  if (lanes == 0 || lanes_fit(lanes, nproc)) return;
  std::vector<std::string> fitting;
  for (int n = 1; n <= std::min(lanes, kMaxLocalRanks); ++n) {
    if (lanes_fit(lanes, n)) fitting.push_back(std::to_string(n));
  }
  throw ConfigError("--nproc ", nproc, " --lanes ", lanes, ": each rank needs a power of two of lanes; with ", lanes,
                    lanes == 1 ? " lane" : " lanes", " use --nproc ", config::either(fitting), ", or with ", nproc,
                    " ranks --lanes ", nproc, ", ", 2 * nproc, " or ", 4 * nproc);
}

int fitting_nproc(int cores, int lanes, int nodes) {
  int nproc = std::clamp(cores, 1, kMaxLocalRanks);
  while (lanes != 0 && nproc > 0 && !lanes_fit(lanes, nproc * nodes)) --nproc;
  return nproc;
}

int default_threads(int cores, int lanes) { return std::max(1, cores / std::max(1, lanes)); }
int threads_or_default(int wanted, int cores, int lanes) { return wanted > 0 ? wanted : default_threads(cores, lanes); }

}  // namespace lockstep::parallel
