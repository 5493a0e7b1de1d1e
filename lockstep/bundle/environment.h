// What the programs of a bundle need before they load libtorch.
#pragma once

#include <optional>
#include <string>

namespace lockstep::bundle {

// The folder of the bundle that this program belongs to; nothing if it belongs to none.
std::optional<std::string> own_bundle();

// Sets LD_LIBRARY_PATH of this process so that programs in libexec/ of the bundle `root` can be started; what it had
// comes last. LOCKSTEP_LIBTORCH then says which libtorch that is, and what named it: "/venv/…/torch
// (/venv/bin/python3)". Throws as find_libtorch(). Not while other threads run.
void prepare_environment(const std::string& root);

}  // namespace lockstep::bundle
