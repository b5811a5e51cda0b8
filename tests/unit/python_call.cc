#include "tests/unit/python_call.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "runtime/python/call_state.h"
#include "runtime/python/warm_up.h"

namespace pyplaypen::python {
namespace {

Captured* the_captured = nullptr;

void put(std::string& to, uint64_t number) { to.append(reinterpret_cast<char*>(&number), 8); }
void put(std::string& to, const std::string& text) {
  put(to, text.size());
  to += text;
}
uint64_t get_number(const std::string& from, size_t& at) {
  uint64_t number = 0;
  std::memcpy(&number, from.data() + at, 8);
  at += 8;
  return number;
}
std::string get_text(const std::string& from, size_t& at) {
  const uint64_t size = get_number(from, at);
  at += size;
  return from.substr(at - size, size);
}

std::string pack(const wire::Report& report) {
  std::string bytes;
  put(bytes, static_cast<uint64_t>(report.status));
  for (const std::string* text : {&report.value_json, &report.message, &report.traceback,
                                  &report.value_type, &report.value_repr}) {
    put(bytes, *text);
  }
  put(bytes, static_cast<uint64_t>(report.line.value_or(-1)));
  put(bytes, report.exit_code ? 1 : 0);
  put(bytes, static_cast<uint64_t>(report.exit_code.value_or(0)));
  put(bytes, report.cpu_microseconds);
  put(bytes, report.max_rss_bytes);
  return bytes;
}

wire::Report unpack(const std::string& bytes) {
  wire::Report report;
  size_t at = 0;
  report.status = static_cast<wire::ReportStatus>(get_number(bytes, at));
  for (std::string* text : {&report.value_json, &report.message, &report.traceback,
                            &report.value_type, &report.value_repr}) {
    *text = get_text(bytes, at);
  }
  const auto line = static_cast<int64_t>(get_number(bytes, at));
  if (line >= 0) report.line = line;
  const bool has_code = get_number(bytes, at) != 0;
  const auto code = static_cast<int64_t>(get_number(bytes, at));
  if (has_code) report.exit_code = code;
  report.cpu_microseconds = get_number(bytes, at);
  report.max_rss_bytes = get_number(bytes, at);
  return report;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string read_all(int fd) {
  std::string text;
  char block[65536];
  for (ssize_t got = 0; (got = ::read(fd, block, sizeof block)) > 0;) {
    text.append(block, static_cast<size_t>(got));
  }
  return text;
}

void write_all(int fd, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t written = ::write(fd, text.data() + at, text.size() - at);
    if (written <= 0) return;
    at += static_cast<size_t>(written);
  }
}

pid_t fork_python() {
  std::cout.flush();
  std::fflush(nullptr);
  PyOS_BeforeFork();
  const pid_t pid = ::fork();
  if (pid == 0) {
    PyOS_AfterFork_Child();
  } else {
    PyOS_AfterFork_Parent();
  }
  return pid;
}

void redirect(const std::string& path, int to) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  ::dup2(fd, to);
  ::close(fd);
}

}  // namespace

Captured& captured() { return *the_captured; }

std::string in_child(const std::function<std::string()>& body) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return "pipe2 failed";
  const pid_t pid = fork_python();
  if (pid == 0) {
    ::close(ends[0]);
    write_all(ends[1], body());
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string text = read_all(ends[0]);
  ::close(ends[0]);
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status));
  return text;
}

Outcome call(const std::string& code, const CallOptions& options) {
  namespace fs = std::filesystem;
  char base_template[] = "/tmp/pyplaypen-test-XXXXXX";
  const std::string base = ::mkdtemp(base_template);
  const std::string workspace = base + "/work";
  const std::string private_directory = base + "/private";
  fs::create_directory(workspace);
  fs::create_directory(private_directory);

  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  const pid_t pid = fork_python();
  if (pid == 0) {
    ::close(ends[0]);
    redirect("/dev/null", 0);
    redirect(base + "/out", 1);
    redirect(base + "/err", 2);
    if (::chdir(workspace.c_str()) != 0) ::_exit(99);
    if (!options.first.empty() && PyRun_SimpleString(options.first.c_str()) != 0) ::_exit(98);
    Extensions extensions;
    const std::string problem =
        load_extensions(options.globals_provider, options.type_projector, extensions);
    if (!problem.empty()) {
      wire::Report report;
      report.status = wire::ReportStatus::kExtension;
      report.message = problem;
      write_all(ends[1], pack(report));
      ::_exit(0);
    }
    if (options.warm_up) warm_up(captured(), extensions);
    if (!settle(captured(), find_shared_state()).empty()) ::_exit(97);
    wire::Request request;
    request.request_id = "call-1";
    request.code = code;
    request.extra_json = options.extra_json;
    request.environment = options.environment;
    request.limits = options.limits;
    if (options.before) options.before();
    write_all(ends[1], pack(run_call(captured(), extensions, request,
                                     {workspace, private_directory, ::getpid()})));
    ::_exit(0);
  }
  ::close(ends[1]);
  const std::string bytes = read_all(ends[0]);
  ::close(ends[0]);
  Outcome outcome;
  ::waitpid(pid, &outcome.wait_status, 0);
  outcome.reported = !bytes.empty();
  if (outcome.reported) outcome.report = unpack(bytes);
  outcome.out = read_file(base + "/out");
  outcome.err = read_file(base + "/err");
  outcome.workspace = workspace;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(workspace, ignored)) {
    if (entry.is_regular_file()) {
      outcome.files.emplace_back(entry.path().filename(), read_file(entry.path()));
    }
  }
  fs::remove_all(base, ignored);
  return outcome;
}

std::string value(const std::string& code, const CallOptions& options) {
  const Outcome outcome = call(code, options);
  if (!outcome.reported) return "no report, wait status " + std::to_string(outcome.wait_status);
  if (outcome.report.status != wire::ReportStatus::kOk) {
    return "status " + std::to_string(static_cast<int>(outcome.report.status)) + ": " +
           outcome.report.message;
  }
  return outcome.report.value_json;
}

}  // namespace pyplaypen::python

int main(int argc, char** argv) {
  using namespace pyplaypen::python;
  ::testing::InitGoogleTest(&argc, argv);
  ::setenv("OPENBLAS_NUM_THREADS", "1", 1);
  ::setenv("OMP_NUM_THREADS", "1", 1);
  ::setenv("NUMEXPR_MAX_THREADS", "1", 1);
  PyConfig config;
  PyConfig_InitPythonConfig(&config);
  config.parse_argv = 0;
  config.write_bytecode = 0;
  PyConfig_SetBytesString(&config, &config.program_name, PYPLAYPEN_TEST_PYTHON);
  PyConfig_SetBytesString(&config, &config.executable, PYPLAYPEN_TEST_PYTHON);
  const PyStatus status = Py_InitializeFromConfig(&config);
  PyConfig_Clear(&config);
  if (PyStatus_Exception(status)) Py_ExitStatusException(status);
  Captured instance = capture();
  the_captured = &instance;
  install_signal_handlers();
  PyRun_SimpleString("import sys; sys.path.insert(0, '" PYPLAYPEN_TEST_SHARE "'); del sys");
  PyRun_SimpleString("import gc; gc.collect(); gc.freeze(); del gc");
  const int result = RUN_ALL_TESTS();
  std::cout.flush();
  std::fflush(nullptr);
  ::_exit(result);  // the interpreter's memory is the process's
}
