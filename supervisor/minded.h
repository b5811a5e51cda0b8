// Starts what runs in namespaces of its own, with as many of them as can be had.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pyplaypen/namespaces.h"
#include "pyplaypen/sandbox.h"
#include "runtime/jail/minder.h"

namespace pyplaypen::supervisor {

// What somebody asked for.
struct NamespaceRequest {
  Namespaces namespaces;
  Strictness strictness = Strictness::kLenient;
  MapTo map_to = MapTo::kRoot;  // when kUser is among the namespaces
  std::string hostname;         // asks for kUts as well
  ProcMount proc = ProcMount::kAuto;  // kRequired asks for kPid and kMount as well
  bool no_network = false;      // asks for kNet as well, and is never gone without

  // The namespaces that all of this asks for.
  [[nodiscard]] Namespaces all() const;
  bool operator==(const NamespaceRequest&) const = default;
};

NamespaceRequest request_of(const SandboxOptions& options);

// What is to be had of it.
struct NamespacePlan {
  Namespaces namespaces;
  MapTo map_to = MapTo::kSelf;
  std::string hostname;
  ProcMount proc = ProcMount::kAuto;
  std::vector<std::string> notes;  // a sentence for each thing that is gone without

  bool operator==(const NamespacePlan&) const = default;
};

// `privileged`: the others can be created without a user namespace around them; when not, one is
// added that nobody asked for, in which everybody stays who they are. Throws Refused.
NamespacePlan plan_namespaces(const NamespaceRequest& request, Namespaces available, bool privileged);

// Where RLIMIT_NPROC is set: also where it counts every task of the user, or only where it counts this
// call's alone.
enum class CountTasks { kAlways, kOfTheCallOnly };

struct Minded {
  std::unique_ptr<jail::Minder> minder;
  NamespacePlan plan;  // in force
};

// `plan`: callable and payload are given; the rest is filled in here. `identity`: whom root gives up
// to; absent: everybody stays who they are outside. Throws Refused, sys::Error; a payload that could not
// be started is the minder's failure().
Minded start_minded(const NamespaceRequest& request, jail::MinderPlan plan,
                    const std::optional<jail::Identity>& identity, CountTasks count, int landlock_abi);

// "the namespace net", "the namespaces user, net".
std::string names_of(Namespaces set);

}  // namespace pyplaypen::supervisor
