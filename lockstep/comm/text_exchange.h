// Exchange of short texts and of answers between ranks, for checks at the start of a run.
#pragma once

#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"

namespace lockstep::comm {

// Returns every rank's text, by rank. A collective. Throws as Communicator's waits.
std::vector<std::string> gather_texts(Communicator& comm, const std::string& text);

// Returns the text of one rank, of any length, on all ranks. A collective.
std::string text_of_rank(Communicator& comm, int rank, const std::string& text);

// Returns on all ranks whether it holds on one of them, or on all. Collectives.
bool holds_on(Communicator& comm, int rank, bool own);
bool holds_on_all(Communicator& comm, bool own);

}  // namespace lockstep::comm
