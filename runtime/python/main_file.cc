#include "runtime/python/main_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <new>
#include <utility>

#include "runtime/python/text.h"
#include "runtime/sys/error.h"
#include "runtime/sys/unique_fd.h"

namespace pyplaypen::python {
namespace {

constexpr char kBaseName[] = "/sandbox_code.py";
constexpr char kSpawnBaseName[] = "/sandbox_main.py";
constexpr std::string_view kGuard = "if __name__ == '__main__': ";  // in the line: lines keep their numbers

// multiprocessing's and loky's function that tells a new process what to run have this name.
bool asked_by_spawn() {
  PyFrameObject* frame = PyEval_GetFrame();
  if (frame == nullptr) return false;
  const PyRef code = PyRef::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
  const PyRef name = PyRef::steal(PyObject_GetAttrString(code.get(), "co_name"));
  if (!name) {
    PyErr_Clear();
    return false;
  }
  return PyUnicode_Check(name.get()) &&
         PyUnicode_CompareWithASCIIString(name.get(), "get_preparation_data") == 0;
}

}  // namespace

MainFile::MainFile() {
  getset_[0].name = "__file__";
  getset_[0].get = &MainFile::get;
  getset_[0].set = &MainFile::set;
  getset_[0].closure = this;
}

bool MainFile::attach(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_getset, getset_}, {0, nullptr}};
  PyType_Spec spec = {"builtins.module", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  const PyRef bases = PyRef::steal(PyTuple_Pack(1, reinterpret_cast<PyObject*>(&PyModule_Type)));
  if (!bases) return false;
  const PyRef type = PyRef::steal(PyType_FromSpecWithBases(&spec, bases.get()));
  return type && PyObject_SetAttrString(module, "__class__", type.get()) == 0;
}

void MainFile::set_source(std::string_view source, std::string_view directory) {
  source_ = source;
  directory_ = directory;
}

PyObject* MainFile::get(PyObject*, void* self_pointer) noexcept {
  auto* self = static_cast<MainFile*>(self_pointer);
  if (self->assigned_) return PyRef(self->assigned_).release();
  const bool spawns = asked_by_spawn();
  const bool hidden = self->directory_.empty() ||
                      (spawns && self->source_.find("__main__") == std::string_view::npos);
  std::string& path = spawns ? self->spawn_path_ : self->path_;
  const bool written =
      !hidden && (!path.empty() || (spawns ? self->write(kSpawnBaseName, self->value_at_, path)
                                           : self->write(kBaseName, std::string_view::npos, path)));
  if (!written) {
    PyErr_SetString(PyExc_AttributeError, "module '__main__' has no attribute '__file__'");
    return nullptr;
  }
  return PyUnicode_DecodeFSDefault(path.c_str());
}

int MainFile::set(PyObject*, PyObject* value, void* self_pointer) noexcept {
  auto* self = static_cast<MainFile*>(self_pointer);
  self->assigned_ = PyRef::borrow(value);
  return 0;
}

bool MainFile::write(const char* base_name, size_t guard_at, std::string& path) noexcept {
  try {
    std::string text(source_);
    if (guard_at < text.size()) text.insert(guard_at, kGuard);
    std::string name = std::string(directory_) + base_name;
    const sys::UniqueFd file(::open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!file) return false;
    std::string_view rest = text;
    while (!rest.empty()) {
      const ssize_t written =
          sys::retry_eintr([&] { return ::write(file.get(), rest.data(), rest.size()); });
      if (written <= 0) return false;
      rest.remove_prefix(static_cast<size_t>(written));
    }
    path = std::move(name);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace pyplaypen::python
