#include "pyplaypen/limits.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <functional>
#include <limits>
#include <string>

#include "tests/unit/ordinary_user.h"

namespace pyplaypen {
namespace {

// The sentence of the LimitError that `action` throws; empty when it throws none.
std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const LimitError& error) {
    return error.what();
  }
  return {};
}

std::string setting(std::string_view assignment, LimitUse use = LimitUse::kExecute) {
  return refusal([&] {
    Limits limits;
    set_limit(limits, assignment, use);
  });
}

std::string checking(const Limits& limits, LimitUse use = LimitUse::kExecute) {
  return refusal([&] { check_limits(limits, use); });
}

TEST(Limits, DefaultsAreThePromisedOnes) {
  const Limits limits;
  EXPECT_EQ(limit_text(limits, "wall_seconds"), "30");
  EXPECT_EQ(limit_text(limits, "cpu_seconds"), "25");
  EXPECT_EQ(limit_text(limits, "memory_bytes"), "1073741824");
  EXPECT_EQ(limit_text(limits, "process_count"), "16");
  EXPECT_EQ(limit_text(limits, "open_files"), "256");
  EXPECT_EQ(limit_text(limits, "file_bytes"), "52428800");
  EXPECT_EQ(limit_text(limits, "artifact_count"), "16");
  EXPECT_EQ(limit_text(limits, "artifact_bytes"), "52428800");
  EXPECT_EQ(limit_text(limits, "stdout_bytes"), "65536");
  EXPECT_EQ(limit_text(limits, "stderr_bytes"), "65536");
  EXPECT_EQ(limit_text(limits, "return_value_bytes"), "1000000");
  EXPECT_EQ(limit_text(limits, "result_frame_bytes"), "2000000");
  EXPECT_EQ(limit_names().size(), 12U);
  EXPECT_EQ(checking(limits), "");
}

TEST(SetLimit, TakesNumbersWithSeparators) {
  Limits limits;
  set_limit(limits, "memory_bytes=2_147_483_648");
  EXPECT_EQ(limits.memory_bytes, 2'147'483'648U);
  set_limit(limits, "wall_seconds=0.5");
  EXPECT_EQ(limits.wall_seconds, 0.5);
  set_limit(limits, "wall_seconds=1_0.2_5");
  EXPECT_EQ(limits.wall_seconds, 10.25);
  set_limit(limits, "open_files", "+300");
  EXPECT_EQ(limits.open_files, 300U);
  set_limit(limits, "artifact_count=0");
  EXPECT_EQ(limits.artifact_count, 0U);
  set_limit(limits, "file_bytes=18446744073709551615");
  EXPECT_EQ(limits.file_bytes, std::numeric_limits<uint64_t>::max());
  set_limit(limits, "cpu_seconds=1.5");
  EXPECT_EQ(limits.cpu_seconds, 1.5);
}

TEST(SetLimit, EachRefusalIsASentence) {
  EXPECT_EQ(
      setting("speed=1"),
      "unknown limit 'speed'; the limits are wall_seconds cpu_seconds memory_bytes process_count "
      "open_files file_bytes artifact_count artifact_bytes stdout_bytes stderr_bytes "
      "return_value_bytes result_frame_bytes");
  EXPECT_EQ(setting("wall_seconds"), "limit 'wall_seconds' must be written as name=value");
  EXPECT_EQ(setting("wall_seconds=-1"),
            "limit wall_seconds=-1: must not be negative; it would switch the limit off");
  EXPECT_EQ(setting("open_files=-1"),
            "limit open_files=-1: must not be negative; it would switch the limit off");
  EXPECT_EQ(setting("wall_seconds=-0"),
            "limit wall_seconds=-0: must not be negative; it would switch the limit off");
  for (const char* text : {"inf", "nan", "Infinity", "NaN"}) {
    for (const char* name : {"wall_seconds", "memory_bytes"}) {
      const std::string assignment = std::string(name) + "=" + text;
      EXPECT_EQ(setting(assignment),
                "limit " + assignment + ": must be finite; it would switch the limit off");
    }
  }
  EXPECT_EQ(setting("wall_seconds=-inf"),
            "limit wall_seconds=-inf: must be finite; it would switch the limit off");
  EXPECT_EQ(setting("wall_seconds=1e999"), "limit wall_seconds=1e999: the number is out of range");
  EXPECT_EQ(setting("memory_bytes=18446744073709551616"),
            "limit memory_bytes=18446744073709551616: the number is out of range");
  EXPECT_EQ(setting("memory_bytes=1.5"), "limit memory_bytes=1.5: must be a whole number");
  EXPECT_EQ(setting("memory_bytes=1e9"),
            "limit memory_bytes=1e9: must be a whole number, written as digits");
  for (const char* text : {"", "abc", "1x", "0x10", " 1", "1 ", "+", "--1", "1,5"}) {
    const std::string assignment = std::string("wall_seconds=") + text;
    EXPECT_EQ(
        setting(assignment),
        "limit " + assignment + ": not a number; write it as digits, for example 60 or 1_000");
  }
  for (const char* text : {"_1", "1_", "1__0", "1_.5", "1._5", "_"}) {
    const std::string assignment = std::string("wall_seconds=") + text;
    EXPECT_EQ(setting(assignment),
              "limit " + assignment + ": '_' may stand between two digits only");
  }
  EXPECT_EQ(setting("cpu_seconds=1.5", LimitUse::kCommand),
            "limit cpu_seconds=1.5: must be a whole number of seconds for a command");
}

TEST(SetLimit, ARefusedValueChangesNothing) {
  Limits limits;
  EXPECT_THROW(set_limit(limits, "cpu_seconds=1.5", LimitUse::kCommand), LimitError);
  EXPECT_THROW(set_limit(limits, "memory_bytes=x"), LimitError);
  EXPECT_EQ(limits, Limits());
}

TEST(CheckLimits, RefusesWhatNoCallCouldRunUnder) {
  Limits limits;
  limits.open_files = 2;
  EXPECT_EQ(checking(limits), "limit open_files=2: must be at least 8");
  limits = {};
  limits.process_count = 0;
  EXPECT_EQ(checking(limits), "limit process_count=0: must be at least 1");
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), -1.0, 1e300,
                           std::numeric_limits<double>::infinity()}) {
    limits = {};
    limits.wall_seconds = bad;
    EXPECT_NE(checking(limits).find("must be a number of seconds from 0 to 315360000"),
              std::string::npos);
  }
  limits = {};
  limits.cpu_seconds = 0.5;
  EXPECT_EQ(checking(limits), "");
  EXPECT_EQ(checking(limits, LimitUse::kCommand),
            "limit cpu_seconds=0.5: must be a whole number of seconds for a command");
}

TEST(CheckLimits, RefusesWhatIsAboveAnInheritedHardLimit) {
  // In a child: a lowered hard limit cannot be raised again.
  const auto with_hard_limit = [](auto resource, rlim_t hard, const std::function<void()>& body) {
    const auto lowered = [&] {
      const rlimit limit{hard, hard};
      ASSERT_EQ(::setrlimit(resource, &limit), 0);
      body();
    };
    testing::run_as(::geteuid() == 0 ? testing::kOrdinaryUser : ::geteuid(), lowered);
  };
  with_hard_limit(RLIMIT_NOFILE, 100, [] {
    EXPECT_EQ(
        checking(Limits()),
        "limit open_files=256: above the hard limit that this process inherited; the range here "
        "is up to 100");
    Limits limits;
    limits.open_files = 100;
    EXPECT_EQ(checking(limits), "");
  });
  with_hard_limit(RLIMIT_CPU, 25, [] {
    EXPECT_EQ(
        checking(Limits()),
        "limit cpu_seconds=25: above the hard limit that this process inherited; the range here "
        "is up to 24");
    Limits limits;
    limits.cpu_seconds = 24;
    EXPECT_EQ(checking(limits), "");
  });
  with_hard_limit(RLIMIT_FSIZE, 52'428'800, [] {
    EXPECT_EQ(
        checking(Limits()),
        "limit file_bytes=52428800: above the hard limit that this process inherited; the range here "
        "is up to 52428799")
        << "the limit that is set is one byte higher";
    Limits limits;
    limits.file_bytes = 52'428'799;
    EXPECT_EQ(checking(limits), "");
  });
}

TEST(LimitText, KnowsItsNames) {
  Limits limits;
  limits.wall_seconds = 0.5;
  EXPECT_EQ(limit_text(limits, "wall_seconds"), "0.5");
  EXPECT_THROW(limit_text(limits, "nothing"), LimitError);
  for (const std::string_view name : limit_names()) EXPECT_NE(limit_text(limits, name), "");
}

}  // namespace
}  // namespace pyplaypen
