#include "lockstep/doctor/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

namespace lockstep::doctor {
namespace {

using testing::HasSubstr;
using testing::Not;

rendezvous::PlaceReport explain(const std::map<std::string, std::string>& environment) {
  return rendezvous::explain_place(
      [&](const char* name) -> std::optional<std::string> {
        const auto found = environment.find(name);
        return found == environment.end() ? std::nullopt : std::optional(found->second);
      },
      /*parent=*/1);
}

const std::map<std::string, std::string> kTorchrunInSrun = {{"RANK", "1"},
                                                            {"WORLD_SIZE", "2"},
                                                            {"LOCAL_RANK", "1"},
                                                            {"LOCAL_WORLD_SIZE", "2"},
                                                            {"MASTER_ADDR", "head"},
                                                            {"MASTER_PORT", "77"},
                                                            {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                                            {"SLURM_STEP_ID", "0"},
                                                            {"SLURM_PROCID", "0"},
                                                            {"SLURM_NTASKS", "1"},
                                                            {"SLURM_LOCALID", "0"}};

TEST(Environment, SaysThePlaceItsVariablesAndTheOtherLayers) {
  const std::string text = to_text(explain(kTorchrunInSrun));
  EXPECT_THAT(text, HasSubstr("launcher    torchrun\n"));
  EXPECT_THAT(text, HasSubstr("place       rank 1 of 2, local rank 1 of 2\n"));
  EXPECT_THAT(text, HasSubstr("rendezvous  tcp://head:77, served by the launcher\n"));
  EXPECT_THAT(text, HasSubstr("from        RANK=1 WORLD_SIZE=2"));
  EXPECT_THAT(text, HasSubstr("also seen   srun: rank 0 of 1, local rank 0 of 1 (SLURM_STEP_ID=0 SLURM_PROCID=0"));
}

TEST(Environment, OfNobody) { EXPECT_EQ(to_text(explain({})), "launcher    none: rank 0 of a world of one\n"); }

TEST(Environment, OfOneThatContradictsItself) {
  const auto report = explain({{"RANK", "2"}, {"WORLD_SIZE", "2"}});
  EXPECT_THAT(to_text(report), HasSubstr("error       environment variables RANK=2 and WORLD_SIZE=2"));
  EXPECT_THAT(to_text(report), Not(HasSubstr("place ")));
  const auto json = nlohmann::json::parse(to_json(report));
  EXPECT_TRUE(json["rank"].is_null());
  EXPECT_THAT(json["error"].get<std::string>(), HasSubstr("contradict each other"));
}

TEST(Environment, AsJson) {
  const auto json = nlohmann::json::parse(to_json(explain(kTorchrunInSrun)));
  EXPECT_EQ(json["launcher"], "torchrun");
  EXPECT_EQ(json["rank"], 1);
  EXPECT_EQ(json["world_size"], 2);
  EXPECT_TRUE(json["node"].is_null());
  EXPECT_EQ(json["variables"]["RANK"], "1");
  ASSERT_EQ(json["others"].size(), 1);
  EXPECT_EQ(json["others"][0]["launcher"], "srun");
  EXPECT_EQ(json["others"][0]["complete"], true);
}

}  // namespace
}  // namespace lockstep::doctor
