// Calls of run_call in a forked child of an embedded interpreter, as the zygote makes them.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "runtime/python/captured.h"
#include "runtime/python/run.h"
#include "runtime/wire/messages.h"

namespace pyplaypen::python {

// What the tests' main captured; every child has its copy.
Captured& captured();

struct CallOptions {
  std::string globals_provider;
  std::string type_projector;
  std::string extra_json;
  std::optional<wire::Environment> environment;
  Limits limits;
  std::string first;             // Python to run before, as a preload does
  std::function<void()> before;  // in the child, before the call; limits go here
  bool warm_up = false;
};

struct Outcome {
  bool reported = false;
  wire::Report report;
  std::string out;
  std::string err;
  int wait_status = 0;
  std::string workspace;  // gone already
  std::vector<std::pair<std::string, std::string>>
      files;  // name, content; what the call left there
};

Outcome call(const std::string& code, const CallOptions& options = {});

// call(), which must be ok: its value's JSON, else a sentence about the error.
std::string value(const std::string& code, const CallOptions& options = {});

// Runs the body in a forked child; what it returns comes back. "signal N" when it was killed.
std::string in_child(const std::function<std::string()>& body);

}  // namespace pyplaypen::python
