// What outlives the processes of a call: POSIX and System V shared memory, semaphores, queues.
#pragma once

#include <sys/types.h>

namespace pyplaypen::zygote {

// Removes the objects of `owner`, the user that only this slot's calls run as: files in /dev/shm and
// /dev/mqueue, and System V objects. None of its processes may be alive. Some 30 us when there are
// none. What cannot be removed stays (nothing is told: the next call would meet it as a foreign one).
void remove_ipc_objects(uid_t owner);

// Empties /dev/shm: for a process that has one of its own.
void remove_all_shared_files();

// Removes everybody's System V objects, and message queues: their directory, or -1. For a process in an
// IPC namespace of its own.
void remove_all_ipc_objects(int message_queues);

}  // namespace pyplaypen::zygote
