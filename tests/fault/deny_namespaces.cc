// Runs a command where some namespaces are refused with EPERM, as in a container:
//
//   deny_namespaces NAME[,NAME...] -- COMMAND [ARGUMENT]...
//
// Exit status 125 for a usage error or where seccomp is missing; else the command's own.
#include "tests/fault/deny_namespaces.h"

#include <cstdio>
#include <cstring>
#include <string_view>

#include "pyplaypen/namespaces.h"
#include "runtime/jail/namespaces.h"

namespace {

constexpr int kFailed = 125;

}  // namespace

int main(int argc, char** argv) {
  pyplaypen::Namespaces denied;
  std::string_view names = argc > 3 && std::string_view(argv[2]) == "--" ? argv[1] : "";
  while (!names.empty()) {
    const size_t comma = names.find(',');
    if (const auto one = pyplaypen::namespace_from_name(names.substr(0, comma))) denied.insert(*one);
    names.remove_prefix(comma == std::string_view::npos ? names.size() : comma + 1);
  }
  if (denied.empty()) {
    std::fprintf(stderr, "usage: deny_namespaces NAME[,NAME...] -- COMMAND [ARGUMENT]...\n");
    return kFailed;
  }
  if (!pyplaypen::testing::deny_namespaces(static_cast<unsigned>(pyplaypen::jail::clone_flags(denied)))) {
    std::fprintf(stderr, "deny_namespaces: seccomp: %s\n", std::strerror(errno));
    return kFailed;
  }
  ::execvp(argv[3], argv + 3);
  std::fprintf(stderr, "deny_namespaces: %s: %s\n", argv[3], std::strerror(errno));
  return kFailed;
}
