#include "runtime/python/project.h"

#include <datetime.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/python/json_writer.h"
#include "runtime/python/py_error.h"
#include "runtime/python/text.h"

namespace pyplaypen::python {
namespace {

constexpr size_t kMaxMessage = 1000;
constexpr size_t kMaxRepr = 200;
constexpr size_t kMaxPlace = 200;
constexpr size_t kMaxKeyInPlace = 40;

bool is_subtype(PyObject* value, const PyRef& type) {
  return PyType_IsSubtype(Py_TYPE(value), reinterpret_cast<PyTypeObject*>(type.get())) != 0;
}

// Types that hold no other object and run no code when written.
bool is_scalar(PyTypeObject* type) {
  return type == &PyUnicode_Type || type == &PyLong_Type || type == &PyFloat_Type ||
         type == &PyBool_Type;
}

bool is_container(PyObject* value) {
  return PyList_Check(value) || PyTuple_Check(value) || PyDict_Check(value) ||
         PyAnySet_Check(value);
}

// One value's way to text. Each member returns false when the projection is over; why is in the
// report by then.
class Projection {
 public:
  Projection(const Captured& captured, const Extensions& extensions, size_t limit,
             wire::Report& report)
      : captured_(captured), extensions_(extensions), limit_(limit), report_(report), out_(limit) {}

  void run(PyObject* value) {
    if (any(value) && within_limit()) {
      report_.value_json = out_.take();
    } else if (report_.status == wire::ReportStatus::kSerialization && !place_.empty()) {
      report_.message += " (at " + place_ + ")";
    }
  }

 private:
  // A container, or a value whose projection by the projector is under way.
  class Level {
   public:
    Level(Projection& projection, PyObject* value, int& depth)
        : projection_(projection), depth_(depth), entered_(projection.enter(value, depth)) {}
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    ~Level() {
      if (!entered_) return;
      --depth_;
      --projection_.path_length_;
    }
    explicit operator bool() const { return entered_; }

   private:
    Projection& projection_;
    int& depth_;
    bool entered_;
  };

  bool any(PyObject* value);
  bool subclass_or_other(PyObject* value);
  bool integer(PyObject* value);
  void digits_of(const PyRef& ascii) {
    out_.literal({static_cast<const char*>(PyUnicode_DATA(ascii.get())),
                  static_cast<size_t>(PyUnicode_GET_LENGTH(ascii.get()))});
  }
  bool floating(PyObject* value);
  bool string(PyObject* value);
  bool text_of(PyObject* value, PyObject* text);  // `text` is a new reference or null
  bool list(PyObject* value);
  bool tuple(PyObject* value);
  bool set(PyObject* value);
  bool dict(PyObject* value);
  bool dict_subclass(PyObject* value);
  bool key(PyObject* dict, PyObject* key, PyObject* seen);
  bool item(PyObject* value, Py_ssize_t index);
  bool ask_projector(PyObject* value);

  // What the projector is offered first. Empty: it leaves the value to the ordinary rule, or
  // raised; then over_ is true.
  PyRef offer(PyObject* value);
  bool project_answer(PyObject* value, PyObject* answer);

  bool enter(PyObject* value, int& depth);
  bool room_for(Py_ssize_t items, size_t bytes_each);
  bool within_limit();
  bool refuse(PyObject* value, std::string message);
  bool fail(PyObject* value);
  void at(const std::string& step) {
    if (place_.size() < kMaxPlace)
      place_ = std::string("[").append(step).append("]").append(place_);
  }

  const Captured& captured_;
  const Extensions& extensions_;
  const size_t limit_;
  wire::Report& report_;
  JsonWriter out_;
  int depth_ = 0;
  int answers_ = 0;
  std::array<PyObject*, 2 * kMaxDepth> path_ = {};
  int path_length_ = 0;
  bool over_ = false;
  std::string place_;  // of what was refused, built from the inside
};

bool Projection::any(PyObject* value) {
  PyTypeObject* type = Py_TYPE(value);
  if (type == &PyUnicode_Type) return string(value);
  if (type == &PyLong_Type) return integer(value);
  if (type == &PyFloat_Type) return floating(value);
  if (value == Py_None) return out_.literal("null"), true;
  if (value == Py_True) return out_.literal("true"), true;
  if (value == Py_False) return out_.literal("false"), true;
  if (type == &PyList_Type) return list(value);
  if (type == &PyDict_Type) return dict(value);
  if (type == &PyTuple_Type) return tuple(value);
  if (type == &PySet_Type || type == &PyFrozenSet_Type) return set(value);
  return subclass_or_other(value);
}

bool Projection::subclass_or_other(PyObject* value) {
  const PyTypeObject* type = Py_TYPE(value);
  const bool is_date = PyDate_Check(value);  // datetime is a date
  const bool is_time = PyTime_Check(value);
  const bool is_plain = PyUnicode_Check(value) || PyLong_Check(value) || PyFloat_Check(value) ||
                        is_container(value) || is_date || is_time;
  const bool is_decimal = !is_plain && is_subtype(value, captured_.decimal);
  const bool is_path = !is_plain && !is_decimal && is_subtype(value, captured_.pure_path);
  if (!is_plain && !is_decimal && !is_path) return ask_projector(value);

  const bool exact = PyDateTime_CheckExact(value) || PyDate_CheckExact(value) ||
                     PyTime_CheckExact(value) || is_path ||
                     reinterpret_cast<const PyObject*>(type) == captured_.decimal.get();
  if (extensions_.wants_subclasses && !exact) {
    const PyRef answer = offer(value);
    if (over_) return false;
    if (answer) return project_answer(value, answer.get());
  }
  if (is_date || is_time) {
    return text_of(value, PyObject_CallMethod(value, "isoformat", nullptr));
  }
  if (is_decimal || is_path) return text_of(value, PyObject_Str(value));
  if (PyUnicode_Check(value)) return string(value);
  if (PyLong_Check(value)) return integer(value);
  if (PyFloat_Check(value)) return floating(value);
  if (PyList_Check(value)) return list(value);
  if (PyTuple_Check(value)) return tuple(value);
  if (PyDict_Check(value)) return dict_subclass(value);
  return set(value);
}

bool Projection::integer(PyObject* value) {
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (overflow == 0) return out_.integer(number), true;

  // Up to the range of a double the ordinary conversion is never refused (it allows 640 digits at
  // least). Called through the type: a subclass's own is not asked.
  if (PyLong_AsDouble(value) != -1.0 || PyErr_Occurred() == nullptr) {
    const PyRef digits = PyRef::steal(PyLong_Type.tp_repr(value));
    if (!digits) return fail(value);
    digits_of(digits);
    return true;
  }
  PyErr_Clear();
  const PyRef length = PyRef::steal(PyObject_CallOneArg(captured_.int_bit_length.get(), value));
  const size_t bits = length ? PyLong_AsSize_t(length.get()) : 0;
  if (PyErr_Occurred() != nullptr) return fail(value);
  constexpr double kDigitsInBit = 0.301029995;  // just below log10(2)
  if (out_.refuses(static_cast<size_t>(static_cast<double>(bits) * kDigitsInBit))) {
    return within_limit();
  }
  const PyRef magnitude = PyRef::steal(PyLong_Type.tp_as_number->nb_absolute(value));
  const PyRef digits =
      magnitude ? PyRef::steal(PyObject_CallFunctionObjArgs(captured_.big_digits.get(),
                                                            magnitude.get(), length.get(), nullptr))
                : PyRef();
  if (!digits || !PyUnicode_Check(digits.get())) return fail(value);
  if (overflow < 0) out_.character('-');
  digits_of(digits);
  return true;
}

bool Projection::floating(PyObject* value) {
  const double number = PyFloat_AS_DOUBLE(value);
  if (std::isfinite(number)) return out_.finite_double(number), true;
  if (extensions_.wants_non_finite) {
    const PyRef answer = offer(value);
    if (over_) return false;
    if (answer) return project_answer(value, answer.get());
  }
  return refuse(
      value, std::string(std::isnan(number) ? "NaN" : "an infinite float") + " has no JSON form");
}

bool Projection::string(PyObject* value) {
  if (out_.string(value)) return true;
  return refuse(value, "a str with a lone surrogate has no UTF-8 form");
}

bool Projection::text_of(PyObject* value, PyObject* text) {
  const PyRef owned = PyRef::steal(text);
  if (!owned) return fail(value);
  if (!PyUnicode_Check(text)) return refuse(value, "its text is not a str");
  return string(text);
}

bool Projection::item(PyObject* value, Py_ssize_t index) {
  // What runs no code cannot lose its container's reference meanwhile.
  const PyRef held = is_scalar(Py_TYPE(value)) ? PyRef() : PyRef::borrow(value);
  if (any(value)) {
    if (!out_.full()) return true;
    return within_limit();
  }
  at(std::to_string(index));
  return false;
}

bool Projection::list(PyObject* value) {
  const Level level(*this, value, depth_);
  if (!level || !room_for(PyList_GET_SIZE(value), 2)) return false;
  out_.character('[');
  // The size anew each time: projecting an item may change the list.
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(value); ++i) {
    if (i > 0) out_.character(',');
    if (!item(PyList_GET_ITEM(value, i), i)) return false;
  }
  out_.character(']');
  return true;
}

bool Projection::tuple(PyObject* value) {
  const Level level(*this, value, depth_);
  if (!level || !room_for(PyTuple_GET_SIZE(value), 2)) return false;
  out_.character('[');
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i) {
    if (i > 0) out_.character(',');
    if (!item(PyTuple_GET_ITEM(value, i), i)) return false;
  }
  out_.character(']');
  return true;
}

bool Projection::set(PyObject* value) {
  const Level level(*this, value, depth_);
  if (!level || !room_for(PySet_GET_SIZE(value), 2)) return false;
  const PyRef items = PyRef::steal(PySequence_List(value));  // may run the subclass's __iter__
  if (!items) return fail(value);
  out_.character('[');
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
    if (i > 0) out_.character(',');
    if (!item(PyList_GET_ITEM(items.get(), i), i)) return false;
  }
  out_.character(']');
  return true;
}

// `seen`: the keys so far, or null when the kinds of the keys exclude a collision.
bool Projection::key(PyObject* dict, PyObject* key, PyObject* seen) {
  if (PyUnicode_CheckExact(key) && seen == nullptr) return string(key);
  if (PyLong_CheckExact(key) && seen == nullptr) {
    out_.character('"');
    if (!integer(key)) return false;
    out_.character('"');
    return true;
  }
  const PyRef text =
      PyUnicode_CheckExact(key) ? PyRef::borrow(key) : PyRef::steal(PyObject_Str(key));
  if (!text) return fail(key);
  // Exact, so that a set of them compares them without running code.
  const PyRef exact =
      PyUnicode_CheckExact(text.get()) ? text : PyRef::steal(PyUnicode_FromObject(text.get()));
  if (!exact) return fail(key);
  const int known = PySet_Contains(seen, exact.get());
  if (known < 0 || PySet_Add(seen, exact.get()) != 0) return fail(key);
  if (known == 1) {
    return refuse(dict, "two keys become the same string '" +
                            bounded_utf8(exact.get(), kMaxKeyInPlace) + "'");
  }
  return string(exact.get());
}

bool Projection::dict(PyObject* value) {
  const Level level(*this, value, depth_);
  if (!level || !room_for(PyDict_Size(value), 5)) return false;  // "":0,
  PyObject* name = nullptr;
  PyObject* content = nullptr;
  bool all_strings = true;
  bool all_integers = true;
  for (Py_ssize_t position = 0; PyDict_Next(value, &position, &name, &content) != 0;) {
    all_strings = all_strings && PyUnicode_CheckExact(name);
    all_integers = all_integers && PyLong_CheckExact(name);
  }
  PyRef seen;
  if (!all_strings && !all_integers) {
    seen = PyRef::steal(PySet_New(nullptr));
    if (!seen) return fail(value);
  }
  const Py_ssize_t size = PyDict_Size(value);
  out_.character('{');
  Py_ssize_t index = 0;
  for (Py_ssize_t position = 0; PyDict_Next(value, &position, &name, &content) != 0; ++index) {
    const PyRef held_name = PyRef::borrow(name);
    const PyRef held = PyRef::borrow(content);
    if (index > 0) out_.character(',');
    // Kinds that appear only now: a key was added meanwhile.
    if (!seen && !PyUnicode_CheckExact(name) && !PyLong_CheckExact(name)) {
      return refuse(value, "the dict changed while it was projected");
    }
    if (!key(value, name, seen.get())) return false;
    out_.character(':');
    if (!any(content)) {
      at(bounded_repr(held_name.get(), kMaxKeyInPlace));
      return false;
    }
    if (PyDict_Size(value) != size) {
      return refuse(value, "the dict changed while it was projected");
    }
    if (!within_limit()) return false;
  }
  out_.character('}');
  return true;
}

// An OrderedDict's order is not that of its table, and a subclass may have its own idea of items().
bool Projection::dict_subclass(PyObject* value) {
  const Level level(*this, value, depth_);
  if (!level || !room_for(PyDict_Size(value), 5)) return false;
  const PyRef items = PyRef::steal(PyMapping_Items(value));
  if (!items) return fail(value);
  const PyRef seen = PyRef::steal(PySet_New(nullptr));
  if (!seen) return fail(value);
  out_.character('{');
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
    const PyRef pair = PyRef::borrow(PyList_GET_ITEM(items.get(), i));
    if (!PyTuple_Check(pair.get()) || PyTuple_GET_SIZE(pair.get()) != 2) {
      return refuse(value, "its items() are not pairs");
    }
    if (i > 0) out_.character(',');
    PyObject* name = PyTuple_GET_ITEM(pair.get(), 0);
    if (!key(value, name, seen.get())) return false;
    out_.character(':');
    if (!any(PyTuple_GET_ITEM(pair.get(), 1))) {
      at(bounded_repr(name, kMaxKeyInPlace));
      return false;
    }
    if (!within_limit()) return false;
  }
  out_.character('}');
  return true;
}

PyRef Projection::offer(PyObject* value) {
  PyRef answer =
      PyRef::steal(PyObject_CallOneArg(extensions_.type_projector.function.get(), value));
  if (!answer) return fail(value), PyRef();
  return answer.get() == Py_NotImplemented ? PyRef() : answer;
}

bool Projection::ask_projector(PyObject* value) {
  const PyRef answer = extensions_.type_projector ? offer(value) : PyRef();
  if (over_) return false;
  if (answer) return project_answer(value, answer.get());
  std::string message = "a value of type " + type_name(Py_TYPE(value)) + " has no JSON form";
  message += extensions_.type_projector
                 ? " and " + extensions_.type_projector.name + " gives it none"
                 : "; return plain data, or configure a type_projector";
  return refuse(value, message);
}

bool Projection::project_answer(PyObject* value, PyObject* answer) {
  const Level level(*this, value, answers_);
  if (!level) return false;
  return any(answer) && within_limit();
}

bool Projection::enter(PyObject* value, int& depth) {
  if (std::find(path_.begin(), path_.begin() + path_length_, value) !=
      path_.begin() + path_length_) {
    return refuse(value, "a cycle: the value contains itself");
  }
  if (depth == kMaxDepth) {
    return refuse(value, &depth == &depth_
                             ? "nested deeper than " + std::to_string(kMaxDepth) + " levels"
                             : "the type_projector answers with what it has to project again, " +
                                   std::to_string(kMaxDepth) + " times");
  }
  ++depth;
  path_[static_cast<size_t>(path_length_++)] = value;
  return true;
}

bool Projection::room_for(Py_ssize_t items, size_t bytes_each) {
  if (items > 0 && static_cast<size_t>(items) > limit_ / bytes_each + 1) out_.give_up();
  return within_limit();
}

bool Projection::within_limit() {
  if (!out_.full() || over_) return !over_;
  over_ = true;
  report_.status = wire::ReportStatus::kReturnLimit;
  report_.message =
      "the value's JSON is larger than return_value_bytes (" + std::to_string(limit_) + ")";
  return false;
}

bool Projection::refuse(PyObject* value, std::string message) {
  over_ = true;
  report_.status = wire::ReportStatus::kSerialization;
  report_.message = std::move(message);
  report_.value_type = type_name(Py_TYPE(value));
  if (is_container(value)) {
    const Py_ssize_t size = PyObject_Size(value);  // its repr would show all that is in it
    if (size < 0) PyErr_Clear();
    report_.value_repr = std::string("<").append(report_.value_type).append(" of ");
    report_.value_repr += std::to_string(size) + (size == 1 ? " item>" : " items>");
  } else {
    report_.value_repr = bounded_repr(value, kMaxRepr);
  }
  return false;
}

bool Projection::fail(PyObject* value) {
  const PyRef exception = take_failure();
  if (PyErr_GivenExceptionMatches(exception.get(), PyExc_MemoryError) != 0) {
    over_ = true;
    report_.status = wire::ReportStatus::kMemoryLimit;
    report_.message = "MemoryError while the value was projected";
    return false;
  }
  return refuse(value, "projecting a value of type " + type_name(Py_TYPE(value)) + " raised " +
                           exception_line(exception.get(), kMaxMessage));
}

}  // namespace

bool import_datetime() {
  PyDateTime_IMPORT;
  return PyDateTimeAPI != nullptr;
}

void project(const Captured& captured, const Extensions& extensions, PyObject* value, size_t limit,
             wire::Report& report) {
  Projection(captured, extensions, limit, report).run(value);
}

}  // namespace pyplaypen::python
