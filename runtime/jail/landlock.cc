#include "runtime/jail/landlock.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <stdexcept>

#include "runtime/jail/landlock_uapi.h"
#include "runtime/sys/error.h"
#include "runtime/sys/raw.h"

namespace pyplaypen {

int landlock_abi() {
  const int abi = sys::raw::landlock_create_ruleset(nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return abi > 0 ? abi : 0;
}

namespace jail {
namespace {

// A kernel takes fields that it does not know only when they are zero, so the size may stay the same.
int create(const uapi::RulesetAttr& attr) noexcept {
  return sys::raw::landlock_create_ruleset(&attr, sizeof attr, 0);
}

// 0 or errno.
int allow_beneath(int ruleset_fd, const char* path, uint64_t rights) noexcept {
  const sys::UniqueFd fd(::open(path, O_PATH | O_CLOEXEC));
  struct stat found{};
  if (!fd || ::fstat(fd.get(), &found) != 0) return errno;
  landlock_path_beneath_attr rule{};
  rule.allowed_access = S_ISDIR(found.st_mode) ? rights : rights & uapi::kFsOfFiles;
  rule.parent_fd = fd.get();
  // The kernel refuses a rule that allows nothing, and it would mean nothing.
  if (rule.allowed_access == 0) return 0;
  return sys::raw::landlock_add_rule(ruleset_fd, uapi::kRulePathBeneath, &rule, 0) == 0 ? 0 : errno;
}

void allow_paths(int ruleset_fd, const std::optional<std::vector<std::string>>& paths,
                 uint64_t rights) {
  if (!paths) return;
  for (const std::string& path : *paths)
    if (const int error = allow_beneath(ruleset_fd, path.c_str(), rights))
      throw sys::Error(error, "landlock_add_rule", path);
}

void allow_ports(int ruleset_fd, const std::optional<std::vector<uint16_t>>& ports,
                 uint64_t rights) {
  if (!ports) return;
  for (const uint16_t port : *ports) {
    const uapi::NetPortAttr rule{rights, port};
    sys::check(sys::raw::landlock_add_rule(ruleset_fd, uapi::kRuleNetPort, &rule, 0),
               "landlock_add_rule", std::to_string(port));
  }
}

// True when the kernel has what is asked for.
bool has(int abi, int needed, const LandlockRuleset& ruleset, const char* what) {
  if (abi >= needed) return true;
  if (ruleset.missing == LandlockMissing::kLeaveOut) return false;
  if (abi <= 0)
    throw std::runtime_error(std::string(what) +
                             " needs Landlock, which this kernel does not have or has switched off "
                             "(CONFIG_SECURITY_LANDLOCK, and landlock in CONFIG_LSM or lsm=)");
  throw std::runtime_error(std::string(what) + " needs Landlock ABI " + std::to_string(needed) +
                           "; this kernel has ABI " + std::to_string(abi));
}

}  // namespace

// IOCTL_DEV (ABI 5) is not among them. It acts on devices opened after the restriction, and those can
// then be opened for reading only; to handle it would fail isatty() on /dev/tty and every query of
// /dev/null or /dev/urandom, and protect no file content or directory entry.
uint64_t write_rights(int abi) noexcept {
  if (abi <= 0) return 0;
  uint64_t rights = uapi::kFsWriteFile | uapi::kFsRemoveDir | uapi::kFsRemoveFile |
                    uapi::kFsMakeChar | uapi::kFsMakeDir | uapi::kFsMakeReg | uapi::kFsMakeSock |
                    uapi::kFsMakeFifo | uapi::kFsMakeBlock | uapi::kFsMakeSym;
  if (abi >= uapi::kReferAbi) rights |= uapi::kFsRefer;
  if (abi >= uapi::kTruncateAbi) rights |= uapi::kFsTruncate;
  return rights;
}

uint64_t read_rights() noexcept { return uapi::kFsReadFile | uapi::kFsReadDir; }

uint64_t execute_rights() noexcept { return uapi::kFsExecute; }

sys::UniqueFd build_ruleset(const LandlockRuleset& ruleset, int abi) {
  const bool reads = ruleset.read_paths && has(abi, 1, ruleset, "restricting reads");
  const bool writes = ruleset.write_paths && has(abi, 1, ruleset, "confining writes");
  const bool executes = ruleset.execute_paths && has(abi, 1, ruleset, "restricting execution");
  const bool binds =
      ruleset.bind_tcp_ports && has(abi, uapi::kNetAbi, ruleset, "restricting TCP bind");
  const bool connects =
      ruleset.connect_tcp_ports && has(abi, uapi::kNetAbi, ruleset, "restricting TCP connect");
  const bool signals =
      ruleset.scope_signals && has(abi, uapi::kScopeAbi, ruleset, "scoping signals");
  const bool sockets = ruleset.scope_abstract_sockets &&
                       has(abi, uapi::kScopeAbi, ruleset, "scoping abstract sockets");

  uapi::RulesetAttr attr{};
  if (reads) attr.handled_access_fs |= read_rights();
  if (writes) attr.handled_access_fs |= write_rights(abi);
  if (executes) attr.handled_access_fs |= execute_rights();
  if (binds) attr.handled_access_net |= uapi::kNetBindTcp;
  if (connects) attr.handled_access_net |= uapi::kNetConnectTcp;
  if (signals) attr.scoped |= uapi::kScopeSignal;
  if (sockets) attr.scoped |= uapi::kScopeAbstractSocket;
  if (attr.handled_access_fs == 0 && attr.handled_access_net == 0 && attr.scoped == 0) return {};
  // A ruleset that handles any file access denies renames across directories unless it handles them.
  const bool allow_refer = attr.handled_access_fs != 0 && !writes && abi >= uapi::kReferAbi;
  if (allow_refer) attr.handled_access_fs |= uapi::kFsRefer;

  sys::UniqueFd fd(sys::check(create(attr), "landlock_create_ruleset"));
  if (reads) allow_paths(fd.get(), ruleset.read_paths, read_rights());
  if (writes) allow_paths(fd.get(), ruleset.write_paths, write_rights(abi));
  if (executes) allow_paths(fd.get(), ruleset.execute_paths, execute_rights());
  if (allow_refer) allow_paths(fd.get(), std::vector<std::string>{"/"}, uapi::kFsRefer);
  if (binds) allow_ports(fd.get(), ruleset.bind_tcp_ports, uapi::kNetBindTcp);
  if (connects) allow_ports(fd.get(), ruleset.connect_tcp_ports, uapi::kNetConnectTcp);
  return fd;
}

sys::UniqueFd build_signal_scope(int abi, bool confines_writes) {
  if (abi < uapi::kScopeAbi) return {};
  uapi::RulesetAttr attr{};
  attr.scoped = uapi::kScopeSignal;
  const bool allow_refer = abi == uapi::kScopeAbi && confines_writes;
  if (allow_refer) attr.handled_access_fs = uapi::kFsRefer;
  sys::UniqueFd fd(sys::check(create(attr), "landlock_create_ruleset"));
  if (allow_refer) allow_paths(fd.get(), std::vector<std::string>{"/"}, uapi::kFsRefer);
  return fd;
}

int create_write_ruleset(const char* const* paths, size_t count, int abi, int* fd) noexcept {
  if (abi <= 0) return EOPNOTSUPP;
  uapi::RulesetAttr attr{};
  attr.handled_access_fs = write_rights(abi);
  sys::UniqueFd ruleset(create(attr));
  if (!ruleset) return errno;
  for (size_t i = 0; i < count; ++i)
    if (const int error = allow_beneath(ruleset.get(), paths[i], write_rights(abi))) return error;
  *fd = ruleset.release();
  return 0;
}

int restrict_self(int ruleset_fd) noexcept {
  return sys::raw::landlock_restrict_self(ruleset_fd, 0) == 0 ? 0 : errno;
}

}  // namespace jail
}  // namespace pyplaypen
