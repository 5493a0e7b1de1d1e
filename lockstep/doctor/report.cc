#include "lockstep/doctor/report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "lockstep/base/text.h"

namespace lockstep::doctor {
namespace {

using Json = nlohmann::ordered_json;

std::string row(const std::string& name, const std::string& text) {
  return name + std::string(std::max<size_t>(12, name.size() + 1) - name.size(), ' ') + text + '\n';
}

std::string or_none(const std::optional<Version>& version) { return version ? version->text() : "none"; }

std::string memory_text(const Machine& m) {
  return cat(human_bytes(m.available), " available of ", human_bytes(m.memory),
             m.limits.memory ? cat(", cgroup limit ", human_bytes(*m.limits.memory)) : "");
}

std::string shared_text(const Machine& m) {
  return cat(m.memfd.empty() ? "memfd works" : cat("no memfd: ", m.memfd), "; /dev/shm ",
             m.dev_shm ? cat("has ", human_bytes(*m.dev_shm)) : "is not there");
}

std::string network_text(const Machine& m) {
  std::string out;
  for (const auto& each : m.interfaces) {
    out += cat(out.empty() ? "" : "; ", each.name);
    for (const auto& address : each.addresses) out += cat(' ', address);
  }
  return out.empty() ? "none" : out;
}

std::string gpu_text(const Software& s) {
  std::string out;
  for (const auto& gpu : s.gpus) out += cat(out.empty() ? "" : "; ", gpu.name, ", ", human_bytes(gpu.bytes));
  if (out.empty()) return "none";
  return s.usable_gpus == static_cast<int>(s.gpus.size()) ? out : cat(out, "; ", s.usable_gpus, " for this process");
}

std::string machine_text(const Machine& m, const Software& s) {
  return row("CPU", cat(m.cpu.model, "; ", feature_names(m.cpu))) +
         row("cores", cat(m.cores, " for this process", m.limits.cpus ? cat(" (cgroup: ", *m.limits.cpus, ")") : "",
                          "; ", m.topology)) +
         row("memory", memory_text(m)) + row("shared", shared_text(m)) + row("network", network_text(m)) +
         row("GPUs", gpu_text(s));
}

std::string software_text(const Software& s) {
  const std::string offers = s.driver_cuda ? cat(" (up to CUDA ", s.driver_cuda->text(), ')') : "";
  return row("libtorch", cat(or_none(s.libtorch), ", for CUDA ", or_none(s.libtorch_cuda), "; ",
                             s.torch_named.empty() ? s.torch_folder : s.torch_named)) +
         row("CUDA", cat("driver ", or_none(s.driver), offers, ", runtime ", or_none(s.runtime), ", toolkit ",
                         or_none(s.toolkit))) +
         row("cuDNN", or_none(s.cudnn)) + row("NCCL", or_none(s.nccl)) + row("MPI", s.mpi.empty() ? "none" : s.mpi);
}

std::string precision_text(const Precision& p) {
  if (p.chosen.empty()) return row("precision", cat("not measured: ", p.why));
  return row("precision", cat("fp32 ", std::lround(p.fp32), ", bf16 ", std::lround(p.bf16), ", fp16 ",
                              std::lround(p.fp16), " GFLOP/s a thread; --amp auto takes ", p.chosen, ": ", p.why));
}

std::string transport_text(const Transport& t) {
  if (t.health != Health::kOk) return row(t.name, cat(to_string(t.health), ": ", t.why));
  std::array<char, 80> text{};
  std::snprintf(text.data(), text.size(), "ok: 1 KiB in %.1f us, 1 MiB at %.2f GB/s", t.microseconds, t.gbps);
  return row(t.name, text.data());
}

template <typename T>
Json number(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}
Json json_of(const std::optional<Version>& version) { return version ? Json(version->text()) : Json(); }
Json json_of(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json json_of(const Machine& m) {
  Json interfaces = Json::array();
  for (const auto& each : m.interfaces) interfaces.push_back({{"name", each.name}, {"addresses", each.addresses}});
  return {{"cpu", m.cpu.model},
          {"amx_bf16", m.cpu.amx_bf16},
          {"avx512_bf16", m.cpu.avx512_bf16},
          {"avx512_fp16", m.cpu.avx512_fp16},
          {"avx512", m.cpu.avx512},
          {"cores", m.cores},
          {"topology", m.topology},
          {"memory", m.memory},
          {"memory_available", m.available},
          {"cgroup_cpus", number(m.limits.cpus)},
          {"cgroup_memory", number(m.limits.memory)},
          {"dev_shm", number(m.dev_shm)},
          {"memfd", m.memfd.empty()},
          {"interfaces", interfaces}};
}

Json json_of(const Software& s) {
  Json gpus = Json::array();
  for (const auto& gpu : s.gpus) gpus.push_back({{"name", gpu.name}, {"memory", gpu.bytes}});
  return {{"libtorch", json_of(s.libtorch)},
          {"libtorch_cuda", json_of(s.libtorch_cuda)},
          {"libtorch_folder", s.torch_folder},
          {"driver", json_of(s.driver)},
          {"driver_cuda", json_of(s.driver_cuda)},
          {"cuda_runtime", json_of(s.runtime)},
          {"cuda_toolkit", json_of(s.toolkit)},
          {"cudnn", json_of(s.cudnn)},
          {"nccl", json_of(s.nccl)},
          {"mpi", json_of(s.mpi)},
          {"gpus", gpus},
          {"usable_gpus", s.usable_gpus}};
}

// Writes null where nothing was measured.
Json json_of(const Precision& p) {
  if (p.chosen.empty()) return Json();
  return {
      {"fp32_gflops", p.fp32}, {"bf16_gflops", p.bf16}, {"fp16_gflops", p.fp16}, {"auto", p.chosen}, {"why", p.why}};
}

Json json_of(const Transport& t) {
  Json out = {{"name", t.name}, {"status", to_string(t.health)}};
  if (t.health == Health::kOk) {
    out["microseconds_1k"] = t.microseconds;
    out["algbw_gbps_1m"] = t.gbps;
  } else {
    out["why"] = t.why;
  }
  return out;
}

}  // namespace

bool Diagnosis::healthy() const {
  return std::none_of(transports.begin(), transports.end(),
                      [](const Transport& each) { return each.health == Health::kFailed; });
}

std::string to_text(const Diagnosis& d) {
  std::string out = machine_text(d.machine, d.software) + '\n' + software_text(d.software);
  for (const auto& line : misfits(d.software)) out += row("misfit", line);
  out += '\n' + precision_text(d.precision) + '\n';
  for (const auto& transport : d.transports) out += transport_text(transport);
  return out;
}

std::string to_json(const Diagnosis& d) {
  Json transports = Json::array();
  for (const auto& each : d.transports) transports.push_back(json_of(each));
  const Json all = {{"machine", json_of(d.machine)},
                    {"software", json_of(d.software)},
                    {"misfits", misfits(d.software)},
                    {"precision", json_of(d.precision)},
                    {"transports", transports}};
  // The system chooses the names of devices and interfaces: they may hold any bytes, and this stays JSON.
  return all.dump(1, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace lockstep::doctor
