#include "supervisor/minded.h"

#include <string.h>
#include <unistd.h>

#include "pyplaypen/error.h"
#include "runtime/jail/landlock.h"

namespace pyplaypen::supervisor {
namespace {

constexpr size_t kLongestHostName = 64;  // man 2 sethostname

constexpr char kWayOut[] =
    "; user namespaces may be switched off (sysctl user.max_user_namespaces, "
    "kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns) or barred by the "
    "container's seccomp profile";

void check_hostname(const std::string& name) {
  if (name.size() > kLongestHostName || name.find('\0') != std::string::npos)
    throw Refused("hostname '" + name.substr(0, kLongestHostName) +
                  "' cannot be set: at most 64 bytes, none of them NUL");
}

// One attempt with what `plan` says.
std::unique_ptr<jail::Minder> start(const NamespacePlan& plan, Strictness strictness, jail::MinderPlan minder,
                                    const std::optional<jail::Identity>& identity, CountTasks count, int landlock_abi) {
  const bool has_user = plan.namespaces.contains(Namespace::kUser);
  minder.inside = {plan.namespaces, plan.hostname, plan.proc, strictness};
  minder.maps = jail::make_maps(plan.map_to, identity ? identity->uid : ::geteuid(),
                                identity ? identity->gid : ::getegid());
  if (has_user) {
    if (identity) minder.payload.identity_inside = jail::Identity{minder.maps.users[0].inside, minder.maps.groups[0].inside};
    if (plan.map_to == MapTo::kSelf) minder.payload.capabilities = jail::Capabilities::kNone;
    // The minder is counted in the same namespace, as the same user.
    if (!identity && minder.payload.limits.process_count) ++*minder.payload.limits.process_count;
  } else {
    minder.payload.identity = identity;
    if (!identity && count == CountTasks::kOfTheCallOnly) minder.payload.limits.process_count.reset();
  }
  sys::UniqueFd scope;
  if (!plan.namespaces.contains(Namespace::kPid))
    scope = jail::build_signal_scope(landlock_abi, minder.payload.ruleset >= 0);
  minder.signal_scope = scope.get();
  return std::make_unique<jail::Minder>(minder);
}

}  // namespace

Namespaces NamespaceRequest::all() const {
  Namespaces set = namespaces;
  if (no_network) set.insert(Namespace::kNet);
  if (!hostname.empty()) set.insert(Namespace::kUts);
  if (proc == ProcMount::kRequired) set = set | Namespaces{Namespace::kPid, Namespace::kMount};
  return set;
}

NamespaceRequest request_of(const SandboxOptions& options) {
  NamespaceRequest request;
  request.namespaces = options.namespaces;
  request.strictness = options.strictness;
  request.map_to = options.map_to;
  request.hostname = options.hostname;
  request.proc = options.proc;
  request.no_network = options.network == Network::kNone;
  return request;
}

std::string names_of(Namespaces set) {
  std::string names = to_string(set);
  const bool several = names.find(',') != std::string::npos;
  for (size_t at = 0; (at = names.find(',', at)) != std::string::npos; at += 2) names.insert(at + 1, " ");
  return (several ? "the namespaces " : "the namespace ") + names;
}

NamespacePlan plan_namespaces(const NamespaceRequest& request, Namespaces available, bool privileged) {
  check_hostname(request.hostname);
  Namespaces wanted = request.all();
  NamespacePlan plan;
  plan.map_to = wanted.contains(Namespace::kUser) ? request.map_to : MapTo::kSelf;
  plan.proc = request.proc;
  const bool add_user = !wanted.empty() && !privileged && !wanted.contains(Namespace::kUser);
  if (add_user) wanted.insert(Namespace::kUser);

  Namespaces refused = wanted - available;
  if (!privileged && refused.contains(Namespace::kUser)) refused = wanted;  // they need it around them
  if (request.no_network && refused.contains(Namespace::kNet))
    throw Refused("running without a network needs a network namespace, which this system refuses" +
                  std::string(kWayOut));
  if (!refused.empty() && request.strictness == Strictness::kStrict)
    throw Refused("this system refuses " + names_of(refused) + std::string(kWayOut));
  plan.namespaces = wanted - refused;
  if (add_user && plan.namespaces == Namespaces{Namespace::kUser}) plan.namespaces = {};  // for nothing
  if (!refused.empty())
    plan.notes.push_back("this system refuses " + names_of(add_user ? refused - Namespaces{Namespace::kUser} : refused) +
                         ": going on without");
  if (plan.namespaces.contains(Namespace::kPid) && !plan.namespaces.contains(Namespace::kMount) &&
      request.proc != ProcMount::kNever)
    plan.notes.push_back("/proc shows the process IDs outside of the pid namespace: only with a mount namespace, "
                         "too, can it have one of its own");
  if (plan.namespaces.contains(Namespace::kUts)) plan.hostname = request.hostname;
  return plan;
}

Minded start_minded(const NamespaceRequest& request, jail::MinderPlan base,
                    const std::optional<jail::Identity>& identity, CountTasks count, int landlock_abi) {
  const bool privileged = jail::can_create_without_user();
  NamespacePlan plan = plan_namespaces(request, kAllNamespaces, privileged);
  Minded minded;
  minded.minder = start(plan, request.strictness, base, identity, count, landlock_abi);
  // Only where they are refused is it worth to try each: 100 us apiece.
  if (minded.minder->refused()) {
    plan = plan_namespaces(request, namespaces_supported(), privileged);
    minded.minder = start(plan, request.strictness, base, identity, count, landlock_abi);
  }
  if (minded.minder->refused()) {  // each, but not together
    plan = plan_namespaces(request, {}, privileged);
    minded.minder = start(plan, request.strictness, base, identity, count, landlock_abi);
  }
  const jail::SetupReport failure = minded.minder->failure();
  if (failure.stage == policy::Stage::kNamespaces && failure.error != 0)
    throw Refused("setting up namespaces failed at '" + minded.minder->failed_at() +
                  "': " + ::strerror(failure.error));
  const jail::Gaps gaps = minded.minder->gaps();
  if (gaps.hostname != 0) {
    plan.notes.push_back("the host name could not be set (" + std::string(::strerror(gaps.hostname)) + ")");
    plan.hostname.clear();
  }
  if (gaps.proc != 0) {
    plan.notes.push_back("/proc shows the process IDs of the host: a new one could not be mounted (" +
                         std::string(::strerror(gaps.proc)) + ")");
    plan.proc = ProcMount::kNever;
  }
  minded.plan = std::move(plan);
  return minded;
}

}  // namespace pyplaypen::supervisor
