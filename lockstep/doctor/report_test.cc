#include "lockstep/doctor/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace lockstep::doctor {
namespace {

using testing::HasSubstr;
using testing::Not;

Diagnosis diagnosis() {
  Diagnosis d;
  d.machine.cpu = {.amx_bf16 = true, .model = "A CPU"};
  d.machine.cores = 2;
  d.machine.limits.cpus = 1.5;
  d.machine.topology = "1 package";
  d.machine.memory = uint64_t{4} << 30;
  d.machine.available = uint64_t{1} << 30;
  d.machine.interfaces = {{.name = "eth0", .addresses = {"10.0.0.2", "fe80::1"}}};
  d.software.libtorch = Version{2, 11, 0};
  d.software.built_against = Version{2, 10, 0};
  d.precision = {.fp32 = 90.6, .bf16 = 460, .fp16 = 310, .chosen = "O1 bfloat16", .why = "5.1 times fp32 here"};
  d.transports = {{.name = "shm", .microseconds = 1.66, .gbps = 38},
                  {.name = "gloo", .health = Health::kNotAvailable, .why = "not built"}};
  return d;
}

TEST(Report, TextNamesWhatThereIs) {
  const std::string text = to_text(diagnosis());
  for (const char* part :
       {"CPU         A CPU; AMX-BF16\n", "cores       2 for this process (cgroup: 1.5); 1 package\n",
        "memory      1 GiB available of 4 GiB\n", "network     eth0 10.0.0.2 fe80::1\n", "GPUs        none\n",
        "misfit      libtorch 2.11.0: Lockstep was built against 2.10.0",
        "precision   fp32 91, bf16 460, fp16 310 GFLOP/s a thread; --amp auto takes O1 bfloat16: 5.1 times fp32 here\n",
        "shm         ok: 1 KiB in 1.7 us, 1 MiB at 38.00 GB/s\n", "gloo        not available: not built\n"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST(Report, GpusThatAProcessMayNotUseAreCounted) {
  auto d = diagnosis();
  d.software.gpus = {{.name = "NVIDIA H200", .bytes = uint64_t{140} << 30}, {.name = "NVIDIA H200", .bytes = 2}};
  d.software.usable_gpus = 2;
  EXPECT_THAT(to_text(d), HasSubstr("GPUs        NVIDIA H200, 140 GiB; NVIDIA H200, 2 bytes\n"));
  d.software.usable_gpus = 1;
  EXPECT_THAT(to_text(d), HasSubstr("NVIDIA H200, 2 bytes; 1 for this process\n"));
  EXPECT_EQ(nlohmann::json::parse(to_json(d)).at("software").at("usable_gpus"), 1);
}

TEST(Report, JsonHoldsTheSame) {
  const auto json = nlohmann::json::parse(to_json(diagnosis()));
  EXPECT_EQ(json.at("machine").at("cores"), 2);
  EXPECT_EQ(json.at("machine").at("cgroup_memory"), nullptr);
  EXPECT_EQ(json.at("software").at("libtorch"), "2.11.0");
  EXPECT_EQ(json.at("software").at("gpus"), nlohmann::json::array());
  EXPECT_EQ(json.at("software").at("usable_gpus"), 0);
  EXPECT_EQ(json.at("precision").at("auto"), "O1 bfloat16");
  EXPECT_EQ(json.at("precision").at("bf16_gflops"), 460);
  EXPECT_EQ(json.at("misfits").size(), 1u);
  EXPECT_EQ(json.at("transports")[0].at("status"), "ok");
  EXPECT_EQ(json.at("transports")[1],
            nlohmann::json({{"name", "gloo"}, {"status", "not available"}, {"why", "not built"}}));
}

TEST(Report, WithoutAMeasurementItSaysWhy) {
  auto d = diagnosis();
  d.precision = {.why = "no memory"};
  EXPECT_THAT(to_text(d), HasSubstr("precision   not measured: no memory\n"));
  EXPECT_EQ(nlohmann::json::parse(to_json(d)).at("precision"), nullptr);
}

TEST(Report, NamesWithOddBytesStayJson) {
  auto d = diagnosis();
  d.machine.interfaces[0].name = "eth\xff";
  EXPECT_TRUE(nlohmann::json::accept(to_json(d)));
}

TEST(Report, OnlyAFailureIsUnhealthy) {
  auto d = diagnosis();
  EXPECT_TRUE(d.healthy());
  d.transports[1].health = Health::kFailed;
  EXPECT_FALSE(d.healthy());
  EXPECT_THAT(to_text(d), HasSubstr("gloo        failed: not built\n"));
}

}  // namespace
}  // namespace lockstep::doctor
