#include "lockstep/parallel/comm_log.h"

namespace lockstep::parallel {

CommLog comm_log_of(const Reducer& reducer) {
  CommLog log;
  for (size_t i = 0; i < reducer.buckets(); ++i) {
    const BucketLog bucket = reducer.log(i);
    log.bytes += bucket.bytes;
    log.in_flight += bucket.in_flight;
    log.waited += bucket.waited;
  }
  return log;
}

void add_to_board(const CommLog& log, BoardRank& rank) {
  rank.reduced_bytes.fetch_add(static_cast<uint64_t>(log.bytes), std::memory_order_relaxed);
  rank.reduce_ns.fetch_add(static_cast<int64_t>(log.in_flight * 1e9), std::memory_order_relaxed);
  rank.reduce_wait_ns.fetch_add(static_cast<int64_t>(log.waited * 1e9), std::memory_order_relaxed);
}

}  // namespace lockstep::parallel
