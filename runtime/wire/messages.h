// What the processes say to each other, as values. The bytes: docs/protocol.md and codec.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pyplaypen/limits.h"
#include "runtime/policy/stage.h"

namespace pyplaypen::wire {

// name -> value, as bytes.
using Environment = std::map<std::string, std::string>;

// How a call's code ended, as its own process tells it. A subset of the public error types: the
// others are the supervisor's to find.
enum class ReportStatus : uint8_t {
  kOk,
  kSyntax,
  kRuntime,
  kSerialization,
  kMemoryLimit,
  kProcessLimit,
  kOpenFilesLimit,
  kReturnLimit,
  kExtension,
  kInternal,
};
inline constexpr ReportStatus kLastReportStatus = ReportStatus::kInternal;

// supervisor -> spare: one call of execute.
struct Request {
  std::string request_id;
  std::string code;             // source bytes as given: any encoding, NUL included
  std::string extra_json;       // JSON text for the provider's ctx["extra"]
  std::optional<Environment> environment;  // whole environment; absent: the one the spare has already
  Limits limits;

  bool operator==(const Request&) const = default;
};

// spare -> supervisor: its only answer. Hostile: the sender ran user code.
struct Report {
  ReportStatus status = ReportStatus::kOk;
  std::string value_json = "null";  // JSON text; only kOk has another than null
  std::string message;
  std::string traceback;            // empty: none
  std::optional<int64_t> line;      // of the user's source
  std::optional<int64_t> exit_code; // of SystemExit
  std::string value_type;           // kSerialization: of the value that has no projection
  std::string value_repr;
  uint64_t cpu_microseconds = 0;    // of this process
  uint64_t max_rss_bytes = 0;

  bool operator==(const Report&) const = default;
};

// The namespaces of each slot, found to be available.
struct Unshare {
  uint32_t namespaces = 0;  // Namespaces::bits()
  bool map_root = false;    // in kUser: calls are root there
  std::string hostname;
  bool mount_proc = false;
  // Another user that root's commands may be; mapped to itself.
  std::optional<uint32_t> command_uid;
  std::optional<uint32_t> command_gid;

  bool operator==(const Unshare&) const = default;
};

// A LandlockRuleset, for calls; their own directories come on top.
struct Landlock {
  std::optional<std::vector<std::string>> read_paths;
  std::optional<std::vector<std::string>> write_paths;
  std::optional<std::vector<std::string>> execute_paths;
  std::optional<std::vector<uint16_t>> bind_tcp_ports;
  std::optional<std::vector<uint16_t>> connect_tcp_ports;

  bool operator==(const Landlock&) const = default;
};

// supervisor -> zygote, first: everything that holds for the zygote's life.
struct Setup {
  int32_t host_pid = 0;
  std::string base_directory;      // of this Sandbox's workspaces; exists, ours, locked
  std::string package_directory;   // holds the shipped Python package
  std::string python;              // interpreter or virtual environment; empty: the built-in choice
  Environment environment;         // the default environment of calls, and of the zygote's imports
  std::vector<std::string> preload;
  std::string globals_provider;    // "module:function" or empty
  std::string type_projector;      // "module:function" or empty
  bool confine_writes = false;
  Unshare unshare;
  Landlock landlock;

  bool operator==(const Setup&) const = default;
};

// supervisor -> zygote: start CPython and import, with this effective identity; absent: its own.
struct StartPython {
  std::optional<uint32_t> uid;
  std::optional<uint32_t> gid;

  bool operator==(const StartPython&) const = default;
};

// zygote -> supervisor: CPython is warm, or why it is not.
struct Ready {
  bool extension_failed = false;  // a module of the user's failed, not we
  std::string failure;            // empty: ready
  std::string python_version;     // "3.11.2"
  uint64_t mapped_bytes = 0;      // of the warm interpreter: memory_bytes comes on top

  bool operator==(const Ready&) const = default;
};

// supervisor -> zygote. Attached: the keeper's end of a channel; with a uid, what claims it; the entrances
// of the slot's cgroup.
struct OpenKeeper {
  uint32_t slot = 0;
  // The identity of the slot's calls. Absent: the zygote's own (it is not root).
  std::optional<uint32_t> uid;
  std::optional<uint32_t> gid;
  uint32_t cgroup_entrances = 0;

  bool operator==(const OpenKeeper&) const = default;
};

// supervisor -> zygote: end a keeper, whatever state it is in, and all that it had. Answered by Reaped.
struct CloseKeeper {
  uint32_t slot = 0;

  bool operator==(const CloseKeeper&) const = default;
};

// keeper -> supervisor, first: what it has.
struct KeeperReady {
  std::string failure;          // empty: ready
  bool scoped = false;          // a Landlock domain with signal scope: kill(-1) reaches the slot only
  bool user_namespace = false;  // RLIMIT_NPROC counts the slot alone
  std::string workspace;        // absolute path of the calls' current directory
  int32_t error_number = 0;     // of the failure, where it has one

  bool operator==(const KeeperReady&) const = default;
};

// What a call's process writes to its channel, in place of a report, when it dies of a stack overflow.
inline constexpr char kStackOverflowHint = 'S';

enum class WarmUp : uint8_t { kNo, kYes };

// supervisor -> keeper: fork a child of the interpreter. One child at a time.
struct Spawn {
  WarmUp warm_up = WarmUp::kYes;

  bool operator==(const Spawn&) const = default;
};

// supervisor -> keeper: start a command. Attached: its standard input, its current directory.
struct Launch {  // one child at a time: not while a spare is there
  std::vector<std::string> argv;
  Environment environment;
  std::vector<std::string> write_paths;  // beside the current directory; used under confine_writes
  bool merge_output = false;
  std::optional<uint32_t> uid;  // instead of the slot's
  std::optional<uint32_t> gid;
  Limits limits;

  bool operator==(const Launch&) const = default;
};

// keeper -> supervisor. Attached, in this order, unless it failed: the supervisor's end of the call's
// channel (not for a command), read ends of stdout and stderr, not blocking, and what is true below.
struct Spawned {
  int32_t pid = 0;             // 0: failed
  bool with_pidfd = false;     // of the leader
  bool with_tasks = false;     // its "task" folder and its "children" file: two
  bool with_children = false;  // the keeper's "children" file: once
  bool with_workspace = false; // when it is another than at the last Spawned
  std::optional<policy::Stage> stage;
  int32_t error_number = 0;
  std::string failure;

  bool operator==(const Spawned&) const = default;
};

// keeper -> supervisor, where the leader has no pidfd that tells it: the leader has ended.
struct LeaderEnded {
  bool operator==(const LeaderEnded&) const = default;
};

// spare -> supervisor on the call's channel, before any user code: set up, or what failed.
struct SpareReady {
  std::optional<policy::Stage> failed_stage;
  int32_t error_number = 0;
  std::string failure;

  bool operator==(const SpareReady&) const = default;
};

// supervisor -> keeper: end the call's tree, all of it.
struct Reap {
  bool operator==(const Reap&) const = default;
};

// keeper -> supervisor: nothing of the call is alive; all zero from the zygote: nothing of the keeper is.
struct Reaped {
  int32_t wait_status = 0;  // of the leader, man 2 wait
  uint64_t cpu_microseconds = 0;  // of the leader and what it waited for
  uint64_t max_rss_bytes = 0;
  uint32_t processes = 0;   // reaped at the end, the leader included

  bool operator==(const Reaped&) const = default;
};

}  // namespace pyplaypen::wire
