#include "pyplaypen/sandbox.h"

#include <signal.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "runtime/jail/landlock.h"
#include "runtime/wire/json_text.h"
#include "supervisor/audit.h"
#include "supervisor/call.h"
#include "supervisor/cgroup_offer.h"
#include "supervisor/direct_policy.h"
#include "supervisor/enforcement.h"
#include "supervisor/minded.h"
#include "supervisor/pool.h"
#include "supervisor/way_out.h"
#include "supervisor/zygote_process.h"

extern "C" char** environ;

namespace pyplaypen {
namespace {

constexpr int kMaxConcurrency = 1024;
constexpr size_t kMaxRequestId = 128;
constexpr size_t kMaxCgroups = 8;
constexpr int kMaxExtraDepth = 256;
constexpr size_t kMaxCode = size_t{256} << 20;
constexpr char kDefaultPath[] = "/usr/local/bin:/usr/bin:/bin";

bool is_allowed_name(std::string_view name) {
  for (const std::string_view allowed : {"PATH", "LANG", "TZ", "PYTHONPATH", "VIRTUAL_ENV"})
    if (name == allowed) return true;
  return name.starts_with("LC_");
}

// What belongs to the host's own user and is each call's own instead.
bool is_private_name(std::string_view name) {
  for (const std::string_view own :
       {"HOME", "TMPDIR", "XDG_CACHE_HOME", "MPLCONFIGDIR", "USER", "LOGNAME"})
    if (name == own) return true;
  return false;
}

Environment call_environment(const SandboxOptions& options) {
  Environment environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view pair = *entry;
    const size_t equals = pair.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    const std::string_view name = pair.substr(0, equals);
    const bool inherit = options.environment == HostEnvironment::kInherit && !is_private_name(name);
    if (inherit || is_allowed_name(name)) environment.emplace(name, pair.substr(equals + 1));
  }
  environment.emplace("PATH", kDefaultPath);
  // Before the zygote's first import: a library that starts threads then cannot be forked safely.
  for (const char* name : {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS",
                           "NUMEXPR_NUM_THREADS", "NUMEXPR_MAX_THREADS"})
    environment.insert_or_assign(name, std::to_string(options.threads));
  for (const auto& [name, value] : options.extra_environment) environment.insert_or_assign(name, value);
  return environment;
}

std::string make_request_id() {
  unsigned char bytes[16];
  size_t filled = 0;
  while (filled < sizeof bytes) {
    const ssize_t got = ::getrandom(bytes + filled, sizeof bytes - filled, 0);
    if (got > 0) filled += static_cast<size_t>(got);
  }
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string id;
  for (const unsigned char byte : bytes) {
    id.push_back(kDigits[byte >> 4]);
    id.push_back(kDigits[byte & 15]);
  }
  return id;
}

void check_request_id(const std::string& id) {
  const auto good = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '_' || c == '-';
  };
  if (id.size() <= kMaxRequestId && !id.starts_with('.') && std::all_of(id.begin(), id.end(), good)) return;
  throw Refused("request_id '" + id + "' must be at most 128 letters, digits, '.', '_' or '-' and not begin "
                "with a dot: it names the directory of the call's artifacts");
}

void check_environment(const Environment& environment) {
  for (const auto& [name, value] : environment)
    if (name.empty() || name.find('=') != std::string::npos || name.find('\0') != std::string::npos ||
        value.find('\0') != std::string::npos)
      throw Refused("environment variable '" + name + "' cannot be set: a name is not empty and holds no "
                    "'=', and neither name nor value holds a NUL byte");
}

void check_options(const SandboxOptions& options) {
  if (options.max_concurrency < 1 || options.max_concurrency > kMaxConcurrency)
    throw Refused("max_concurrency=" + std::to_string(options.max_concurrency) + " must be from 1 to 1024");
  if (options.spares < -1 || options.spares > kMaxConcurrency)
    throw Refused("spares=" + std::to_string(options.spares) + " must be from 0 to 1024, or -1 for max_concurrency");
  if (options.threads < 1)
    throw Refused("threads=" + std::to_string(options.threads) + " must be at least 1");
  if (options.cgroups.size() > kMaxCgroups)
    throw Refused("cgroups has " + std::to_string(options.cgroups.size()) + " directories; cgroup v1 has two that matter here");
  check_environment(options.extra_environment);
}

ProcessResult::Status process_status(const std::optional<ErrorInfo>& error) {
  if (!error) return ProcessResult::Status::kOk;
  switch (error->type) {
    case ErrorType::kTimeout: return ProcessResult::Status::kTimeout;
    case ErrorType::kBusy: return ProcessResult::Status::kBusy;
    case ErrorType::kCancelled: return ProcessResult::Status::kCancelled;
    default: return ProcessResult::Status::kInternal;
  }
}

ProcessResult process_result(Call::Impl& call, const Limits& limits) {
  ProcessResult result;
  result.status = process_status(call.result.error);
  result.timed_out = result.status == ProcessResult::Status::kTimeout;
  if (call.result.error) result.message = call.result.error->message;
  result.start_error = call.start_error;
  result.stdout_output = std::move(call.result.stdout_output);
  result.stderr_output = std::move(call.result.stderr_output);
  result.usage = call.result.usage;
  if (const auto status = call.wait_status(); status && result.status != ProcessResult::Status::kInternal) {
    result.returncode = WIFSIGNALED(*status) ? -WTERMSIG(*status) : WEXITSTATUS(*status);
    const bool used_up = result.usage.cpu_ms >= limits.cpu_seconds * 1000;
    if (!result.timed_out && WIFSIGNALED(*status) &&
        (WTERMSIG(*status) == SIGXCPU || (WTERMSIG(*status) == SIGKILL && used_up)))
      result.message = "cpu_seconds=" + limit_text(limits, "cpu_seconds") + " exceeded";
    if (WIFSIGNALED(*status) && WTERMSIG(*status) == SIGKILL && !result.timed_out && call.out_of_memory())
      result.message = supervisor::memory_used_up(limits);
  }
  return result;
}

}  // namespace

struct Sandbox::Impl {
  explicit Impl(SandboxOptions given) : options(std::move(given)) {
    check_options(options);
    const supervisor::Host host = supervisor::look_at_host(options.child_uid);
    supervisor::refuse_missing(options, host);
    const supervisor::NamespacePlan inside = try_namespaces();
    const supervisor::CgroupOffer cgroup = supervisor::try_cgroups(options.cgroups);
    if (const std::string gap = supervisor::cgroup_gap(options, host, cgroup); !gap.empty()) {
      if (options.strictness == Strictness::kStrict) throw Refused(gap);
      warn(gap);
    }
    enforcement = supervisor::enforcement_for(options, host, inside.namespaces, cgroup);
    for (const std::string& note : inside.notes) warn(note);
    if (const std::string gap = supervisor::unenforceable(enforcement); !gap.empty()) {
      if (options.on_unenforceable == OnUnenforceable::kRefuse) throw Refused(gap);
      warn(gap);
    }

    supervisor::PoolOptions pool_options;
    pool_options.max_concurrency = options.max_concurrency;
    pool_options.spares = options.spares < 0 ? options.max_concurrency : options.spares;
    if (supervisor::drops_root(options, host)) {
      pool_options.first_uid = *host.first_uid;
      pool_options.gid = options.child_gid;
    }
    if (cgroup.memory || cgroup.processes) pool_options.cgroups = supervisor::cgroup_paths(options.cgroups);
    pool_options.zygote = supervisor::find_zygote(options.zygote);

    wire::Setup setup;
    setup.package_directory =
        (pool_options.zygote.parent_path().parent_path().parent_path() / "share/pyplaypen/python").string();
    environment = call_environment(options);
    setup.environment = environment;
    setup.python = options.python;
    if (const auto active = setup.environment.find("VIRTUAL_ENV");
        setup.python.empty() && active != setup.environment.end())
      setup.python = active->second;
    setup.preload = options.preload;
    setup.globals_provider = options.globals_provider;
    setup.type_projector = options.type_projector;
    setup.confine_writes = options.confine_writes == WriteConfinement::kLandlock;
    set_namespaces(setup, inside);
    if (options.landlock) set_landlock(setup, *options.landlock);
    pool.emplace(std::move(pool_options), std::move(setup));
    if (options.audit)
      audit = [this](const Result& result, const Limits& limits) {
        options.audit(supervisor::audit_record(result, limits, enforcement));
      };
    if (options.self_check == SelfCheck::kYes) check_self();
  }

  std::unique_ptr<Call::Impl> start(std::string_view code, const Context& context, const Limits& limits,
                                    supervisor::AuditSink sink) {
    check_limits(limits);
    wire::Request request;
    request.request_id = context.request_id.empty() ? make_request_id() : context.request_id;
    check_request_id(request.request_id);
    if (const auto wrong = wire::json_error(context.extra_json, kMaxExtraDepth))
      throw Refused("extra is not JSON: " + *wrong);
    if (context.environment) check_environment(*context.environment);
    if (code.size() > kMaxCode)
      throw Refused("the code of " + std::to_string(code.size()) + " bytes is larger than " +
                    std::to_string(kMaxCode) + "; pass data as a file (stdin, artifact) instead");
    pool->check_memory(limits);
    request.code = code;
    request.extra_json = context.extra_json;
    request.environment = context.environment;
    request.limits = limits;
    auto call = std::make_unique<Call::Impl>(*pool, std::move(request), context, std::move(sink));
    call->advance();  // its first step waits for nothing, and so would show on no descriptor
    return call;
  }

  ProcessResult run_process(const std::vector<std::string>& argv, const ProcessOptions& given,
                            const Limits& limits) {
    check_limits(limits, LimitUse::kCommand);
    if (argv.empty()) throw Refused("argv is empty: name a program");
    if (given.environment) check_environment(*given.environment);
    const bool confined = options.confine_writes != WriteConfinement::kNone ||
                          (options.landlock && options.landlock->write_paths);
    if (!given.write_paths.empty() && !confined)
      throw Refused("write_paths needs a Sandbox with confine_writes: without it nothing is confined");
    wire::Launch launch;
    launch.argv = argv;
    launch.environment = given.environment ? *given.environment : environment;
    launch.write_paths = given.write_paths;
    launch.write_paths.push_back(std::filesystem::absolute(given.cwd.empty() ? "." : given.cwd).string());
    launch.merge_output = given.stderr_to == StderrTo::kStdout;
    if (policy::features().can_drop_uid && options.command_uid != 0 && !root_inside) {
      if (const auto warning = supervisor::unwritable_directory_warning(
              {options.command_uid, options.command_gid}, given.cwd.empty() ? "." : given.cwd))
        warn(*warning);
      launch.uid = options.command_uid;
      launch.gid = options.command_gid;
    }
    launch.limits = limits;
    Call::Impl call(*pool, std::move(launch), given);
    call.wait();
    ProcessResult result = process_result(call, limits);
    if (options.audit) options.audit(supervisor::audit_record(argv, result, limits, enforcement));
    return result;
  }

  // One process in all of them tells what is to be had; the slots' keepers then insist on it.
  supervisor::NamespacePlan try_namespaces() const {
    const supervisor::NamespaceRequest request = supervisor::request_of(options);
    if (request.all().empty()) return {};
    jail::MinderPlan nothing;
    nothing.callable = [] { return 0; };
    return supervisor::start_minded(request, std::move(nothing), std::nullopt,
                                    supervisor::CountTasks::kOfTheCallOnly, landlock_abi())
        .plan;
  }

  void set_namespaces(wire::Setup& setup, const supervisor::NamespacePlan& inside) {
    root_inside = inside.namespaces.contains(Namespace::kUser) && inside.map_to == MapTo::kRoot;
    setup.unshare.namespaces = inside.namespaces.bits();
    setup.unshare.map_root = root_inside;
    setup.unshare.hostname = inside.hostname;
    setup.unshare.mount_proc = inside.proc != ProcMount::kNever;
    if (options.command_uid == 0 || root_inside) return;
    setup.unshare.command_uid = options.command_uid;
    setup.unshare.command_gid = options.command_gid;
  }

  static void set_landlock(wire::Setup& setup, const LandlockRuleset& ruleset) {
    try {
      (void)jail::build_ruleset(ruleset, landlock_abi());  // says what this kernel lacks
    } catch (const std::runtime_error& error) {
      throw Refused(error.what());
    }
    const auto absolute = [](std::optional<std::vector<std::string>> paths) {
      if (paths)
        for (std::string& path : *paths) path = std::filesystem::absolute(path).string();
      return paths;
    };
    setup.landlock = {absolute(ruleset.read_paths), absolute(ruleset.write_paths),
                      absolute(ruleset.execute_paths), ruleset.bind_tcp_ports, ruleset.connect_tcp_ports};
  }

  // A call that does nothing: reaches the provider, and all of our own machinery.
  void check_self() {
    const auto call = start("None", {}, {}, {});
    call->wait();
    const Result& result = call->result;
    if (result.ok()) return;
    if (result.error->type == ErrorType::kExtension) throw ExtensionError(result.error->message);
    throw Refused("the self-check failed (" + std::string(error_type_name(result.error->type)) +
                  "): " + result.error->message);
  }

  void warn(const std::string& sentence) const {
    if (options.warn) {
      options.warn(sentence);
    } else {
      std::fprintf(stderr, "pyplaypen: %s\n", sentence.c_str());
    }
  }

  SandboxOptions options;
  Enforcement enforcement;
  Environment environment;  // of calls that bring none
  bool root_inside = false;  // in the calls' user namespace they are root
  std::optional<supervisor::Pool> pool;
  supervisor::AuditSink audit;
};

Sandbox::Sandbox(SandboxOptions options) {
  try {
    impl_ = std::make_unique<Impl>(std::move(options));
  } catch (const std::system_error& error) {
    throw Refused(supervisor::with_way_out(error.what(), error.code().value()));
  }
}
Sandbox::~Sandbox() = default;

Result Sandbox::execute(std::string_view code, const Context& context, const Limits& limits) {
  const auto call = impl_->start(code, context, limits, impl_->audit);
  call->wait();
  return std::move(call->result);
}

Call Sandbox::start(std::string_view code, const Context& context, const Limits& limits) {
  return Call(impl_->start(code, context, limits, impl_->audit));
}

ProcessResult Sandbox::run_process(const std::vector<std::string>& argv, const ProcessOptions& options,
                                   const Limits& limits) {
  return impl_->run_process(argv, options, limits);
}

std::string_view process_status_name(ProcessResult::Status status) {
  static constexpr std::string_view kNames[] = {"ok", "timeout", "busy", "cancelled", "internal"};
  return kNames[static_cast<size_t>(status)];
}

const Enforcement& Sandbox::enforcement() const { return impl_->enforcement; }
std::string Sandbox::python_version() const { return impl_->pool->python_version(); }

Call::Call(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Call::Call(Call&&) noexcept = default;
Call& Call::operator=(Call&&) noexcept = default;
Call::~Call() = default;
int Call::fd() { return impl_->fd(); }
bool Call::advance() { return impl_->advance(); }
void Call::cancel() { impl_->cancel(); }
void Call::wait() { impl_->wait(); }
const Result& Call::result() const { return impl_->result; }

Result execute(std::string_view code, const Context& context, const Limits& limits,
               SandboxOptions options) {
  options.max_concurrency = 1;
  options.spares = 0;
  return Sandbox(std::move(options)).execute(code, context, limits);
}

Enforcement probe_enforcement(const SandboxOptions& options) {
  const auto request = supervisor::request_of(options);
  const Namespaces inside =
      request.all().empty()
          ? Namespaces()
          : supervisor::plan_namespaces(request, namespaces_supported(), jail::can_create_without_user()).namespaces;
  return supervisor::enforcement_for(options, supervisor::look_at_host(options.child_uid), inside,
                                     supervisor::try_cgroups(options.cgroups));
}

std::string_view version() { return PYPLAYPEN_VERSION; }

}  // namespace pyplaypen
