// The files that a call left in its workspace: found, judged, handed over.
//
// Everything here may run only when nothing of the call can write any more. What it left is hostile
// all the same: links, devices, modes 000, thousands of levels, millions of entries. Each component
// is opened by itself and never through a link, only regular files are opened at all, and the work
// is bounded by the limits, not by what was left.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pyplaypen/artifact.h"
#include "pyplaypen/limits.h"

namespace pyplaypen::supervisor {

// An entry that is no file and was not opened.
struct Skipped {
  std::string path;  // written as Artifact::path
  std::string kind;  // "fifo", "socket", "character device", "block device"

  bool operator==(const Skipped&) const = default;
};

struct Collected {
  std::vector<Artifact> artifacts;     // in the order of their exact paths
  std::vector<std::string> raw_paths;  // the exact bytes of each artifact's path
  std::vector<Skipped> skipped;        // the first kMostSkipped
  uint64_t skipped_beyond = 0;         // how many more there were
  std::string breach;  // not empty: the sentence of artifact_limit; then nothing else is set
};

inline constexpr size_t kMostSkipped = 100;
// Entries other than artifacts (directories, dot files, devices): more is a breach, too.
inline constexpr uint64_t kMostOtherEntries = 100'000;

// Looks through the workspace, `workspace` being a descriptor of it that can be read (not O_PATH).
// Files and directories whose name starts with a dot, and what is below such a directory, do not
// count. Stops at the first breach of file_bytes, artifact_count or artifact_bytes, at a symbolic
// link, a hard link, another file system, or a path that no system call takes (PATH_MAX). Where the
// code barred its own user from a directory, it is given mode 0700. Throws sys::Error.
Collected collect(int workspace, const Limits& limits);

// Sets sha256 of each artifact; `directory` is what their paths are relative to: the workspace, or
// the root that move_to has filled. Throws sys::Error.
void hash_artifacts(int directory, Collected& collected);

struct Kept {
  std::string root;     // absolute; what the artifacts' paths are relative to
  std::string problem;  // not empty: a sentence; nothing was kept
};

// Moves the artifacts, with the directories above them and nothing else, to
// `artifact_root`/`request_id`: renamed, or copied where that is another file system. artifact_root
// is made where it is missing; as root, what is made below it gets its owner and group. The files
// keep their permission bits without set-user-ID and the like and without write for others; the
// owner can read and write each. Refused with a sentence: a request_id that is not one name, and
// one that is there already. Throws sys::Error when the system fails it, and then has removed what
// was moved.
Kept move_to(int workspace, const Collected& collected, const std::string& artifact_root,
             const std::string& request_id);

// The same into a fresh directory `pyplaypen-artifacts-<request_id>` (with a suffix where that name
// is taken) of mode 0700 under `temp_directory`, for a call that named no artifact_root.
Kept keep_under(int workspace, const Collected& collected, const std::string& temp_directory,
                const std::string& request_id);

}  // namespace pyplaypen::supervisor
