// `__main__.__file__`: a real file with the call's source, written when somebody first asks for it.
#pragma once

#include <string>
#include <string_view>

#include "runtime/python/py_ref.h"

namespace pyplaypen::python {

// inspect.getsource of a class and multiprocessing's spawn both read the file that the `__main__`
// module names. Few calls do either, so the file is made on demand, in the call's private
// directory, where it is no artifact.
//
// spawn runs that file again in the new process, which only works for code that guards its main
// part by `if __name__ == '__main__'`. For code without a guard spawn is told that there is no
// file, as in an interactive session: its processes then start with an empty `__main__`, and
// anything importable can be their target. With a guard the last expression is kept to the call: it
// is there for its value, of names that the guarded part makes.
//
// Address-stable: the type of `__main__` points here.
class MainFile {
 public:
  MainFile();
  MainFile(const MainFile&) = delete;
  MainFile& operator=(const MainFile&) = delete;
  ~MainFile() = default;

  // Gives the module a type of its own that answers `__file__` from here. False with a Python
  // exception set. Runs in: zygote.
  bool attach(PyObject* module);

  // The source and the directory of the call; both must outlive the call. Runs in: child.
  void set_source(std::string_view source, std::string_view directory);
  // Where in the source the last expression begins, at the start of a line; npos: nowhere.
  void set_value(size_t begins_at) { value_at_ = begins_at; }

 private:
  static PyObject* get(PyObject* module, void* self) noexcept;
  static int set(PyObject* module, PyObject* value, void* self) noexcept;
  bool write(const char* base_name, size_t guard_at, std::string& path) noexcept;

  PyGetSetDef getset_[2] = {};
  std::string_view source_;
  std::string_view directory_;
  size_t value_at_ = std::string_view::npos;
  std::string path_;        // empty: not written yet
  std::string spawn_path_;  // the same, with the last expression guarded
  PyRef assigned_;          // what the code itself set
};

}  // namespace pyplaypen::python
