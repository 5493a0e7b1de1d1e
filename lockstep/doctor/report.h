// The doctor's report: a table for people, JSON for scripts.
#pragma once

#include <string>
#include <vector>

#include "lockstep/doctor/machine.h"
#include "lockstep/doctor/precision.h"
#include "lockstep/doctor/software.h"
#include "lockstep/doctor/transport.h"

namespace lockstep::doctor {

struct Diagnosis {
  Machine machine;
  Software software;
  Precision precision;
  std::vector<Transport> transports;

  bool healthy() const;  // no transport failed; one that is not available counts as healthy
};

std::string to_text(const Diagnosis& diagnosis);
// As JSON, with null for what is not there:
//   {"machine": {…}, "software": {…}, "misfits": […], "precision": {…}, "transports": [{"name", "status", …}]}
std::string to_json(const Diagnosis& diagnosis);

}  // namespace lockstep::doctor
