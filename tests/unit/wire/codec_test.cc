#include "runtime/wire/codec.h"

#include <gtest/gtest.h>

#include <random>

namespace pyplaypen::wire {
namespace {

template <typename Message>
void expect_round_trip(const Message& message) {
  const std::string payload = encode(message);
  const auto decoded = decode<Message>(payload);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(*decoded, message);
  // Neither a byte less nor one more is the same message.
  for (size_t size = 0; size < payload.size(); ++size)
    EXPECT_FALSE(decode<Message>(std::string_view(payload).substr(0, size))) << size;
  EXPECT_FALSE(decode<Message>(payload + "x"));
}

Report full_report() {
  Report report;
  report.status = ReportStatus::kSerialization;
  report.value_json = "[1,2]";
  report.message = std::string("with\0nul", 8);
  report.traceback = "Traceback";
  report.line = -1;
  report.exit_code = INT64_MAX;
  report.value_type = "a.B";
  report.value_repr = "<B>";
  report.cpu_microseconds = 1;
  report.max_rss_bytes = UINT64_MAX;
  return report;
}

TEST(Codec, EveryMessageComesBackAsItWas) {
  Request request;
  request.request_id = "id";
  request.code = std::string("x = 1\0\xff", 7);
  request.extra_json = "{}";
  request.environment = Environment{{"A", "1"}, {"B", ""}};
  request.limits.wall_seconds = 0.25;
  request.limits.file_bytes = 7;
  expect_round_trip(request);
  expect_round_trip(Request{});
  expect_round_trip(full_report());
  expect_round_trip(Report{});
  wire::Setup setup;
  setup.host_pid = 42;
  setup.base_directory = "/tmp/x";
  setup.environment = {{"PATH", "/bin"}};
  setup.preload = {"json", "re"};
  setup.globals_provider = "m:f";
  setup.confine_writes = true;
  expect_round_trip(setup);
  expect_round_trip(Ready{true, "why", "3.11.2", 7});
  expect_round_trip(StartPython{65534, 65534});
  expect_round_trip(OpenKeeper{3, 65537, std::nullopt, 2});
  expect_round_trip(CloseKeeper{3});
  expect_round_trip(KeeperReady{"", true, false, "/tmp/x/0/work", ENOSPC});
  expect_round_trip(Spawn{WarmUp::kNo});
  Launch launch;
  launch.argv = {"sh", "-c", ""};
  launch.environment = {{"A", "b"}};
  launch.write_paths = {"/tmp"};
  launch.merge_output = true;
  expect_round_trip(launch);
  expect_round_trip(Spawned{17, true, false, true, false, policy::Stage::kLandlock, 1, "why"});
  expect_round_trip(SpareReady{policy::Stage::kIdentity, 1, "why"});
  expect_round_trip(LeaderEnded{});
  expect_round_trip(Reap{});
  expect_round_trip(Reaped{9, 10, 11, 12});
}

TEST(Codec, RefusesValuesThatNoMessageHas) {
  std::string payload = encode(Report{});
  payload[0] = static_cast<char>(kLastReportStatus) + 1;
  EXPECT_FALSE(decode<Report>(payload));

  Ready ready;
  payload = encode(ready);
  payload[0] = 2;  // a bool
  EXPECT_FALSE(decode<Ready>(payload));

  payload = encode(SpareReady{policy::kLastStage, 0, ""});
  ASSERT_TRUE(decode<SpareReady>(payload));
  payload[1] = static_cast<char>(policy::kLastStage) + 1;
  EXPECT_FALSE(decode<SpareReady>(payload));
}

TEST(Codec, ALengthBeyondThePayloadIsRefusedWithoutAllocatingIt) {
  std::string payload = encode(Report{});
  payload.replace(1, 4, "\xff\xff\xff\xff");
  EXPECT_FALSE(decode<Report>(payload));
}

TEST(Codec, ListsThatAnnounceMoreThanThereIsAreRefused) {
  Launch launch;
  std::string payload = encode(launch);
  payload.replace(0, 4, "\xff\xff\xff\x7f");
  EXPECT_FALSE(decode<Launch>(payload));
}

TEST(Codec, SpoiltReportsNeitherCrashNorGrow) {
  std::mt19937 random(20240601);
  const std::string good = encode(full_report());
  int decoded = 0;
  for (int i = 0; i < 50'000; ++i) {
    std::string bytes = good;
    for (int flips = 1 + static_cast<int>(random() % 4); flips > 0; --flips)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    if (const auto report = decode<Report>(bytes)) {
      ++decoded;
      EXPECT_LE(report->value_json.size(), bytes.size());
      EXPECT_LE(report->message.size(), bytes.size());
    }
  }
  EXPECT_GT(decoded, 0);  // flips within a text leave a report
}

TEST(Codec, AFrameOfAnotherTypeIsNoMessage) {
  FrameReader reader;
  reader.buffer() = framed(Reap{});
  const auto frame = reader.next();
  ASSERT_TRUE(frame);
  EXPECT_FALSE(message_in<Reaped>(*frame));
  EXPECT_TRUE(message_in<Reap>(*frame));
}

}  // namespace
}  // namespace pyplaypen::wire
