// Source to code objects, the last expression apart.
#pragma once

#include <optional>
#include <string>

#include "runtime/python/captured.h"
#include "runtime/python/source.h"

namespace pyplaypen::python {

// What is to run, in this order; either may be empty.
struct Compiled {
  PyRef head;                  // statements
  PyRef tail;                  // the last statement
  bool tail_is_value = false;  // it is an expression, and tail evaluates to its value
  size_t value_at = std::string::npos;  // where in the source that begins, if at a line's start; or unknown
  bool head_starts_loops = false;  // by its looks, with asyncio.run or the like; asked where tail awaits
};

// Evaluating it gives a coroutine.
bool awaits(const PyRef& code);

// Empty with a Python exception set when the source does not compile. Top-level await is allowed:
// code objects that use it have CO_COROUTINE.
std::optional<Compiled> compile_source(const Captured& captured, const Source& source);

// The two ways of doing it; compile_source tries the first, then the second. They are told apart
// here so that a test can hold one against the other.
//
// By text: cuts the source before the last line that begins in column 0 and compiles the parts on
// their own. Since the head compiles alone, it ends outside any bracket, string and continuation,
// so both parts have the tokens that they have in the whole; where that argument does not hold, or
// a part does not compile, the answer is empty, without an exception. No syntax tree of Python
// objects is made. Measured on CPython 3.11 (python_tests, PythonCompile.DISABLED_Speed): 3 us
// instead of 7 for `1+1`, 20 instead of 39 for a program of five lines, 320 instead of 590 for ten
// classes.
std::optional<Compiled> compile_by_text(const Captured& captured, const Source& source);
// By syntax tree: always right, and the only one that reports errors.
std::optional<Compiled> compile_by_tree(const Captured& captured, const Source& source);

}  // namespace pyplaypen::python
