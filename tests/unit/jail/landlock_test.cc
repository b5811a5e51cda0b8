#include "runtime/jail/landlock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "pyplaypen/privilege.h"
#include "tests/unit/ordinary_user.h"
#include "tests/unit/own_process.h"
#include "tests/unit/temp_tree.h"

namespace pyplaypen {
namespace {

using testing::AsWho;
using testing::in_own_process;
using testing::Who;

// The bits of Documentation/userspace-api/landlock.rst, written down a second time.
constexpr uint64_t kAbi1Writes = 1 << 1 | 0x1ff0;  // WRITE_FILE; REMOVE_DIR to MAKE_SYM
constexpr uint64_t kRefer = 1 << 13;
constexpr uint64_t kTruncate = 1 << 14;

#define SKIP_WITHOUT_LANDLOCK(needed) \
  if (landlock_abi() < (needed)) GTEST_SKIP() << "needs Landlock ABI " << (needed)

TEST(LandlockRights, WritingPerAbi) {
  EXPECT_EQ(jail::write_rights(0), 0U);
  EXPECT_EQ(jail::write_rights(1), kAbi1Writes);
  EXPECT_EQ(jail::write_rights(2), kAbi1Writes | kRefer);
  for (const int abi : {3, 4, 5, 6, 7, 8, 100})
    EXPECT_EQ(jail::write_rights(abi), kAbi1Writes | kRefer | kTruncate) << abi;
}

TEST(LandlockRights, ReadingAndExecuting) {
  EXPECT_EQ(jail::read_rights(), uint64_t{1 << 2 | 1 << 3});
  EXPECT_EQ(jail::execute_rights(), uint64_t{1 << 0});
}

// One that other users may enter.
struct TempTree : testing::TempTree {
  TempTree() { EXPECT_EQ(::chmod(path().c_str(), 0777), 0); }
};

std::string refusal(const LandlockRuleset& ruleset, int abi) {
  try {
    jail::build_ruleset(ruleset, abi);
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

TEST(LandlockRuleset, WhatAnAbiLacksIsRefusedByName) {
  LandlockRuleset ports;
  ports.connect_tcp_ports = {443};
  EXPECT_EQ(refusal(ports, 3), "restricting TCP connect needs Landlock ABI 4; this kernel has ABI 3");
  LandlockRuleset scopes;
  scopes.scope_signals = true;
  EXPECT_EQ(refusal(scopes, 5), "scoping signals needs Landlock ABI 6; this kernel has ABI 5");
  LandlockRuleset writes;
  writes.write_paths.emplace();
  EXPECT_NE(refusal(writes, 0).find("does not have or has switched off"), std::string::npos);
}

TEST(LandlockRuleset, LeavesOutOnRequest) {
  LandlockRuleset ruleset;
  ruleset.scope_signals = ruleset.scope_abstract_sockets = true;
  ruleset.bind_tcp_ports.emplace();
  ruleset.missing = LandlockMissing::kLeaveOut;
  EXPECT_FALSE(jail::build_ruleset(ruleset, 3));
  EXPECT_FALSE(jail::build_ruleset(ruleset, 0));
}

TEST(LandlockRuleset, NothingAskedForNeedsNoKernel) {
  EXPECT_FALSE(jail::build_ruleset({}, 0));
  EXPECT_FALSE(jail::build_ruleset({}, 7));
  EXPECT_FALSE(jail::build_signal_scope(5, true));
}

TEST(LandlockRuleset, NamesThePathThatCannotBeOpened) {
  SKIP_WITHOUT_LANDLOCK(1);
  LandlockRuleset ruleset;
  ruleset.write_paths = {"/no/such/directory"};
  EXPECT_EQ(refusal(ruleset, 1), "landlock_add_rule(/no/such/directory): No such file or directory");
}

void enter(const sys::UniqueFd& ruleset) {
  ASSERT_EQ(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(jail::restrict_self(ruleset.get()), 0);
}

// errno of an open, or 0.
int opening(const std::string& path, int flags) {
  const sys::UniqueFd fd(::open(path.c_str(), flags | O_CLOEXEC, 0600));
  return fd ? 0 : errno;
}

class Confined : public AsWho {};
INSTANTIATE_TEST_SUITE_P(, Confined, ::testing::Values(Who::kSelf, Who::kOrdinary), testing::who_name);

// Every ABI that this kernel can act as.
TEST_P(Confined, WritesAreHeldToTheWriteSetUnderEveryAbi) {
  SKIP_WITHOUT_LANDLOCK(1);
  const int newest = landlock_abi();
  TempTree tree;
  tree.directory("in", 0777);
  tree.directory("in/sub", 0777);
  tree.directory("out", 0777);
  tree.file("out/file", "content", 0666);
  for (int abi = 1; abi <= newest; ++abi) {
    run([&] {
      in_own_process([&] {
        LandlockRuleset ruleset;
        ruleset.write_paths = {tree.at("in"), "/dev/null"};
        enter(jail::build_ruleset(ruleset, abi));
        EXPECT_EQ(opening(tree.at("in/made"), O_WRONLY | O_CREAT | O_TRUNC), 0);
        EXPECT_EQ(opening("/dev/null", O_WRONLY | O_TRUNC), 0);
        EXPECT_EQ(opening("/dev/zero", O_WRONLY), EACCES);
        EXPECT_EQ(opening(tree.at("out/made"), O_WRONLY | O_CREAT), EACCES);
        EXPECT_EQ(opening(tree.at("out/file"), O_WRONLY), EACCES);
        EXPECT_EQ(opening(tree.at("out/file"), O_RDONLY), 0);
        EXPECT_EQ(::unlink(tree.at("out/file").c_str()), -1);
        EXPECT_EQ(::mkdir(tree.at("out/dir").c_str(), 0700), -1);
        EXPECT_EQ(::symlink("x", tree.at("out/link").c_str()), -1);
        EXPECT_EQ(::mkfifo(tree.at("out/fifo").c_str(), 0600), -1);
        EXPECT_EQ(::rename(tree.at("in/made").c_str(), tree.at("out/moved").c_str()), -1);
        EXPECT_EQ(::link(tree.at("in/made").c_str(), tree.at("out/linked").c_str()), -1);
        // REFER, ABI 2: across directories of the write set.
        const int moved = ::rename(tree.at("in/made").c_str(), tree.at("in/sub/moved").c_str());
        EXPECT_EQ(moved, abi >= 2 ? 0 : -1) << "ABI " << abi;
        // TRUNCATE, ABI 3: the gap that "hard_content_except_truncate" tells of.
        EXPECT_EQ(::truncate(tree.at("out/file").c_str(), 3), abi >= 3 ? -1 : 0) << "ABI " << abi;
        ::unlink(tree.at("in/made").c_str());
        ::unlink(tree.at("in/sub/moved").c_str());
      });
    });
  }
}

TEST_P(Confined, ConfineWritesSetsNoNewPrivs) {
  SKIP_WITHOUT_LANDLOCK(1);
  TempTree tree;
  tree.directory("in", 0777);
  run([&] {
    in_own_process([&] {
      const std::string in = tree.at("in");
      const char* const paths[] = {in.c_str(), "/dev/null"};
      ASSERT_EQ(confine_writes(paths, 2), 0);
      EXPECT_EQ(::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 1);
      EXPECT_EQ(opening(in + "/file", O_WRONLY | O_CREAT), 0);
      EXPECT_EQ(opening("/tmp/pyplaypen-not-here", O_WRONLY | O_CREAT), EACCES);
    });
  });
}

TEST_P(Confined, ConfineWritesTellsWhatIsMissing) {
  SKIP_WITHOUT_LANDLOCK(1);
  run([] {
    const char* const paths[] = {"/no/such/directory"};
    EXPECT_EQ(confine_writes(paths, 1), ENOENT);
    int fd = -1;
    EXPECT_EQ(jail::create_write_ruleset(paths, 1, 0, &fd), EOPNOTSUPP);
    EXPECT_EQ(fd, -1);
  });
}

TEST_P(Confined, ReadingAndExecutingCanBeHeldToPaths) {
  SKIP_WITHOUT_LANDLOCK(1);
  TempTree tree;
  tree.directory("in", 0777);
  tree.directory("in/sub", 0777);
  tree.file("in/file", "x", 0666);
  tree.file("file", "x", 0666);
  run([&] {
    in_own_process([&] {
      LandlockRuleset ruleset;
      ruleset.read_paths = {tree.at("in")};
      ruleset.execute_paths.emplace();
      enter(jail::build_ruleset(ruleset, landlock_abi()));
      EXPECT_EQ(opening(tree.at("in/file"), O_RDONLY), 0);
      EXPECT_EQ(opening(tree.at("file"), O_RDONLY), EACCES);
      EXPECT_EQ(opening(tree.at("file"), O_WRONLY), 0) << "writing was not asked about";
      EXPECT_EQ(::execl("/bin/true", "true", nullptr), -1);
      EXPECT_EQ(errno, EACCES);
      // A ruleset that handles files denies this unless it takes care.
      if (landlock_abi() >= 2) {
        EXPECT_EQ(::rename(tree.at("in/file").c_str(), tree.at("in/sub/file").c_str()), 0);
      }
    });
  });
}

int connecting_to(uint16_t port) {
  const sys::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0
             ? 0
             : errno;
}

TEST_P(Confined, PortsAreHeldToTheList) {
  SKIP_WITHOUT_LANDLOCK(4);
  run([] {
    in_own_process([] {
      LandlockRuleset ruleset;
      ruleset.connect_tcp_ports = {9};
      enter(jail::build_ruleset(ruleset, landlock_abi()));
      EXPECT_EQ(connecting_to(9), ECONNREFUSED) << "discard: allowed, and nobody listens";
      EXPECT_EQ(connecting_to(10), EACCES);
    });
  });
}

TEST_P(Confined, SignalsStayInTheScope) {
  SKIP_WITHOUT_LANDLOCK(6);
  run([] {
    in_own_process([] {
      const pid_t outside = ::getppid();
      enter(jail::build_signal_scope(landlock_abi(), false));
      EXPECT_EQ(::kill(outside, 0), -1);
      EXPECT_EQ(errno, EPERM);
      const pid_t inside = ::fork();
      if (inside == 0) {
        ::pause();
        ::_exit(0);
      }
      EXPECT_EQ(::kill(inside, SIGKILL), 0);
      int status = 0;
      EXPECT_EQ(::waitpid(inside, &status, 0), inside);
    });
  });
}

// ABI 6 denies renames across directories in every layer, so the scope's layer allows them again.
TEST_P(Confined, AWriteSetBeneathASignalScopeStillMovesFiles) {
  SKIP_WITHOUT_LANDLOCK(6);
  TempTree tree;
  tree.directory("sub", 0777);
  run([&] {
    in_own_process([&] {
      enter(jail::build_signal_scope(6, true));
      LandlockRuleset ruleset;
      ruleset.write_paths = {tree.path()};
      enter(jail::build_ruleset(ruleset, 6));
      ASSERT_EQ(opening(tree.at("file"), O_WRONLY | O_CREAT), 0);
      EXPECT_EQ(::rename(tree.at("file").c_str(), tree.at("sub/file").c_str()), 0);
      ::unlink(tree.at("sub/file").c_str());
    });
  });
}

TEST(LandlockAbi, IsWhatTheKernelSays) { EXPECT_GE(landlock_abi(), 0); }

}  // namespace
}  // namespace pyplaypen
