// The two functions by which a user of the sandbox adds to it.
#pragma once

#include <string>

#include "runtime/python/py_ref.h"

namespace pyplaypen::python {

// A callable imported by "module:function"; empty when none is configured.
struct Extension {
  PyRef function;
  std::string name;  // as configured

  explicit operator bool() const { return static_cast<bool>(function); }
};

struct Extensions {
  Extension globals_provider;
  Extension type_projector;
  PyRef json_loads;  // for the provider's ctx["extra"]; set with a globals_provider
  // What the projector wants to see although it has a projection of its own, from the projector's
  // attribute `wants`, a collection of:
  //   "subclasses"   instances of subclasses of the plain types (namedtuple, an Enum that is a
  //   str); "non_finite"   NaN and the infinities.
  // It answers NotImplemented for what it leaves to the ordinary rule.
  bool wants_subclasses = false;
  bool wants_non_finite = false;
};

// Imports what the names say (empty: nothing). Returns what is wrong in a sentence, empty when all
// is well. Runs code of the modules. Runs in: zygote.
std::string load_extensions(const std::string& globals_provider, const std::string& type_projector,
                            Extensions& extensions);

}  // namespace pyplaypen::python
