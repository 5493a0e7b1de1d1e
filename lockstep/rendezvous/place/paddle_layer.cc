// The variables of paddle.distributed.launch.
#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/split_list.h"
#include "lockstep/rendezvous/place/address.h"
#include "lockstep/rendezvous/place/layer.h"

namespace lockstep::rendezvous {
namespace {

constexpr Names kPaddle{"paddle", "PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM", "PADDLE_LOCAL_RANK", "PADDLE_LOCAL_SIZE"};

std::string host_of(const std::string& endpoint) { return endpoint.substr(0, endpoint.rfind(':')); }

[[noreturn]] void refuse(const std::string& one, const std::string& other, const std::string& why) {
  throw ConfigError("environment variables ", one, " and ", other, " (paddle) contradict each other: ", why);
}

void check_endpoints(Variables& variables, const Place& place, const std::vector<std::string>& endpoints) {
  const std::string list = cat("PADDLE_TRAINER_ENDPOINTS=", variables.text("PADDLE_TRAINER_ENDPOINTS"));
  if (std::ssize(endpoints) != place.size) {
    refuse(list, cat("PADDLE_TRAINERS_NUM=", place.size),
           cat("these are ", endpoints.size(), " endpoints for ", place.size, " ranks"));
  }
  const std::string own = variables.text("PADDLE_CURRENT_ENDPOINT");
  const std::string& listed = endpoints[static_cast<size_t>(place.rank)];
  if (!own.empty() && own != listed) {
    refuse(cat("PADDLE_CURRENT_ENDPOINT=", own), list, cat("rank ", place.rank, " is at ", listed, " there"));
  }
}

// Older launchers give no local rank; the endpoints of a node have one host.
void complete_by_endpoints(Place& place, const std::vector<std::string>& endpoints) {
  const std::string host = host_of(endpoints[static_cast<size_t>(place.rank)]);
  const auto is_own = [&](const std::string& each) { return host_of(each) == host; };
  place.local_size = static_cast<int>(std::count_if(endpoints.begin(), endpoints.end(), is_own));
  place.local_rank = static_cast<int>(std::count_if(endpoints.begin(), endpoints.begin() + place.rank, is_own));
}

}  // namespace

void read_paddle(Variables& variables, Layer& layer) {
  auto place = read_numbers(variables, kPaddle, layer);
  if (!place) return;
  const auto endpoints = split_list(variables.text("PADDLE_TRAINER_ENDPOINTS"));
  if (place->rank >= place->size) check_numbers(*place, kPaddle);
  if (!endpoints.empty()) {
    check_endpoints(variables, *place, endpoints);
    if (!variables.has("PADDLE_LOCAL_SIZE")) complete_by_endpoints(*place, endpoints);
  }
  check_numbers(*place, kPaddle);
  std::string at = variables.text("PADDLE_MASTER");
  if (at.empty() && !endpoints.empty()) at = endpoints[0];
  place->rendezvous = at.empty() ? master_address(variables) : "tcp://" + at;
  place->job = cat("paddle ", at);
  if (const std::string list = variables.text("FLAGS_selected_gpus"); !list.empty()) {
    const auto gpu = parse_number(std::string_view(list).substr(0, list.find(',')));
    if (!gpu || *gpu < 0 || *gpu > kMostRanks) {
      throw ConfigError("environment variable FLAGS_selected_gpus=", list, ": expected numbers of GPUs, as 0 or 0,1");
    }
    place->gpu = static_cast<int>(*gpu);
  }
  layer.place = std::move(place);
}

}  // namespace lockstep::rendezvous
