// What /proc and the like tell about the calling process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace pyplaypen::sys {

// Threads of this process (entries of /proc/self/task); throws Error where /proc is missing.
int thread_count();

// Bytes of address space that this process has mapped (/proc/self/statm), what RLIMIT_AS counts.
uint64_t mapped_bytes();

// The open descriptors of this process, in order, without the one used for looking.
std::vector<int> open_fds();

// Processes whose parent is the calling thread (/proc/thread-self/children, man 5 proc); empty also
// when the kernel has no such file: see has_children_file().
std::vector<pid_t> children();
bool has_children_file();

// The same for every thread of another process; empty when it is gone.
std::vector<pid_t> children_of(pid_t pid);

// A whole small file, as /proc has them. Throws Error.
std::string read_small_file(const std::string& path);

}  // namespace pyplaypen::sys
