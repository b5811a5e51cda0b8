// Code that finds the channel of its call and writes to it what it likes. It can state a false end of its
// own call, and nothing more.
#include <sys/resource.h>

#include <string>
#include <vector>

#include "tests/integration/processes.h"
#include "tests/integration/sandbox_fixture.h"

namespace pyplaypen {
namespace {

// docs/protocol.md, in Python.
constexpr char kPrelude[] = R"(
import array, os, signal, socket, struct, time
CHANNEL = 1000
REPORT, SPARE_READY, REQUEST, REAPED = 12, 10, 11, 14
OK, RUNTIME = 0, 2
def text(t):
    t = t if isinstance(t, bytes) else t.encode()
    return struct.pack('<I', len(t)) + t
def report(value='"forged"', status=OK, message='', tail=b'', cpu=1, line=b'\0'):
    return (struct.pack('<B', status) + text(value) + text(message) + text('') + line + b'\0' + text('') +
            text('') + struct.pack('<QQ', cpu, cpu) + tail)
def frame(payload, kind=REPORT, version=1, magic=0x4e505950, length=None):
    return struct.pack('<IHHI', magic, version, kind, len(payload) if length is None else length) + payload
def send(data):
    while data:
        data = data[os.write(CHANNEL, data):]
def channel():
    return socket.socket(fileno=os.dup(CHANNEL))
)";

struct Case {
  const char* name;
  const char* code;    // after the prelude
  const char* answer;  // the error type, or "ok" and then the value
  const char* says = "";  // in the message
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

constexpr Case kCases[] = {
    {"AForgedReport", "send(frame(report()))\ntime.sleep(60)", "ok \"forged\""},
    {"AForgedFailure", "send(frame(report('null', RUNTIME, 'so it says')))\ntime.sleep(60)", "runtime", "so it says"},
    {"OneByteAtATime", "for b in frame(report()): send(bytes([b]))\ntime.sleep(60)", "ok \"forged\""},
    {"TheFirstCounts", "send(frame(report('1')) + frame(report('2')) * 100)\n3", "ok 1"},
    {"TheFirstCountsAndNothingAfterIt", "send(frame(report('1')) + os.urandom(10000))\ntime.sleep(60)", "ok 1"},
    {"AfterAForgedOneItsOwnIsNotRead", "send(frame(report('1')))\nraise ValueError", "ok 1"},
    {"ByAGrandchild", "if os.fork() == 0:\n  if os.fork() == 0: send(frame(report()))\n  time.sleep(60)\ntime.sleep(60)",
     "ok \"forged\""},
    {"ByAGrandchildThatGoesOn",
     "if os.fork() == 0:\n  if os.fork() == 0:\n    while True: send(frame(report()))\n  time.sleep(60)\ntime.sleep(60)",
     "ok \"forged\""},
    {"ByOneThatTheLeaderLeftBehind",
     "if os.fork() == 0:\n  signal.signal(signal.SIGPIPE, signal.SIG_IGN)\n  os.setsid()\n"
     "  while os.getppid() == 1: pass\n  send(frame(report()))\n  time.sleep(60)\nos._exit(4)",
     "protocol ok", ""},
    {"CutOffByItsEnd", "send(frame(report())[:-1])\nos._exit(0)", "protocol", "exit status 0"},
    {"CutOffInItsHeader", "send(frame(report())[:7])\nos._exit(0)", "protocol", "exit status 0"},
    {"CutOffByACrash", "send(frame(report())[:20])\nos.kill(os.getpid(), signal.SIGSEGV)", "crash", "SIGSEGV"},
    {"CutOffByNothing", "send(frame(report())[:20])\ntime.sleep(60)", "timeout"},
    {"AHeaderAndSilence", "send(frame(b'', length=1000))\ntime.sleep(60)", "timeout"},
    {"Noise", "while True: send(os.urandom(65536))", "protocol"},
    {"Zeros", "while True: send(bytes(65536))", "protocol", "does not begin"},
    {"EndlessAsAnnounced", "send(frame(b'', length=2_000_000 - 12))\nwhile True: send(bytes(65536))", "protocol", "malformed"},
    {"OneByteTooLarge", "send(frame(b'', length=2_000_000 - 11))\ntime.sleep(60)", "protocol", "larger than 2000000"},
    {"FourGigabytes", "send(frame(b'', length=0xffffffff))\nwhile True: send(bytes(65536))", "protocol", "larger than"},
    {"AnotherMagicNumber", "send(frame(report(), magic=0x50505050))\ntime.sleep(60)", "protocol", "does not begin"},
    {"AnotherVersion", "send(frame(report(), version=2))\ntime.sleep(60)", "protocol", "version 2"},
    {"AnUnknownType", "send(frame(report(), kind=999))\ntime.sleep(60)", "protocol", "unknown type 999"},
    {"TypeZero", "send(frame(report(), kind=0))\ntime.sleep(60)", "protocol", "unknown type 0"},
    {"SetUpAgain", "send(frame(b'\\0' + bytes(8), kind=SPARE_READY))\ntime.sleep(60)", "protocol", "malformed"},
    {"SetUpFailed", "send(frame(b'\\1' + bytes(12), kind=SPARE_READY))\ntime.sleep(60)", "protocol", "malformed"},
    {"ARequest", "send(frame(b'', kind=REQUEST))\ntime.sleep(60)", "protocol", "malformed"},
    {"AsItsKeeper", "send(frame(bytes(24), kind=REAPED))\ntime.sleep(60)", "protocol", "malformed"},
    {"AnEmptyReport", "send(frame(b''))\ntime.sleep(60)", "protocol", "malformed"},
    {"LeftOverBytes", "send(frame(report(tail=b'x')))\ntime.sleep(60)", "protocol", "malformed"},
    {"AStatusThatIsNone", "send(frame(report(status=10)))\ntime.sleep(60)", "protocol", "malformed"},
    {"AnOptionalThatIsNeither", "send(frame(report(line=b'\\2')))\ntime.sleep(60)", "protocol", "malformed"},
    {"ATextLongerThanItsFrame", "send(frame(b'\\0' + struct.pack('<I', 0xffffffff) + b'1'))\ntime.sleep(60)", "protocol", "malformed"},
    {"AValueThatIsNone", "send(frame(report('')))\ntime.sleep(60)", "protocol", "not JSON"},
    {"TwoValues", "send(frame(report('1 2')))\ntime.sleep(60)", "protocol", "not JSON"},
    {"AValueNestedAsDeepAsItFits", "send(frame(report('[' * 900_000)))\ntime.sleep(60)", "protocol", "not JSON"},
    {"AValueNestedOneTooDeep", "send(frame(report('[' * 65 + ']' * 65)))\ntime.sleep(60)", "protocol", "not JSON"},
    {"AValueThatIsNotUtf8", "send(frame(report(b'\"\\xff\"')))\ntime.sleep(60)", "protocol", "not JSON"},
    {"AValueThatIsNaN", "send(frame(report('NaN')))\ntime.sleep(60)", "protocol", "not JSON"},
    {"AValueLargerThanItsLimit", "send(frame(report('\"' + 'x' * 999_999 + '\"')))\ntime.sleep(60)", "protocol", "larger than its limit"},
    {"AFailureWithAValue", "send(frame(report('[1]', RUNTIME, 'x')))\ntime.sleep(60)", "runtime"},
    {"AMessageOfAnyBytes", "send(frame(report('null', RUNTIME, b'\\x1b[2J\\0\\xff')))\ntime.sleep(60)", "runtime"},
    {"UsageBeyondAllMeasure", "send(frame(report('1', cpu=2**64 - 1)))\ntime.sleep(60)", "ok 1"},
    {"TheHintOfAnOverflow", "send(b'S')\nos.kill(os.getpid(), signal.SIGSEGV)", "crash", "stack overflow"},
    {"TheHintAndAnOrdinaryEnd", "send(b'S')\nos._exit(0)", "protocol", "exit status 0"},
    {"DescriptorsBesideTheFrame",
     "s = channel()\nmany = array.array('i', [0] * 100)\n"
     "f = frame(report())\ns.sendmsg([f[:1]], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, many)])\n"
     "s.sendmsg([f[1:9]], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, many[:2])])\nsend(f[9:])\ntime.sleep(60)",
     "ok \"forged\""},
    {"TheChannelThroughItself",
     "s = channel()\na, b = socket.socketpair()\n"
     "for _ in range(20):\n"
     "  a.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [CHANNEL, b.fileno()]))])\n"
     "s.sendmsg([frame(report())], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [CHANNEL, a.fileno()]))])\n"
     "time.sleep(60)",
     "ok \"forged\""},
    {"UrgentBytes", "s = channel()\ns.send(b'x', socket.MSG_OOB)\ntime.sleep(60)", "timeout protocol"},
    {"UrgentBytesInTheFrame",
     "s = channel()\nf = frame(report())\ns.sendall(f[:20])\ns.send(b'!', socket.MSG_OOB)\ns.sendall(f[20:])\ntime.sleep(60)",
     "ok timeout protocol"},
    {"NothingMoreToBeSent", "channel().shutdown(socket.SHUT_WR)\n1", "protocol", "exit status 1"},
    {"NothingMoreToBeReceived", "channel().shutdown(socket.SHUT_RD)\n1", "ok 1"},
    {"NonBlocking", "os.set_blocking(CHANNEL, False)\n['x' * 900_000][0][:3]", "ok \"xxx\""},
    {"NonBlockingAndLarge", "os.set_blocking(CHANNEL, False)\nlen(str(['x' * 900_000]))", "ok 900004"},
    {"AForgedReportUnderAFlood",
     "if os.fork() == 0:\n  while True: os.write(1, b'f' * 65536)\ntime.sleep(0.05)\nsend(frame(report()))\ntime.sleep(60)",
     "ok \"forged\""},
};

class Frames : public SandboxTest, public testing::WithParamInterface<Case> {
 protected:
  static std::string value_or_type(const Result& result) {
    return result.ok() ? "ok " + result.return_value : type_of(result);
  }
};

TEST_P(Frames, StateAFalseEndOfTheirOwnCallAndNoMore) {
  const Case& one = GetParam();
  const std::string answers = std::string(" ") + one.answer + " ";
  Limits limits;
  limits.wall_seconds = answers.find("timeout") == std::string::npos ? 30 : 0.5;
  // A descriptor or a byte lost by each would add up.
  for (int i = 0; i < 4; ++i) {
    const Result result = run(std::string(kPrelude) + one.code, limits);
    const std::string type = type_of(result);
    if (std::string_view(one.answer).starts_with("ok ") && answers.find("timeout") == std::string::npos) {
      EXPECT_EQ(value_or_type(result), one.answer) << (result.ok() ? "" : result.error->message);
    } else {
      EXPECT_NE(answers.find(" " + type + " "), std::string::npos) << value_or_type(result);
    }
    if (!result.ok()) {
      EXPECT_NE(result.error->message.find(one.says), std::string::npos) << result.error->message;
      EXPECT_EQ(result.return_value, "null");
    }
    EXPECT_FALSE(to_json(result).empty());
    EXPECT_EQ(run("6 * 7").return_value, "42");
  }
}

INSTANTIATE_TEST_SUITE_P(Hostile, Frames, testing::ValuesIn(kCases),
                         [](const auto& one) { return std::string(one.param.name); });

class Channel : public SandboxTest {};

TEST_F(Channel, IsFoundByLooking) {
  // Whatever its number is here.
  EXPECT_EQ(run(std::string(kPrelude) + "CHANNEL = [int(f) for f in os.listdir('/proc/self/fd') if int(f) > 2 and\n"
                                        "           os.path.exists('/proc/self/fd/' + f)][0]\n"
                                        "send(frame(report()))\ntime.sleep(60)")
                .return_value,
            "\"forged\"");
}

TEST_F(Channel, TheHostHoldsNoMoreThanTheLimitWhateverComes) {
  const auto peak_kb = [] { return std::stol(status_field(::getpid(), "VmHWM")); };
  Limits limits;
  limits.result_frame_bytes = 1 << 20;
  const std::string fills_it = std::string(kPrelude) + "send(frame(b'', length=(1 << 20) - 12))\nwhile True: send(bytes(65536))";
  const std::string exceeds_it = std::string(kPrelude) + "send(frame(b'', length=1 << 31))\nwhile True: send(bytes(65536))";
  EXPECT_EQ(type_of(fills_it, limits), "protocol");
  const long before = peak_kb();
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(type_of(fills_it, limits), "protocol");
    EXPECT_EQ(type_of(exceeds_it, limits), "protocol");
  }
#ifdef __SANITIZE_ADDRESS__  // which keeps freed memory for a while
  (void)before;
#else
  EXPECT_LE(peak_kb(), before + 4096);
#endif
}

TEST_F(Channel, WhatItGetsWithoutEndDoesNotKeepTheHostBusy) {
  // One look at a descriptor that is ready and gives nothing, again and again, would take all of it.
  Limits limits;
  limits.wall_seconds = 1;
  const auto cpu_seconds = [] {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
  };
  for (const char* code : {"channel().send(b'x', socket.MSG_OOB)", "channel().shutdown(socket.SHUT_WR)",
                           "os.close(CHANNEL)", "send(frame(report())[:20])", "os.close(1)\nos.close(2)",
                           "s = channel()\ns.send(b'PYPN')\ns.send(b'x', socket.MSG_OOB)"}) {
    const double before = cpu_seconds();
    (void)run(std::string(kPrelude) + code + "\ntime.sleep(60)", limits);
    EXPECT_LT(cpu_seconds() - before, 0.5) << code;
  }
}

}  // namespace
}  // namespace pyplaypen
