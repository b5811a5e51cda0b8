// Ends what a command has started when pyplaypen itself is killed.
#pragma once

#include <string>

#include "runtime/sys/unique_fd.h"

namespace pyplaypen::supervisor {

// Forks a process that waits for the death of this one, which nothing but SIGKILL brings about untold;
// it then kills everything in this process's Landlock domain, whose signal scope it shares, and removes
// `tmp`. Nobody but whoever may signal this process may signal it. It is a child of ours like the command's
// orphans, and ends with them. The descriptor is to be kept: its closing tells of our death. Empty where
// there can be no guard; the command runs without then.
sys::UniqueFd start_guard(const std::string& tmp);

}  // namespace pyplaypen::supervisor
