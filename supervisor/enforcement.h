// What enforces each limit on this host, for a Sandbox with these options.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "pyplaypen/sandbox.h"
#include "runtime/policy/features.h"
#include "supervisor/cgroup_offer.h"

namespace pyplaypen::supervisor {

// The facts that decide, apart so that a test can make them up.
struct Host {
  policy::Features features;
  bool is_root = false;
  std::string missing_rights;  // policy::missing_rights_over_others(), where root can become others
  std::optional<uint32_t> first_uid;  // of the slots, where root can give them UIDs; see uid_range.h
  std::optional<uint64_t> pids_cap;  // policy::pids_cap()
};

// `wanted_uid` is the options' child_uid.
Host look_at_host(uint32_t wanted_uid);

// Calls of `options` run as a user of their own.
bool drops_root(const SandboxOptions& options, const Host& host);

// `inside`: the namespaces of the calls' own, beside one that only counts processes.
// `cgroup`: what the one that was given can do.
Enforcement enforcement_for(const SandboxOptions& options, const Host& host, Namespaces inside = {},
                            const CgroupOffer& cgroup = {});

// A sentence for each limit that cannot be enforced, with the way out; empty: all can.
std::string unenforceable(const Enforcement& enforcement);

// A sentence for what the cgroup that was given does not hold; empty: nothing.
std::string cgroup_gap(const SandboxOptions& options, const Host& host, const CgroupOffer& cgroup);

// Throws Refused when something was asked for that this host does not have.
void refuse_missing(const SandboxOptions& options, const Host& host);

}  // namespace pyplaypen::supervisor
