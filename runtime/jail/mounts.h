// What a process in a mount namespace of its own does to the mounts it sees.
#pragma once

namespace pyplaypen::jail {

// What is mounted here from now on is not seen outside; what is mounted or unmounted outside is seen
// here, so that we keep no file system of the host's busy. First of all, right after the namespace
// was made. Async-signal-safe. 0 or errno.
int detach_mounts() noexcept;

// A new /proc over the old one, showing the pid namespace of the caller. Not for a process whose
// Landlock domain handles file access: that forbids mounting. Async-signal-safe. 0 or errno.
int mount_own_proc() noexcept;

// An empty /dev/shm over the old one. 0 or errno.
int mount_own_shm() noexcept;

// The directory of the message queues in the caller's IPC namespace, which is mounted nowhere; it
// must be able to mount (man 7 mq_overview). -1 and errno.
int open_message_queues() noexcept;

}  // namespace pyplaypen::jail
