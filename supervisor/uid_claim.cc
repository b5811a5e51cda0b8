#include "supervisor/uid_claim.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>

#include "runtime/sys/error.h"

namespace pyplaypen::supervisor {
namespace {

// As many slots as all Sandboxes of a host may have; also what a call that binds such names for fun
// has to bind before anybody is refused.
constexpr uint32_t kMostTried = 100'000;

}  // namespace

UidClaim claim_uid(uint32_t first) {
  sys::UniqueFd hold(sys::check(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket"));
  for (uint32_t uid = first; uid - first < kMostTried; ++uid) {
    const std::string name = "pyplaypen-uid-" + std::to_string(uid);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());  // man 7 unix: abstract
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    if (::bind(hold.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0)
      return {uid, std::move(hold)};
    if (errno != EADDRINUSE) sys::throw_errno("bind", name);
  }
  throw sys::Error(EADDRINUSE, "bind", "pyplaypen-uid-" + std::to_string(first) + " and those after it");
}

}  // namespace pyplaypen::supervisor
