#include "zygote/interpreter.h"

#include <Python.h>
#include <fcntl.h>
#include <malloc.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "runtime/python/call_state.h"
#include "runtime/python/py_error.h"
#include "runtime/python/sigsegv_hint.h"
#include "runtime/python/text.h"
#include "runtime/python/warm_up.h"
#include "runtime/sys/channel.h"
#include "runtime/sys/error.h"
#include "runtime/sys/proc.h"
#include "runtime/sys/raw.h"
#include "zygote/arenas.h"

namespace pyplaypen::zygote {
namespace {

constexpr char kDefaultPython[] = PYPLAYPEN_PYTHON_EXECUTABLE;
constexpr char kOwnVersion[] = PY_VERSION;

std::string minor_version(std::string_view version) {
  return std::string(version.substr(0, version.find('.', version.find('.') + 1)));
}

// What an interpreter says of its own version; throws std::runtime_error with a sentence.
std::string version_of(const std::string& python) {
  auto [read_end, write_end] = sys::pipe_pair();
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDOUT_FILENO);
  char program[] = "import sys; print('%d.%d.%d' % sys.version_info[:3])";
  std::string name = python;
  char flag_isolated[] = "-I";
  char flag_code[] = "-c";
  char* const argv[] = {name.data(), flag_isolated, flag_code, program, nullptr};
  char* const empty[] = {nullptr};
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, python.c_str(), &actions, nullptr, argv, empty);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    throw std::runtime_error("python '" + python + "' cannot be started: " + std::strerror(error) +
                             "; name an interpreter or a virtual environment");
  write_end.reset();
  std::string output;
  char buffer[256];
  for (std::string_view bytes; sys::read_pipe(read_end.get(), buffer, bytes) == sys::Received::kBytes;)
    output.append(bytes);
  int status = 0;
  ::waitpid(pid, &status, 0);
  while (!output.empty() && output.back() == '\n') output.pop_back();
  if (status != 0 || output.empty())
    throw std::runtime_error("'" + python + "' does not answer as a Python interpreter does");
  return output;
}

// The interpreter that sys.executable will name. A virtual environment may be named by its folder.
std::string choose_python(const wire::Setup& setup) {
  if (setup.python.empty()) return kDefaultPython;
  std::string python = setup.python;
  struct stat info{};
  if (::stat(python.c_str(), &info) != 0)
    throw std::runtime_error("python '" + python + "' is not there: " + std::strerror(errno));
  if (S_ISDIR(info.st_mode)) python += "/bin/python3";
  const std::string version = version_of(python);
  if (minor_version(version) != minor_version(kOwnVersion))
    throw std::runtime_error("'" + python + "' is Python " + version + ", but this build embeds " +
                             kOwnVersion + "; only packages for Python " +
                             minor_version(kOwnVersion) + " can be imported");
  return python;
}

void set_environment(const wire::Environment& environment) {
  ::clearenv();
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
}

// The standard streams that CPython builds on must not look like files that can seek: calls will
// have pipes there. /dev/null follows once they are built.
void put_pipes_on_stdio() {
  auto [read_end, write_end] = sys::pipe_pair();
  ::dup2(read_end.get(), STDIN_FILENO);
  ::dup2(write_end.get(), STDOUT_FILENO);
  ::dup2(write_end.get(), STDERR_FILENO);
}

void put_null_on_stdio() {
  const sys::UniqueFd null(sys::check(::open("/dev/null", O_RDWR | O_CLOEXEC), "open", "/dev/null"));
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null.get(), fd);
}

std::string status_text(const PyStatus& status) {
  return std::string("CPython does not start: ") + (status.err_msg != nullptr ? status.err_msg : "?");
}

// Empty, or why not.
std::string initialize(const std::string& python) {
  PyPreConfig preconfig;
  PyPreConfig_InitPythonConfig(&preconfig);
  preconfig.utf8_mode = 1;
  preconfig.use_environment = 1;
  PyStatus status = Py_PreInitialize(&preconfig);
  if (PyStatus_Exception(status)) return status_text(status);

  PyConfig config;
  PyConfig_InitPythonConfig(&config);
  config.install_signal_handlers = 1;
  config.parse_argv = 0;
  config.safe_path = 1;  // no current directory in front of the standard library
  const auto set = [&](wchar_t** field, const char* value) {
    if (!PyStatus_Exception(status)) status = PyConfig_SetBytesString(&config, field, value);
  };
  set(&config.program_name, python.c_str());
  set(&config.executable, python.c_str());
  set(&config.stdio_encoding, "utf-8");
  set(&config.stdio_errors, "backslashreplace");
  if (!PyStatus_Exception(status)) status = Py_InitializeFromConfig(&config);
  PyConfig_Clear(&config);
  return PyStatus_Exception(status) ? status_text(status) : "";
}

// Of a message that goes to the caller.
constexpr size_t kMaxFailure = 2000;

std::string python_failure() { return python::exception_line(python::take_failure().get(), kMaxFailure); }

// Empty, or why not.
std::string import_modules(const std::string& package_directory, const std::vector<std::string>& names) {
  if (!python::add_import_directory(package_directory)) return python_failure();
  for (const std::string& name : names) {
    PyObject* const module = PyImport_ImportModule(name.c_str());
    if (module == nullptr) return "preload " + name + ": " + python_failure();
    Py_DECREF(module);
  }
  return "";
}

// Most snippets import one of these; each costs a child 0.3 to 3 ms that is free here. None starts a
// thread, opens a descriptor or draws what must be a call's own.
constexpr const char* kUsualModules[] = {
    "abc",       "base64",  "bisect",   "collections", "contextlib", "copy",      "csv",    "dataclasses",
    "datetime",  "decimal", "enum",     "fractions",   "functools",  "heapq",     "inspect", "io",
    "itertools", "json",    "math",     "numbers",     "operator",   "random",    "re",     "statistics",
    "string",    "struct",  "textwrap", "time",        "traceback",  "typing",    "uuid"};

// One that a trimmed installation lacks is no failure: the code that wants it will say so.
void import_usual_modules() {
  for (const char* name : kUsualModules)
    if (PyObject* const module = PyImport_ImportModule(name); module != nullptr) {
      Py_DECREF(module);
    } else {
      PyErr_Clear();
    }
}

// What is alive now stays alive: no collection in a child has to look at it, and so copy its pages.
void freeze() {
  PyObject* const gc = PyImport_ImportModule("gc");
  if (gc != nullptr) {
    for (const char* step : {"collect", "freeze"}) Py_XDECREF(PyObject_CallMethod(gc, step, nullptr));
    Py_DECREF(gc);
  }
  PyErr_Clear();
}

// Without fastbins and with the free chunks sorted into bins, a child's first large block does not walk
// through what the zygote has freed, and so copy its pages (man 3 mallopt).
void tidy_heap() {
  constexpr size_t kLargest = 100'000;  // below M_MMAP_THRESHOLD
  ::mallopt(M_MXFAST, 0);
  std::free(std::malloc(kLargest));
}

// Files made and modules read while this lives are the calls' user's.
class ImportIdentity {
 public:
  ImportIdentity(std::optional<uid_t> uid, std::optional<gid_t> gid) : on_(uid.has_value()) {
    if (!on_) return;
    sys::check(sys::raw::setgroups(0, nullptr), "setgroups");
    sys::check(sys::raw::setresgid(static_cast<gid_t>(-1), *gid, static_cast<gid_t>(-1)), "setresgid");
    sys::check(sys::raw::setresuid(static_cast<uid_t>(-1), *uid, static_cast<uid_t>(-1)), "setresuid");
  }
  ~ImportIdentity() {
    if (!on_) return;
    (void)sys::raw::setresuid(static_cast<uid_t>(-1), 0, static_cast<uid_t>(-1));
    (void)sys::raw::setresgid(static_cast<gid_t>(-1), 0, static_cast<gid_t>(-1));
  }
  ImportIdentity(const ImportIdentity&) = delete;
  ImportIdentity& operator=(const ImportIdentity&) = delete;

 private:
  bool on_;
};

// The path that the user of the calls cannot pass, or nothing.
std::optional<std::string> barred_path(const std::string& path) {
  for (size_t slash = 1; slash != std::string::npos;) {
    slash = path.find('/', slash + 1);
    const std::string part = path.substr(0, slash);
    if (::faccessat(AT_FDCWD, part.c_str(), X_OK, AT_EACCESS) != 0) return part;
  }
  return std::nullopt;
}

}  // namespace

wire::Ready start_python(const wire::Setup& setup, std::optional<uid_t> import_as,
                         std::optional<gid_t> import_gid, Interpreter& interpreter) {
  wire::Ready ready;
  ready.python_version = kOwnVersion;
  try {
    wire::Environment environment = setup.environment;
    const std::string home = setup.base_directory + "/import";
    if (::mkdir(home.c_str(), 0700) != 0 && errno != EEXIST) sys::throw_errno("mkdir", home);
    if (import_as) sys::check(::chown(home.c_str(), *import_as, *import_gid), "chown", home);
    for (const char* name : {"HOME", "TMPDIR", "XDG_CACHE_HOME", "MPLCONFIGDIR"})
      environment.emplace(name, home);
    environment.emplace("MPLBACKEND", "Agg");
    set_environment(environment);
    const std::string python = choose_python(setup);
    const ImportIdentity identity(import_as, import_gid);
    if (const auto barred = barred_path(python)) {
      ready.failure = "the interpreter " + python + " cannot be used by the user that calls run as (UID " +
                      std::to_string(::geteuid()) + "): no way through " + *barred +
                      "; choose one that every user can read, such as /usr/bin/python3";
      return ready;
    }
    put_pipes_on_stdio();
    take_arenas_from_huge_pages();
    ready.failure = initialize(python);
    put_null_on_stdio();
    if (!ready.failure.empty()) return ready;
    python::record_fork_hooks(interpreter.fork_hooks);
    interpreter.captured = python::capture();
    import_usual_modules();
    python::install_signal_handlers();
    python::install_sigsegv_hint(-1);  // each child sets its own descriptor
    ready.extension_failed = true;
    ready.failure = import_modules(setup.package_directory, setup.preload);
    if (ready.failure.empty())
      ready.failure = python::load_extensions(setup.globals_provider, setup.type_projector, interpreter.extensions);
    if (!ready.failure.empty()) return ready;
    if (!python::stop_recording(interpreter.fork_hooks)) throw std::runtime_error(python_failure());
    interpreter.shared_state = python::find_shared_state();
    // What modules load at their first use is loaded here, once for all calls.
    python::warm_up(interpreter.captured, interpreter.extensions);
    if (const int threads = sys::thread_count(); threads != 1) {
      ready.failure = "importing started " + std::to_string(threads - 1) +
                      " thread(s); a process with threads cannot be forked safely. Preload fewer "
                      "modules, or have them start their threads at first use";
      return ready;
    }
    ready.extension_failed = false;
    freeze();
    take_arenas_from_ordinary_pages();
    tidy_heap();
    ready.mapped_bytes = sys::mapped_bytes();
  } catch (const std::exception& error) {
    ready.failure = error.what();
  }
  return ready;
}

}  // namespace pyplaypen::zygote
