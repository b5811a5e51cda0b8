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

// Source of Captured::big_digits: the digits of a large int, by halves, with decimal's
// multiplication. Printing an int of a million digits takes CPython 3.11 12 s, this 0.5 s. Its
// globals: context, one of unlimited precision; Decimal; str.
inline constexpr char kBigDigitsSource[] =
    "def big_digits(number, bits):\n"
    "    powers = {}\n"
    "    def power(width):\n"
    "        known = powers.get(width)\n"
    "        if known is None:\n"
    "            if width <= 1024:\n"
    "                known = Decimal(1 << width)\n"
    "            else:\n"
    "                half = width >> 1\n"
    "                known = context.multiply(power(half), power(width - half))\n"
    "            powers[width] = known\n"
    "        return known\n"
    "    def convert(number, width):\n"
    "        if width <= 1024:\n"
    "            return Decimal(number)\n"
    "        low = width >> 1\n"
    "        high = number >> low\n"
    "        scaled = context.multiply(convert(high, width - low), power(low))\n"
    "        return context.add(scaled, convert(number - (high << low), low))\n"
    "    return str(convert(number, bits))\n";

// Must have been called once in the process, or in one that it was forked from. False with a Python
// exception set.
bool import_datetime();

}  // namespace pyplaypen::python
