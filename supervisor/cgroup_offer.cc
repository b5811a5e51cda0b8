#include "supervisor/cgroup_offer.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "runtime/jail/cgroup.h"
#include "runtime/sys/child.h"
#include "runtime/sys/error.h"

namespace pyplaypen::supervisor {
namespace {

constexpr uint64_t kSomeMemory = uint64_t{64} << 20;
constexpr uint64_t kSomeProcesses = 16;

// Runs in: a child that shares our memory. Its exit status: 0 or errno.
int enter_all(void* argument) {
  for (const int entrance : *static_cast<const std::vector<int>*>(argument))
    if (const int error = jail::enter_cgroup(entrance)) return error;
  return 0;
}

CgroupOffer offer_of(const std::vector<std::string>& parents) {
  static std::atomic<unsigned> tries{0};
  jail::Cgroup group = jail::Cgroup::make(
      parents, "pyplaypen-" + std::to_string(::getpid()) + "-try" + std::to_string(tries.fetch_add(1)));
  std::vector<int> entrances = group.entrances();
  const sys::ChildExit ended = sys::start_sharing_memory(enter_all, &entrances, 0).wait();
  if (const int error = WIFEXITED(ended.status) ? WEXITSTATUS(ended.status) : EIO; error != 0)
    throw sys::Error(error, "entering a cgroup beneath", parents.front());
  group.limit(kSomeMemory, kSomeProcesses);
  CgroupOffer offer{group.limits_memory(), group.limits_processes(), {}};
  if (!offer.memory || !offer.processes)
    offer.missing = "the cgroup that was given does not limit " +
                    std::string(!offer.memory && !offer.processes ? "memory or processes"
                                : !offer.memory                   ? "memory"
                                                                  : "processes") +
                    ": that controller is not available in it (cgroup.controllers), or with cgroup v1 its own "
                    "hierarchy's directory was not given, too";
  return offer;
}

}  // namespace

std::vector<std::string> cgroup_paths(const std::vector<std::filesystem::path>& parents) {
  std::vector<std::string> paths;
  for (const std::filesystem::path& parent : parents) paths.push_back(std::filesystem::absolute(parent).string());
  return paths;
}

CgroupOffer try_cgroups(const std::vector<std::filesystem::path>& parents) {
  if (parents.empty()) return {};
  try {
    return offer_of(cgroup_paths(parents));
  } catch (const sys::Error& error) {
    return {false, false, "the cgroup that was given cannot be used: " + std::string(error.what())};
  }
}

}  // namespace pyplaypen::supervisor
