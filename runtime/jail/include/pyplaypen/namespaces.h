// The namespaces of man 7 namespaces as a value, and which of them can be had here.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace pyplaypen {

enum class Namespace : uint8_t {
  kUser,    // user and group IDs, capabilities
  kMount,   // the tree of mounted file systems
  kPid,     // process IDs: nothing outside can be seen or signalled, and all of it ends together
  kNet,     // no interface but a loopback of its own: no connectivity
  kIpc,     // System V objects, POSIX message queues
  kUts,     // host name
  kCgroup,  // the view of the cgroup tree
};
inline constexpr Namespace kLastNamespace = Namespace::kCgroup;

// A set of them.
class Namespaces {
 public:
  constexpr Namespaces() = default;
  constexpr Namespaces(std::initializer_list<Namespace> list) {
    for (const Namespace one : list) insert(one);
  }
  static constexpr Namespaces from_bits(uint32_t bits) {
    Namespaces set;
    set.bits_ = bits & ((2U << static_cast<unsigned>(kLastNamespace)) - 1);
    return set;
  }

  [[nodiscard]] constexpr bool contains(Namespace one) const { return (bits_ & bit(one)) != 0; }
  [[nodiscard]] constexpr bool empty() const { return bits_ == 0; }
  [[nodiscard]] constexpr uint32_t bits() const { return bits_; }
  constexpr void insert(Namespace one) { bits_ |= bit(one); }
  constexpr void erase(Namespace one) { bits_ &= ~bit(one); }

  friend constexpr Namespaces operator|(Namespaces a, Namespaces b) { return from_bits(a.bits_ | b.bits_); }
  friend constexpr Namespaces operator&(Namespaces a, Namespaces b) { return from_bits(a.bits_ & b.bits_); }
  friend constexpr Namespaces operator-(Namespaces a, Namespaces b) { return from_bits(a.bits_ & ~b.bits_); }
  bool operator==(const Namespaces&) const = default;

 private:
  static constexpr uint32_t bit(Namespace one) { return 1U << static_cast<unsigned>(one); }
  uint32_t bits_ = 0;
};

// What isolates without being noticed much. A cgroup namespace hides nothing that limits depend on,
// and confuses what looks for its own cgroup: it has to be asked for.
inline constexpr Namespaces kDefaultNamespaces{Namespace::kUser, Namespace::kMount, Namespace::kPid,
                                               Namespace::kNet,  Namespace::kIpc,   Namespace::kUts};
inline constexpr Namespaces kAllNamespaces = kDefaultNamespaces | Namespaces{Namespace::kCgroup};

std::string_view namespace_name(Namespace one);  // "user", "mount", "pid", ...
std::optional<Namespace> namespace_from_name(std::string_view name);
std::string to_string(Namespaces set);  // "user,pid,net"; "none"

// What the caller's real UID and GID become inside a user namespace. kRoot: 0, with every capability
// over these namespaces and none over the host. kSelf: they stay what they are, without capabilities.
enum class MapTo : uint8_t { kRoot, kSelf };

// What a namespace that is refused means: kLenient goes on without it and says so.
enum class Strictness : uint8_t { kLenient, kStrict };

// A /proc of its own for a pid namespace, without which /proc shows other process IDs than getpid().
// kAuto: when pid and mount namespaces are there and the kernel allows it (a container that masks
// parts of /proc does not). kRequired counts as refused where it cannot be had.
enum class ProcMount : uint8_t { kAuto, kNever, kRequired };

// Found by creating each in a short-lived child of its own, which raises no SIGCHLD. Without
// CAP_SYS_ADMIN each is tried inside a user namespace, as it will be created.
Namespaces namespaces_supported();

// A user namespace can be created, and its maps written.
bool userns_available();

}  // namespace pyplaypen
