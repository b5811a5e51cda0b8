#include "cli/namespace_flags.h"

#include <string_view>

#include "pyplaypen/error.h"

namespace pyplaypen::cli {
namespace {

Namespaces parse(std::string_view text) {
  Namespaces set;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view name = text.substr(0, comma);
    if (name == "all") {
      set = set | kDefaultNamespaces;
    } else if (const auto one = namespace_from_name(name)) {
      set.insert(*one);
    } else {
      throw Refused("--unshare: '" + std::string(name) + "' is no namespace; they are all," +
                    to_string(kAllNamespaces));
    }
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return set;
}

}  // namespace

void add_namespace_flags(CLI::App& app, NamespaceFlags& flags) {
  app.add_option("--unshare", flags.unshare,
                 "namespaces of its own, with commas: user,mount,pid,net,ipc,uts (all), cgroup; one that "
                 "this system refuses is left out and told of");
  app.add_flag("--no-network", flags.no_network, "no network at all; refused where that cannot be had");
  app.add_flag("--strict", flags.strict, "refuse to run without a namespace that was asked for");
  app.add_option("--hostname", flags.hostname, "its host name");
  app.add_flag("--mount-proc", flags.mount_proc, "a pid namespace with a /proc of its own");
  app.add_flag("--map-self", flags.map_self, "in --unshare user: stay the same user instead of becoming root");
}

supervisor::NamespaceRequest request_from(const NamespaceFlags& flags) {
  supervisor::NamespaceRequest request;
  request.namespaces = parse(flags.unshare);
  request.no_network = flags.no_network;
  request.strictness = flags.strict ? Strictness::kStrict : Strictness::kLenient;
  request.hostname = flags.hostname;
  if (flags.mount_proc) request.proc = ProcMount::kRequired;
  if (flags.map_self) request.map_to = MapTo::kSelf;
  return request;
}

}  // namespace pyplaypen::cli
