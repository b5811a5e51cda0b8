// Root with fewer capabilities than root has: what a container leaves it, and what it may lack there.
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <fstream>
#include <span>
#include <string>
#include <utility>

#include "tests/integration/sandbox_fixture.h"
#include "tests/unit/own_process.h"

namespace pyplaypen {
namespace {

// What Docker grants by default; of these a Sandbox uses the first six.
constexpr int kInAContainer[] = {CAP_CHOWN,   CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_KILL,      CAP_SETGID,
                                 CAP_SETUID,  CAP_FSETID,       CAP_MKNOD,  CAP_NET_RAW,   CAP_SETFCAP,
                                 CAP_SETPCAP, CAP_SYS_CHROOT,   CAP_AUDIT_WRITE, CAP_NET_BIND_SERVICE};

// From here on, and in what is executed, too.
void keep_only(std::span<const int> capabilities, int but = -1) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  for (const int capability : capabilities)
    if (capability != but) data[capability / 32].permitted |= 1U << (capability % 32);
  for (auto& word : data) word.effective = word.permitted;
  for (int capability = 0; ::prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; ++capability) {
    const bool kept = (data[capability / 32].permitted & (1U << (capability % 32))) != 0;
    ASSERT_EQ(kept ? 0 : ::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0), 0);
  }
  ASSERT_EQ(::syscall(SYS_capset, &header, data), 0);
}

std::string identifiers_of(const std::string& kind, const std::string& uid) {
  std::ifstream file("/proc/sysvipc/" + kind);
  std::string found;
  for (std::string line; std::getline(file, line);)
    if (line.find(" " + uid + " ") != std::string::npos) found += line + "\n";
  return found;
}

class ContainerRoot : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root, to have less than it";
  }
};

TEST_F(ContainerRoot, ObjectsOfTheSlotsUserAreRemoved) {
  testing::in_own_process([] {
    keep_only(kInAContainer);
    Sandbox sandbox(quiet_options());
    const Result result = sandbox.execute(
        "import ctypes, os\n"
        "libc = ctypes.CDLL(None)\n"
        // Mode 0: nobody may look at them.
        "made = libc.shmget(0, 4096, 0o1000), libc.semget(0, 1, 0o1000), libc.msgget(0, 0o1000)\n"
        "open('/dev/shm/left-by-' + str(os.getuid()), 'w').write('x')\n"
        "open('artifact', 'w').write('x')\n"  // so that its end is waited for
        "[min(made) >= 0, os.getuid()]");
    ASSERT_TRUE(result.ok()) << result.error->message;
    const std::string uid = result.return_value.substr(result.return_value.find(',') + 1,
                                                       result.return_value.find(']') - result.return_value.find(',') - 1);
    EXPECT_EQ(result.return_value, "[true," + uid + "]");
    for (const char* kind : {"shm", "sem", "msg"}) EXPECT_EQ(identifiers_of(kind, uid), "") << kind;
    EXPECT_NE(::access(("/dev/shm/left-by-" + uid).c_str(), F_OK), 0);
    std::filesystem::remove_all(result.artifact_root);
  });
}

TEST_F(ContainerRoot, WhoCannotCleanUpAfterItsCallsIsRefused) {
  for (const auto& [missing, name] : {std::pair{CAP_CHOWN, "CAP_CHOWN"}, {CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE"},
                                      {CAP_FOWNER, "CAP_FOWNER"}, {CAP_KILL, "CAP_KILL"}})
    testing::in_own_process([&] {
      keep_only(kInAContainer, missing);
      try {
        Sandbox sandbox(quiet_options());
        ADD_FAILURE() << "not refused without " << name;
      } catch (const Refused& refused) {
        EXPECT_NE(std::string_view(refused.what()).find(name), std::string_view::npos) << refused.what();
      }
    });
}

TEST_F(ContainerRoot, WithoutAnyItIsAsAnOrdinaryUser) {
  testing::in_own_process([] {
    keep_only({});
    Sandbox sandbox(quiet_options());
    EXPECT_EQ(sandbox.enforcement().at("user"), "unchanged");
    EXPECT_NE(sandbox.enforcement().at("process_count"), "hard_per_call");  // root is never counted
    const Result result = sandbox.execute(
        "import os\nopen('artifact', 'w').write('x')\nos.chmod('artifact', 0)\nos.chmod('.', 0)\nos.getuid()");
    ASSERT_TRUE(result.ok()) << result.error->message;
    EXPECT_EQ(result.return_value, "0");
    ASSERT_EQ(result.artifacts.size(), 1U);
    EXPECT_EQ(result.artifacts[0].path, "artifact");
    std::filesystem::remove_all(result.artifact_root);
  });
}

}  // namespace
}  // namespace pyplaypen
