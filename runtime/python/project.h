// A value to JSON text.
#pragma once

#include <cstddef>
#include <string>

#include "runtime/python/captured.h"
#include "runtime/python/extensions.h"
#include "runtime/wire/messages.h"

namespace pyplaypen::python {

// Containers within containers, and answers of the type_projector to its own answers.
inline constexpr int kMaxDepth = 50;

// Sets the report's value_json, or its status, message, value_type and value_repr. What is
// projected how: docs/projection.md.
//
// Runs code of the value's classes and of the type_projector; whatever that raises ends up in the
// report. Takes memory for the text and for little else: the limit is looked at before anything
// large is copied. Throws std::bad_alloc, no Python exception is left set then.
void project(const Captured& captured, const Extensions& extensions, PyObject* value, size_t limit,
             wire::Report& report);

// Must have been called once in the process, or in one that it was forked from. False with a Python
// exception set.
bool import_datetime();

}  // namespace pyplaypen::python
