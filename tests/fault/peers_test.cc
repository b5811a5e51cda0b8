// Zygote, keepers or children that answer garbage, or end, at each step of the protocol: the host says so by
// a result or an exception of the right type, hangs nowhere, keeps nothing, and goes on with the next.
#include <sys/prctl.h>
#include <sys/wait.h>

#include <filesystem>
#include <string>

#include "tests/integration/processes.h"
#include "tests/integration/sandbox_fixture.h"

namespace pyplaypen {
namespace {

struct Peers {
  const char* mode;    // of tests/fault/fake_zygote.cc
  const char* answer;  // to the first call: the type and a part of the message, or the value
};

void PrintTo(const Peers& peers, std::ostream* out) { *out << peers.mode; }

class WithFakes : public ::testing::TestWithParam<Peers> {
 protected:
  void SetUp() override {
    ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);  // what is left would be ours
    std::filesystem::create_directory(directory_);
    zygote_ = directory_ / GetParam().mode;
    std::filesystem::copy_file(PYPLAYPEN_FAKE_ZYGOTE, zygote_);
    fds_ = sys::open_fds().size();
  }
  void TearDown() override {
    EXPECT_EQ(sys::open_fds().size(), fds_);
    EXPECT_TRUE(comes_true([] {
      while (::waitpid(-1, nullptr, WNOHANG | __WALL) > 0) {
      }
      return sys::children().empty();
    })) << "a process was left";
    ::prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
    std::filesystem::remove_all(directory_);
  }
  SandboxOptions options() const {
    SandboxOptions options = quiet_options();
    options.max_concurrency = 1;
    options.spares = 0;
    options.self_check = SelfCheck::kNo;
    options.zygote = zygote_;
    return options;
  }
  static std::string answer_of(const Result& result) {
    return result.ok() ? result.return_value
                       : std::string(error_type_name(result.error->type)) + ": " + result.error->message;
  }

  std::filesystem::path directory_ =
      std::filesystem::temp_directory_path() / ("peers-" + std::to_string(::getpid()));
  std::filesystem::path zygote_;
  size_t fds_ = 0;
};

class Zygotes : public WithFakes {};

TEST_P(Zygotes, ThatAreOutOfOrderAreRefused) {
  try {
    Sandbox sandbox(options());
    ADD_FAILURE() << "not refused";
  } catch (const Refused& refused) {
    EXPECT_NE(std::string(refused.what()).find(GetParam().answer), std::string::npos) << refused.what();
  }
}

INSTANTIATE_TEST_SUITE_P(Fake, Zygotes,
                         ::testing::Values(Peers{"zygote_ends_at_once", "the zygote ended"},
                                           Peers{"zygote_ends", "the zygote ended"},
                                           Peers{"zygote_noise", "the zygote ended"},
                                           Peers{"zygote_other_version", "the zygote ended"},
                                           Peers{"zygote_other_type", "the zygote ended"},
                                           Peers{"zygote_malformed", "the zygote ended"},
                                           Peers{"zygote_halfway", "the zygote ended"}),
                         [](const auto& one) { return std::string(one.param.mode); });

class Keepers : public WithFakes {};

TEST_P(Keepers, ThatAreOutOfOrderAreToldAndReplaced) {
  Sandbox sandbox(options());
  const std::string answer = answer_of(sandbox.execute("'never evaluated'"));
  const std::string expected = GetParam().answer;
  const size_t colon = expected.find(": ");
  if (colon == std::string::npos) {
    EXPECT_EQ(answer, expected);
  } else {
    EXPECT_TRUE(answer.starts_with(expected.substr(0, colon))) << answer;
    EXPECT_NE(answer.find(expected.substr(colon + 2)), std::string::npos) << answer;
  }
  for (int i = 0; i < 3; ++i) {
    const std::string next = answer_of(sandbox.execute("'never evaluated'"));
    // One that only its children make fail is kept: its slot goes on failing.
    if (std::string(GetParam().mode) == "child_ends") {
      EXPECT_TRUE(next.starts_with("internal: ")) << next;  // before its request, or while it comes
    } else {
      EXPECT_EQ(next, std::string(GetParam().mode).starts_with("child_") ? answer : "\"fake\"");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Fake, Keepers,
    ::testing::Values(Peers{"good", "\"fake\""}, Peers{"keeper_ends", "\"fake\""},
                      Peers{"keeper_noise", "internal: does not begin"},
                      Peers{"keeper_other_version", "internal: version 7"},
                      Peers{"keeper_unknown_type", "internal: unknown type 77"},
                      Peers{"keeper_wrong_type", "internal: wrong kind"},
                      Peers{"keeper_malformed", "internal: wrong kind"},
                      Peers{"keeper_reaped_unasked", "internal: unasked"},
                      Peers{"keeper_cannot", "internal: mkdir(/fake): No space left on device; free some space"},
                      Peers{"keeper_spawned_unasked", "internal: "}, Peers{"spawn_ends", "\"fake\""},
                      Peers{"spawn_noise", "internal: does not begin"},
                      Peers{"spawn_fails", "internal: raise RLIMIT_NPROC"},
                      Peers{"spawned_without_descriptors", "internal: sent 0 descriptors"},
                      Peers{"spawned_with_one_too_few", "internal: descriptors"},
                      Peers{"spawned_with_too_many", "internal: descriptors"}, Peers{"spawned_halfway", "\"fake\""},
                      Peers{"child_ends", "internal: ended before it was set up"},
                      Peers{"child_noise", "protocol: does not begin"},
                      Peers{"child_reports_first", "protocol: not that of a child set up"},
                      Peers{"child_fails", "internal: stage landlock: Function not implemented"},
                      Peers{"child_is_set_up_twice", "protocol: malformed"},
                      Peers{"child_answers_halfway", "protocol: without reporting"},
                      Peers{"reap_ends", "internal: has ended before what the call left"},
                      Peers{"reap_noise", "internal: does not begin as a frame does before what the call left"},
                      Peers{"reap_answers_other", "internal: wrong kind"},
                      Peers{"reap_spawns", "internal: unasked"},
                      Peers{"reap_halfway", "internal: has ended before what the call left"}),
    [](const auto& one) { return std::string(one.param.mode); });

}  // namespace
}  // namespace pyplaypen
