#include "supervisor/enforcement.h"

#include <unistd.h>

#include "runtime/policy/pids_cap.h"
#include "runtime/policy/root_rights.h"
#include "runtime/sys/proc.h"
#include "supervisor/uid_range.h"

namespace pyplaypen::supervisor {
namespace {

constexpr int kAbiWithTruncate = 3;  // man 7 landlock
constexpr int kAbiWithScopes = 6;

std::string process_count(const SandboxOptions& options, const Host& host) {
  if (drops_root(options, host)) return "hard_per_call";  // a UID a slot
  if (!host.is_root && host.features.user_namespace) return "hard_per_call";
  return host.pids_cap ? "container" : "unsupported";
}

std::string process_count_of_commands(const SandboxOptions& options, const Host& host) {
  if (!host.is_root) return process_count(options, host);
  if (drops_root(options, host) && options.command_uid != 0) return "hard_per_user";
  return host.pids_cap ? "container" : "unsupported";  // root is not counted
}

bool confines_writes(const SandboxOptions& options) {
  return options.confine_writes != WriteConfinement::kNone || (options.landlock && options.landlock->write_paths);
}

// A cgroup's limits are files: who may write them, by owner and Landlock, has no limits.
bool code_is_held_by_cgroup(const SandboxOptions& options, const Host& host) {
  return drops_root(options, host) || confines_writes(options);
}

bool commands_are_held_by_cgroup(const SandboxOptions& options, const Host& host) {
  return (host.features.can_drop_uid && options.command_uid != 0) || confines_writes(options);
}

std::string filesystem_writes(const SandboxOptions& options, const Host& host) {
  const int abi = host.features.landlock_abi;
  if (abi <= 0) return "unsupported";
  if (!confines_writes(options)) return "available";
  return abi >= kAbiWithTruncate ? "hard_content" : "hard_content_except_truncate";
}

}  // namespace

Host look_at_host(uint32_t wanted_uid) {
  Host host;
  host.features = policy::features();
  host.is_root = ::geteuid() == 0;
  if (host.features.can_drop_uid) {
    host.first_uid = usable_uids(sys::read_small_file("/proc/self/uid_map"), wanted_uid);
    host.missing_rights = policy::missing_rights_over_others();
  }
  host.pids_cap = policy::pids_cap();
  return host;
}

bool drops_root(const SandboxOptions& options, const Host& host) {
  return host.first_uid && options.child_uid != 0;
}

Enforcement enforcement_for(const SandboxOptions& options, const Host& host, Namespaces inside,
                            const CgroupOffer& cgroup) {
  Enforcement map;
  for (const std::string_view name : limit_names()) map[std::string(name)] = "hard";
  map["cpu_seconds"] = "hard_per_process";
  const bool code = code_is_held_by_cgroup(options, host);
  const bool commands = commands_are_held_by_cgroup(options, host);
  map["memory_bytes"] = cgroup.memory && code && commands ? "hard_per_call" : "hard_per_process";
  map["open_files"] = "hard_per_process";
  map["process_count"] = process_count(options, host);
  // Commands run as one user, so that a working tree can be opened to it.
  map["process_count_of_commands"] = process_count_of_commands(options, host);
  if (cgroup.processes && code) map["process_count"] = "hard_per_call";
  if (cgroup.processes && commands) map["process_count_of_commands"] = "hard_per_call";
  map["filesystem_writes"] = filesystem_writes(options, host);
  map["container_resources"] = host.pids_cap ? "container" : "unsupported";
  map["signals"] = host.features.landlock_abi >= kAbiWithScopes ? "hard"
                   : drops_root(options, host)                  ? "hard_per_user"
                                                                : "unsupported";
  map["namespaces"] = to_string(inside);
  map["network"] = inside.contains(Namespace::kNet) ? "none" : "host";
  map["user"] = drops_root(options, host) ? "dropped" : "unchanged";
  return map;
}

std::string unenforceable(const Enforcement& enforcement) {
  if (enforcement.at("process_count") != "unsupported") return "";
  return "process_count cannot be enforced here: calls run as this process's own user, user namespaces "
         "are denied, and no pids cap is set. Run as root, so that calls get users of their own; or "
         "allow user namespaces; or give a cgroup (SandboxOptions::cgroups, --cgroup); or set a pids cap (docker run "
         "--pids-limit=N, systemd TasksMax=); or "
         "accept the gap (SandboxOptions::on_unenforceable = kWarn, as the command does)";
}

std::string cgroup_gap(const SandboxOptions& options, const Host& host, const CgroupOffer& cgroup) {
  if (!cgroup.missing.empty()) return cgroup.missing;
  if (options.cgroups.empty() || (code_is_held_by_cgroup(options, host) && commands_are_held_by_cgroup(options, host)))
    return "";
  return "calls run as the user who owns the cgroup that was given, and can lift its limits: confine writes, too "
         "(--confine-writes, SandboxOptions::confine_writes)";
}

void refuse_missing(const SandboxOptions& options, const Host& host) {
  const bool others = drops_root(options, host) || (host.features.can_drop_uid && options.command_uid != 0);
  if (others && !host.missing_rights.empty())
    throw Refused("this root has CAP_SETUID and CAP_SETGID, so that calls run as other users, but to end them and to "
                  "remove what they leave it lacks " + host.missing_rights +
                  ": give it those, too, or take CAP_SETUID away; calls then run as root's own user");
  if (host.features.landlock_abi < kAbiWithScopes && !host.features.children_file)
    throw Refused("the processes of a call cannot be told from others here: this kernel has neither Landlock ABI 6 "
                  "nor /proc/thread-self/children (CONFIG_PROC_CHILDREN)");
  if (options.confine_writes == WriteConfinement::kLandlock && host.features.landlock_abi <= 0)
    throw Refused("confine_writes needs Landlock, which this kernel does not have or has switched off "
                  "(CONFIG_SECURITY_LANDLOCK, and landlock in CONFIG_LSM or lsm=)");
}

}  // namespace pyplaypen::supervisor
