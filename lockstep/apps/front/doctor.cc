// doctor: what this machine has, and a try of each transport with two workers.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "commands.h"
#include "lockstep/apps/commands/plain_commands.h"
#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/doctor/environment.h"
#include "lockstep/doctor/libtorch.h"
#include "lockstep/doctor/loader.h"
#include "lockstep/doctor/report.h"
#include "lockstep/launch/launcher.h"
#include "lockstep/launch/process.h"

namespace lockstep::front {
namespace {

// A file without a name, for what the workers write.
class Capture {
 public:
  Capture() : file_(std::tmpfile(), &std::fclose) {
    if (!file_) throw IoError("can't make a temporary file: ", errno_text(errno));
  }
  int descriptor() const { return fileno(file_.get()); }
  std::string text() const {
    std::string out;
    char part[4096];
    std::rewind(file_.get());
    while (const size_t size = std::fread(part, 1, sizeof part, file_.get())) out.append(part, size);
    return out;
  }

 private:
  std::unique_ptr<FILE, int (*)(FILE*)> file_;
};

// The exit code and the output of a command.
struct Outcome {
  int code;
  std::string out, err;
  bool asked_to_stop() const { return code == 128 + SIGINT || code == 128 + SIGTERM || code == 128 + SIGHUP; }
};

Outcome run_quietly(std::vector<std::string> command, int processes) {
  command[0] = launch::find_program(command[0]);
  const Capture out, err;
  launch::Launcher launcher({.command = std::move(command),
                             .nproc = processes,
                             .only_rank0_on_stdout = true,
                             .stop_by = launch::Launcher::StopBy::kSignal,
                             .out_fd = out.descriptor(),
                             .err_fd = err.descriptor()});
  const int code = launcher.run();
  return {code, out.text(), err.text()};
}

// Returns what a backend needs and this machine lacks, or "" if nothing is missing.
std::string missing_for(const std::string& backend, const doctor::Software& software) {
  if (backend == "nccl") return doctor::missing_for_nccl(software.usable_gpus);
  if (backend == "mpi" && software.mpi.empty()) return "no MPI library";
  if (backend == "mpi") {
    try {
      launch::find_program("mpirun");
    } catch (const ConfigError& error) {
      return error.what();
    }
  }
  return "";
}

int explain_environment(bool json) {
  const auto report = rendezvous::explain_place([](const char* name) { return env(name); }, rendezvous::launcher_pid());
  print(json ? doctor::to_json(report) : doctor::to_text(report));
  return report.error.empty() ? 0 : ConfigError::kExitCode;
}

}  // namespace

int doctor(const Arguments& args) {
  apps::Command<apps::DoctorOptions> command;
  if (const auto help = command.read(args)) return print(*help), 0;
  if (command.options().env) return explain_environment(command.options().json);
  const std::string worker = worker_program();
  const Outcome listed = run_quietly(doctor::loader_command(worker), 1);
  if (listed.asked_to_stop()) return listed.code;
  doctor::Diagnosis diagnosis{
      doctor::look_at_machine(), doctor::find_software(doctor::libtorch_of_list(listed.out)), {}, {}};
  diagnosis.software.torch_named = env("LOCKSTEP_LIBTORCH").value_or("");
  diagnosis.software.unloadable = doctor::loader_misfits(listed.out + listed.err, env("LD_LIBRARY_PATH").value_or(""));
  const Outcome measured = run_quietly(doctor::precision_command(worker), 1);
  if (measured.asked_to_stop()) return measured.code;
  diagnosis.precision = doctor::judge_precision(measured.code, measured.out, measured.err);
  for (const char* backend : {"shm", "gloo", "mpi", "nccl"}) {
    const std::string missing = missing_for(backend, diagnosis.software);
    if (!missing.empty()) {
      diagnosis.transports.push_back({.name = backend, .health = doctor::Health::kNotAvailable, .why = missing});
      continue;
    }
    const doctor::SelfTest test = doctor::self_test(worker, backend);
    const Outcome tried = run_quietly(test.command, test.processes);
    if (tried.asked_to_stop()) return tried.code;
    diagnosis.transports.push_back(doctor::judge(backend, tried.code, tried.out, tried.err));
  }
  print(command.options().json ? doctor::to_json(diagnosis) : doctor::to_text(diagnosis));
  return diagnosis.healthy() ? 0 : CommError::kExitCode;
}

}  // namespace lockstep::front
