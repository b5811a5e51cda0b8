// The options that run, exec and batch share: flags -> what is asked for of namespaces.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "supervisor/minded.h"

namespace pyplaypen::cli {

struct NamespaceFlags {
  std::string unshare;  // names with commas; "all"
  bool no_network = false;
  bool strict = false;
  std::string hostname;
  bool mount_proc = false;
  bool map_self = false;
};

void add_namespace_flags(CLI::App& app, NamespaceFlags& flags);

// Throws Refused for a name that is none.
supervisor::NamespaceRequest request_from(const NamespaceFlags& flags);

}  // namespace pyplaypen::cli
