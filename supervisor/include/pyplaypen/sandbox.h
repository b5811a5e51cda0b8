// Sandbox: Python snippets, each in a fresh child of a warm interpreter, under limits.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pyplaypen/error.h>
#include <pyplaypen/landlock.h>
#include <pyplaypen/limits.h>
#include <pyplaypen/namespaces.h>
#include <pyplaypen/process.h>
#include <pyplaypen/result.h>

namespace pyplaypen {

// limit (and "filesystem_writes", "namespaces", ...) -> what enforces it here: "hard",
// "hard_per_call", "hard_per_user", "container", "unsupported", ...; docs/enforcement.md.
using Enforcement = std::map<std::string, std::string>;

enum class OnUnenforceable { kRefuse, kWarn };
enum class SelfCheck { kYes, kNo };
enum class WriteConfinement { kNone, kLandlock };
enum class Network { kHost, kNone };
enum class HostEnvironment { kAllowList, kInherit };

struct SandboxOptions {
  int max_concurrency = 4;           // calls at a time; more wait
  int spares = -1;                   // children kept ready; -1: max_concurrency
  std::string python;                // interpreter or virtual environment; empty: $VIRTUAL_ENV, else
                                     // the one chosen at build time
  std::vector<std::string> preload;  // modules to import before the first call
  std::string globals_provider;      // "module:function", called in the child
  std::string type_projector;        // "module:function", called in the child
  HostEnvironment environment = HostEnvironment::kAllowList;  // what calls get by default
  Environment extra_environment;     // on top of that
  int threads = 1;                   // of OpenBLAS, OpenMP, MKL and numexpr in a call
  // As root, each slot runs as a UID of its own, from this one on, that no other Sandbox here uses;
  // 0: stay root. Not 65534 (nobody): what that user's calls leave (processes, shared memory) is
  // killed and removed by its UID, and other services may run as nobody.
  uid_t child_uid = 65536;
  gid_t child_gid = 65534;
  // As root, commands run as one user, whatever their slot, so that a working tree can be opened to it
  // (setfacl -m u:65534:rwX); 0: stay root.
  uid_t command_uid = 65534;
  gid_t command_gid = 65534;
  WriteConfinement confine_writes = WriteConfinement::kNone;
  // Calls read and execute beneath these paths only, and so on; their own directories come on top, and
  // the scopes are always there. The interpreter imports modules as it goes: leave it its own paths.
  std::optional<LandlockRuleset> landlock;

  // Namespaces that a slot's calls share, one call at a time; they have no capabilities in them. One
  // that this system refuses is left out with a warning, or under kStrict refused.
  Namespaces namespaces;
  Strictness strictness = Strictness::kLenient;
  // In kUser: calls are 0 there, and as root commands then run as the slot's user, too; or they stay
  // who they are without it.
  MapTo map_to = MapTo::kRoot;
  std::string hostname;               // asks for kUts as well
  ProcMount proc = ProcMount::kAuto;  // kRequired asks for kPid and kMount as well
  Network network = Network::kHost;   // kNone asks for kNet as well, and is never gone without
  // Control groups beneath which this process may make others: a directory of cgroup v2, or the directories
  // of v1's memory and pids hierarchies. Each slot has one of its own then, in which memory_bytes and
  // process_count hold for all processes of a call together. What they cannot do is told by a warning, or
  // under kStrict refused.
  std::vector<std::filesystem::path> cgroups;
  OnUnenforceable on_unenforceable = OnUnenforceable::kRefuse;
  SelfCheck self_check = SelfCheck::kYes;  // one call at construction
  std::function<void(std::string_view json_record)> audit;  // in the calling thread, once a call
  std::function<void(std::string_view sentence)> warn;      // the same; absent: stderr
  std::filesystem::path zygote;      // executable; empty: found beside the library's installation
};

struct Context {
  std::string request_id;                    // [A-Za-z0-9._-], at most 128; empty: one is made
  std::optional<Environment> environment;    // the whole environment; absent: the Sandbox's
  std::string extra_json = "{}";             // the provider's ctx["extra"]
  std::filesystem::path artifact_root;       // files move to <artifact_root>/<request_id>/
  StandardInput stdin_source;
};

class Sandbox;

// A call under way. Destroying it cancels the call and waits until nothing of it is alive. Used by
// one thread at a time.
class Call {
 public:
  Call(Call&&) noexcept;
  Call& operator=(Call&&) noexcept;
  ~Call();

  // Readable whenever advance() has something to do, the deadline included. Owned by the Call.
  int fd();
  // Does what can be done now, without waiting. True once the call has ended.
  bool advance();
  // Ends the call; the result says cancelled unless it had ended already. Does not wait.
  void cancel();
  // Waits for the end.
  void wait();
  // Valid once advance() has returned true.
  const Result& result() const;

  struct Impl;

 private:
  friend class Sandbox;
  explicit Call(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// May be used from any number of threads. Starts no thread, installs no signal handler, and its
// processes are no children that the host's wait functions would see. Must outlive its calls.
class Sandbox {
 public:
  // Starts the zygote. Throws Refused, ExtensionError, LimitError.
  explicit Sandbox(SandboxOptions options = {});
  ~Sandbox();
  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;

  // Evaluates `code` (source bytes). What happens to the code is in the result, never thrown; throws
  // LimitError and Refused for a call that cannot be tried as asked.
  Result execute(std::string_view code, const Context& context = {}, const Limits& limits = {});
  // The same without waiting.
  Call start(std::string_view code, const Context& context = {}, const Limits& limits = {});

  // Runs a program from its argv, looked up along the PATH of its environment, under the same limits,
  // identity and teardown. Ends when the program itself ends: what it left running is killed. Throws
  // LimitError and Refused for a call that cannot be tried as asked.
  ProcessResult run_process(const std::vector<std::string>& argv, const ProcessOptions& options = {},
                            const Limits& limits = {});

  const Enforcement& enforcement() const;
  // Of the embedded interpreter, such as "3.11.2".
  std::string python_version() const;

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

// One call in a Sandbox of its own.
Result execute(std::string_view code, const Context& context = {}, const Limits& limits = {},
               SandboxOptions options = {});

// What a Sandbox with these options would enforce here, without starting one.
Enforcement probe_enforcement(const SandboxOptions& options = {});

std::string_view version();  // "0.1.0"

}  // namespace pyplaypen
