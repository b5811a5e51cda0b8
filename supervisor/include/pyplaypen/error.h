// Exceptions of the library: what keeps a Sandbox from being built, or a call from being tried.
#pragma once

#include <stdexcept>

namespace pyplaypen {

// Something asked for cannot be had here: a confinement, a limit, an interpreter. what() is a
// sentence that names it and the way out.
class Refused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A module named by globals_provider, type_projector or preload does not import, or is not what it
// should be.
class ExtensionError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace pyplaypen
