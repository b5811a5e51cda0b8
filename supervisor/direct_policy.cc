#include "supervisor/direct_policy.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <stdexcept>

#include "runtime/policy/pids_cap.h"
#include "runtime/policy/root_rights.h"

namespace pyplaypen::supervisor {
namespace {

constexpr int kTruncateAbi = 3;

std::string_view write_enforcement(WriteSet writes, int landlock_abi) {
  if (landlock_abi <= 0) return "unsupported";
  if (writes == WriteSet::kUnconfined) return "available";
  return landlock_abi >= kTruncateAbi ? "hard_content" : "hard_content_except_truncate";
}

uint64_t inherited(__rlimit_resource resource) {
  rlimit limit{};
  return ::getrlimit(resource, &limit) == 0 ? limit.rlim_max : RLIM_INFINITY;
}

bool has_acl(const char* path) {
  return ::getxattr(path, "system.posix_acl_access", nullptr, 0) >= 0;
}

bool may_write_by_mode(const struct stat& directory, const jail::Identity& identity) {
  constexpr mode_t kWriteAndEnter = S_IWOTH | S_IXOTH;
  const int shift = directory.st_uid == identity.uid ? 6 : directory.st_gid == identity.gid ? 3 : 0;
  return ((directory.st_mode >> shift) & kWriteAndEnter) == kWriteAndEnter;
}

}  // namespace

std::optional<jail::Identity> child_identity(uid_t child_uid) {
  if (child_uid == 0 || !policy::can_become_others()) return std::nullopt;
  if (const std::string missing = policy::missing_rights_over_others(); !missing.empty())
    throw std::runtime_error("this root lacks " + missing +
                             ", to end a command that runs as another user and to remove what it leaves; grant that, "
                             "or pass --child-uid 0 to keep root's UID");
  return jail::Identity{child_uid, child_uid};
}

std::string_view process_count_enforcement(const std::optional<jail::Identity>& identity,
                                           Namespaces namespaces) {
  // The kernel exempts root, in whatever namespace.
  if (namespaces.contains(Namespace::kUser) && (identity || ::geteuid() != 0)) return "hard_per_call";
  if (identity) return "hard_per_user";
  return policy::pids_cap() ? "container" : "unsupported";
}

std::map<std::string, std::string> direct_enforcement(const std::optional<jail::Identity>& identity,
                                                      Namespaces namespaces, WriteSet writes,
                                                      int landlock_abi) {
  std::map<std::string, std::string> words;
  for (const char* const name : {"wall_seconds", "file_bytes", "stdout_bytes", "stderr_bytes"})
    words.emplace(name, "hard");
  for (const char* const name : {"cpu_seconds", "memory_bytes", "open_files"})
    words.emplace(name, "hard_per_process");
  words.emplace("process_count", process_count_enforcement(identity, namespaces));
  words.emplace("namespaces", to_string(namespaces));
  words.emplace("network", namespaces.contains(Namespace::kNet) ? "none" : "host");
  words.emplace("filesystem_writes", write_enforcement(writes, landlock_abi));
  return words;
}

void lower_defaults(Limits& limits, const std::set<std::string, std::less<>>& given, LimitUse use) {
  const auto lower = [&](std::string_view name, auto& value, uint64_t most) {
    using Value = std::remove_reference_t<decltype(value)>;
    if (most != RLIM_INFINITY && !given.contains(name))
      value = std::min(value, static_cast<Value>(most));
  };
  const auto below = [](uint64_t most) { return most == RLIM_INFINITY || most == 0 ? most : most - 1; };
  // The hard limit is one second above the soft one.
  lower("cpu_seconds", limits.cpu_seconds, below(inherited(RLIMIT_CPU)));
  lower("memory_bytes", limits.memory_bytes, inherited(RLIMIT_AS));
  lower("open_files", limits.open_files, inherited(RLIMIT_NOFILE));
  const uint64_t file = inherited(RLIMIT_FSIZE);  // for code the resource limit is one byte higher
  lower("file_bytes", limits.file_bytes, use == LimitUse::kExecute ? below(file) : file);
}

std::optional<std::string> unwritable_directory_warning(const jail::Identity& identity,
                                                        const std::filesystem::path& directory) {
  struct stat here{};
  if (::stat(directory.c_str(), &here) != 0 || may_write_by_mode(here, identity) ||
      has_acl(directory.c_str()))
    return std::nullopt;
  char facts[96];
  std::snprintf(facts, sizeof facts, " (mode %04o, owner %u:%u)", here.st_mode & 07777, here.st_uid,
                here.st_gid);
  std::error_code unknown;
  return "the command runs as uid " + std::to_string(identity.uid) +
         ", which may not write in the current directory " +
         std::filesystem::canonical(directory, unknown).string() + facts +
         "; run as the directory's owner, or grant access: setfacl -R -m u:" +
         std::to_string(identity.uid) + ":rwX .";
}

}  // namespace pyplaypen::supervisor
