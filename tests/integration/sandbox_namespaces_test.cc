// The namespaces and the Landlock ruleset of a Sandbox, by the library.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "pyplaypen/namespaces.h"
#include "pyplaypen/sandbox.h"
#include "runtime/sys/proc.h"
#include "supervisor/zygote_process.h"
#include "tests/fault/deny_namespaces.h"
#include "tests/unit/ordinary_user.h"
#include "tests/unit/own_process.h"
#include "tests/unit/temp_tree.h"

namespace pyplaypen {
namespace {

using testing::AsWho;
using testing::in_own_process;
using testing::TempTree;
using testing::Who;

constexpr char kNoUserNamespaces[] = "user namespaces are refused here";

// What a Sandbox starts, where every user can read it: the build may lie where only root may go.
class ProductForEverybody {
 public:
  ProductForEverybody() {
    const std::filesystem::path from = supervisor::find_zygote({}).parent_path().parent_path().parent_path();
    ::chmod(tree_.path().c_str(), 0755);
    for (const char* part : {"libexec", "share"})
      std::filesystem::copy(from / part, tree_.at(part), std::filesystem::copy_options::recursive);
  }
  std::filesystem::path zygote() const { return tree_.at("libexec/pyplaypen/pyplaypen-zygote"); }

 private:
  TempTree tree_;
};

const ProductForEverybody& product() {
  static const ProductForEverybody made;
  return made;
}

SandboxOptions options_with(Namespaces namespaces) {
  SandboxOptions options;
  options.zygote = product().zygote();
  options.max_concurrency = 1;
  options.on_unenforceable = OnUnenforceable::kWarn;
  options.warn = [](std::string_view) {};
  options.namespaces = namespaces;
  return options;
}

std::string value_of(Sandbox& sandbox, std::string_view code) {
  const Result result = sandbox.execute(code);
  EXPECT_TRUE(result.ok()) << result.error->message << result.error->traceback;
  return result.return_value;
}

class SandboxNamespacesTest : public AsWho {
 protected:
  void run_here(const std::function<void()>& body) {
    (void)product();  // made by root, where there is one
    run([&] {
      ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
      body();
    });
  }
};
INSTANTIATE_TEST_SUITE_P(, SandboxNamespacesTest, ::testing::Values(Who::kSelf, Who::kOrdinary),
                         testing::who_name);

TEST_P(SandboxNamespacesTest, CodeAndCommandsAreInTheSameOnes) {
  if (!userns_available()) GTEST_SKIP() << kNoUserNamespaces;
  run_here([] {
    SandboxOptions options = options_with(kDefaultNamespaces);
    options.hostname = "box";
    Sandbox sandbox(options);
    EXPECT_EQ(sandbox.enforcement().at("namespaces"), to_string(kDefaultNamespaces));
    EXPECT_EQ(sandbox.enforcement().at("network"), "none");
    EXPECT_EQ(value_of(sandbox, "import os, socket\n[os.getuid(), socket.gethostname()]"), R"([0,"box"])");
    const ProcessResult result = sandbox.run_process({"/bin/sh", "-c", "id -u; cat /proc/sys/kernel/hostname; echo x > file"});
    EXPECT_EQ(result.stdout_output.bytes.substr(0, 6), "0\nbox\n") << result.message;
    const ProcessResult status = sandbox.run_process({"/bin/grep", "CapEff", "/proc/self/status"});
    EXPECT_EQ(status.stdout_output.bytes, "CapEff:\t0000000000000000\n");
  });
}

// Root's commands have a user of their own, to whom a working tree can be opened.
TEST_P(SandboxNamespacesTest, MappedToThemselvesCommandsKeepTheirUser) {
  run_here([] {
    SandboxOptions options = options_with(kDefaultNamespaces);
    options.map_to = MapTo::kSelf;
    Sandbox sandbox(options);
    const std::string me = ::geteuid() == 0 ? "65534" : std::to_string(::geteuid());
    EXPECT_EQ(sandbox.run_process({"/usr/bin/id", "-u"}).stdout_output.bytes, me + "\n");
    EXPECT_EQ(value_of(sandbox, "open('artifact', 'w').close()"), "null");
    EXPECT_EQ(value_of(sandbox, "1"), "1");
  });
}

TEST_P(SandboxNamespacesTest, EveryCallFindsTheSameAndLeavesNothing) {
  if (!userns_available()) GTEST_SKIP() << kNoUserNamespaces;
  run_here([] {
    for (const MapTo map : {MapTo::kRoot, MapTo::kSelf}) {
      SandboxOptions options = options_with(kAllNamespaces);
      options.map_to = map;
      Sandbox sandbox(options);
      for (int i = 0; i < 20; ++i) {
        const Result result = sandbox.execute(
            "import os\n"
            "seen = [n for n in os.listdir('/proc') if n.isdigit()]\n"
            "os.makedirs('deep/er'); os.chmod('deep', 0)\n"
            "if not os.fork():\n  os.setsid()\n  while True: pass\n"
            "len(seen)");
        ASSERT_TRUE(result.ok()) << result.error->message;
        EXPECT_EQ(result.return_value, "2");
      }
    }
  });
}

TEST_P(SandboxNamespacesTest, ARefusedNamespaceIsLeftOutWithAWarningOrRefused) {
  if (!userns_available()) GTEST_SKIP() << kNoUserNamespaces;
  run_here([] {
    in_own_process([] {
      ASSERT_TRUE(testing::deny_namespaces(CLONE_NEWUTS));
      std::string warned;
      SandboxOptions options = options_with(kDefaultNamespaces);
      options.warn = [&](std::string_view sentence) { warned += sentence; };
      {
        Sandbox sandbox(options);
        EXPECT_EQ(sandbox.enforcement().at("namespaces"), "user,mount,pid,net,ipc");
        EXPECT_EQ(value_of(sandbox, "1"), "1");
      }
      EXPECT_NE(warned.find("namespace uts"), std::string::npos) << warned;
      options.strictness = Strictness::kStrict;
      EXPECT_THROW(Sandbox{options}, Refused);
    });
    in_own_process([] {
      ASSERT_TRUE(testing::deny_namespaces(CLONE_NEWNET));
      SandboxOptions options = options_with({});
      options.network = Network::kNone;
      EXPECT_THROW(Sandbox{options}, Refused) << "whatever the strictness";
    });
  });
}

TEST_P(SandboxNamespacesTest, ALandlockRulesetHoldsForCalls) {
  if (landlock_abi() < 1) GTEST_SKIP() << "no Landlock";
  TempTree tree;
  ASSERT_EQ(::chmod(tree.path().c_str(), 0777), 0);
  run_here([&] {
    for (const Namespaces namespaces : {Namespaces{}, kDefaultNamespaces}) {
      SandboxOptions options = options_with(namespaces);
      options.landlock.emplace();
      options.landlock->write_paths = {tree.path()};
      if (landlock_abi() >= 4) options.landlock->connect_tcp_ports.emplace();
      Sandbox sandbox(options);
      EXPECT_EQ(sandbox.enforcement().at("filesystem_writes").substr(0, 12), "hard_content");
      const std::string path = tree.path() + "/file";
      EXPECT_EQ(value_of(sandbox, "open('" + path + "', 'w').write('x'); open('mine', 'w').write('y')\n"
                                  "import os; os.remove('" + path + "')\n"
                                  "try: open('/var/tmp/barred', 'w'); r = 1\n"
                                  "except PermissionError: r = 2\n"
                                  "r"), "2");
      if (landlock_abi() >= 4) {
        EXPECT_EQ(value_of(sandbox, "import socket\nsocket.socket().connect_ex(('127.0.0.1', 1))"), "13");
      }
    }
    SandboxOptions options = options_with({});
    options.landlock.emplace();
    options.landlock->read_paths = {"/no/such/path"};
    EXPECT_THROW(Sandbox{options}, Refused);
  });
}

// The supervisor's /proc and the slot's disagree about process IDs: whether a call left a process must
// not be looked up under the wrong one.
TEST_P(SandboxNamespacesTest, AForkedCopyThatStaysIsEndedBeforeTheCallReturns) {
  run_here([] {
    for (const Namespaces namespaces :
         {kDefaultNamespaces, Namespaces{Namespace::kPid}, Namespaces{Namespace::kPid, Namespace::kMount}}) {
      Sandbox sandbox(options_with(namespaces));
      for (int i = 0; i < 10; ++i) {
        TempTree tree;
        ASSERT_EQ(::chmod(tree.path().c_str(), 0777), 0);
        const std::string file = tree.path() + "/beat";
        const Result result = sandbox.execute(
            "import os, time\n"
            "if not os.fork():\n"
            "  os.setsid()\n"
            "  while True: open('" + file + "', 'a').write('x')\n"
            "while not os.path.exists('" + file + "'): time.sleep(0.001)\n");
        ASSERT_TRUE(result.ok()) << result.error->message;
        struct stat before {};
        struct stat after {};
        ::stat(file.c_str(), &before);
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        ::stat(file.c_str(), &after);
        EXPECT_EQ(before.st_size, after.st_size);
      }
    }
  });
}

}  // namespace
}  // namespace pyplaypen
