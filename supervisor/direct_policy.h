// What holds on this host for a command that is run directly: as whom, under what, enforced by what.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "pyplaypen/limits.h"
#include "pyplaypen/namespaces.h"
#include "runtime/jail/launch.h"

namespace pyplaypen::supervisor {

enum class WriteSet { kUnconfined, kConfined };

// Where a command with these UIDs stands: root with CAP_SETUID and CAP_SETGID gives up to `child_uid`
// and the GID of the same number; 0 cancels that. Empty: UID and GIDs stay. Throws std::runtime_error
// for a root that could not end what it started or remove what that left (policy/root_rights.h).
std::optional<jail::Identity> child_identity(uid_t child_uid);

// "hard_per_call", "hard_per_user", "container" or "unsupported"; docs/enforcement.md. `namespaces`: those
// in force.
std::string_view process_count_enforcement(const std::optional<jail::Identity>& identity,
                                           Namespaces namespaces);

// limit, "filesystem_writes", "namespaces" or "network" -> the word for what enforces it.
std::map<std::string, std::string> direct_enforcement(const std::optional<jail::Identity>& identity,
                                                      Namespaces namespaces, WriteSet writes,
                                                      int landlock_abi);

// Lowers to what this process inherited every limit that nobody gave: the stricter one is in force
// anyway, and a default is no reason to refuse.
void lower_defaults(Limits& limits, const std::set<std::string, std::less<>>& given, LimitUse use);

// A sentence when the mode bits of a command's current directory keep `identity` from writing in it. Silent
// when the directory has a POSIX ACL, whatever that grants, and about what lies below it.
std::optional<std::string> unwritable_directory_warning(const jail::Identity& identity,
                                                        const std::filesystem::path& directory = ".");

}  // namespace pyplaypen::supervisor
