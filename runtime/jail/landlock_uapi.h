// The kernel's Landlock interface up to ABI 6, for <linux/landlock.h> of any age: Debian 12's stops
// at ABI 2. Source: include/uapi/linux/landlock.h and Documentation/userspace-api/landlock.rst.
#pragma once

#include <linux/landlock.h>

#include <cstdint>

namespace pyplaypen::jail::uapi {

inline constexpr uint64_t kFsExecute = LANDLOCK_ACCESS_FS_EXECUTE;
inline constexpr uint64_t kFsWriteFile = LANDLOCK_ACCESS_FS_WRITE_FILE;
inline constexpr uint64_t kFsReadFile = LANDLOCK_ACCESS_FS_READ_FILE;
inline constexpr uint64_t kFsReadDir = LANDLOCK_ACCESS_FS_READ_DIR;
inline constexpr uint64_t kFsRemoveDir = LANDLOCK_ACCESS_FS_REMOVE_DIR;
inline constexpr uint64_t kFsRemoveFile = LANDLOCK_ACCESS_FS_REMOVE_FILE;
inline constexpr uint64_t kFsMakeChar = LANDLOCK_ACCESS_FS_MAKE_CHAR;
inline constexpr uint64_t kFsMakeDir = LANDLOCK_ACCESS_FS_MAKE_DIR;
inline constexpr uint64_t kFsMakeReg = LANDLOCK_ACCESS_FS_MAKE_REG;
inline constexpr uint64_t kFsMakeSock = LANDLOCK_ACCESS_FS_MAKE_SOCK;
inline constexpr uint64_t kFsMakeFifo = LANDLOCK_ACCESS_FS_MAKE_FIFO;
inline constexpr uint64_t kFsMakeBlock = LANDLOCK_ACCESS_FS_MAKE_BLOCK;
inline constexpr uint64_t kFsMakeSym = LANDLOCK_ACCESS_FS_MAKE_SYM;
inline constexpr uint64_t kFsRefer = uint64_t{1} << 13;     // ABI 2
inline constexpr uint64_t kFsTruncate = uint64_t{1} << 14;  // ABI 3
inline constexpr uint64_t kNetBindTcp = uint64_t{1} << 0;     // ABI 4
inline constexpr uint64_t kNetConnectTcp = uint64_t{1} << 1;  // ABI 4
inline constexpr uint64_t kScopeAbstractSocket = uint64_t{1} << 0;  // ABI 6
inline constexpr uint64_t kScopeSignal = uint64_t{1} << 1;          // ABI 6

// The only rights that the kernel takes in a rule for something that is not a directory.
inline constexpr uint64_t kFsOfFiles = kFsExecute | kFsWriteFile | kFsReadFile | kFsTruncate;

inline constexpr int kReferAbi = 2;
inline constexpr int kTruncateAbi = 3;
inline constexpr int kNetAbi = 4;
inline constexpr int kScopeAbi = 6;

// struct landlock_ruleset_attr. A kernel that knows fewer fields takes the longer struct as long as
// the bytes it does not know are zero.
struct RulesetAttr {
  uint64_t handled_access_fs;
  uint64_t handled_access_net;
  uint64_t scoped;
};

// struct landlock_net_port_attr.
struct NetPortAttr {
  uint64_t allowed_access;
  uint64_t port;
};

inline constexpr int kRulePathBeneath = LANDLOCK_RULE_PATH_BENEATH;
inline constexpr int kRuleNetPort = 2;

}  // namespace pyplaypen::jail::uapi
