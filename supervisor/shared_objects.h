// What processes can leave in the system that outlives them, seen from outside.
#pragma once

#include <cstdint>

namespace pyplaypen::supervisor {

// Equal before and after a call: it left nothing of this kind, so nothing has to be waited for. Others
// may make and remove objects meanwhile; then it only looks as if there were something.
struct SharedObjects {
  int64_t files_changed = 0;  // when an entry of /dev/shm was made or removed last, by anybody, ns
  int segments = 0;           // of System V, in our IPC namespace
  int semaphore_sets = 0;
  int message_queues = 0;

  bool operator==(const SharedObjects&) const = default;
};

// Four system calls. What cannot be told equals nothing.
SharedObjects shared_objects();

}  // namespace pyplaypen::supervisor
