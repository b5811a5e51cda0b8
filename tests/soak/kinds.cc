#include "tests/soak/kinds.h"

#include <string>

namespace pyplaypen::soak {
namespace {

void soon(Limits& limits) { limits.wall_seconds = 0.3; }
void little_memory(Limits& limits) { limits.memory_bytes = 16 << 20; }
void little_output(Limits& limits) { limits.stdout_bytes = limits.stderr_bytes = 1000; }
void few_files(Limits& limits) { limits.open_files = 32; }
void small_files(Limits& limits) { limits.file_bytes = 1000; }
void small_value(Limits& limits) { limits.return_value_bytes = 1000; }
void little_cpu(Limits& limits) { limits.cpu_seconds = 0.05; }
void many_processes(Limits& limits) { limits.process_count = 50; }
// What cannot end by itself must not take the default half minute when something is wrong.
void bounded(Limits& limits) { limits.wall_seconds = 10; }

// Processes of a call are named by its number: "sleep 777000@" can be looked for afterwards.
constexpr Kind kKinds[] = {
    {"sum", 30, "1 + @", "ok", "+@"},
    {"print", 20, "print('call @')\nimport json\njson.loads('[@]')", "ok", "[@]", "call @\n"},
    {"state", 6, "import os\nseen = 'mark' in globals(), os.listdir('.')\nmark = 1\nseen", "ok", "[false,[]]"},
    {"raise", 8, "print('before @')\nraise ValueError('@')", "runtime", "null", "before @\n"},
    {"syntax", 3, "x = = @", "syntax"},
    {"exit", 3, "import sys\nsys.exit(@)", "runtime"},
    {"deep", 3, "def f(n): return f(n + 1)\nf(0)", "runtime"},
    {"object", 3, "object()", "serialization"},
    {"huge value", 2, "['x' * 100] * 1000", "return_limit", "null", {}, small_value},
    {"large value", 2, "len(str(['y' * 1000] * 500))", "ok", "502000"},
    {"segfault", 4, "print('so far @')\nimport ctypes\nctypes.string_at(0)", "crash", "null", "so far @\n"},
    {"abort", 3, "import os\nos.abort()", "crash"},
    {"kill itself", 4, "import os\nos.kill(os.getpid(), 9)", "crash"},
    {"terminate", 2, "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)", "crash"},
    {"leave", 4, "import os\nprint('x', flush=True)\nos._exit(3)", "protocol", "null", "x\n"},
    {"replaced", 2, "import os\nos.execv('/bin/true', ['true'])", "protocol"},
    {"sleep", 4, "print('here @', flush=True)\nimport time\ntime.sleep(60)", "timeout", "null", "here @\n", soon},
    {"spin", 2, "while True: pass", "cpu_limit", "null", {}, little_cpu},
    {"stopped", 2, "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)", "timeout", "null", {}, soon},
    {"deaf", 2,
     "import signal, time\nfor s in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:\n"
     "  signal.signal(s, signal.SIG_IGN)\ntime.sleep(60)",
     "timeout", "null", {}, soon},
    {"child", 4, "import subprocess\nsubprocess.run(['echo', '@'], capture_output=True, text=True).stdout", "ok",
     "\"@\\n\""},
    {"left behind", 4, "import subprocess\nsubprocess.Popen(['sleep', '777000@'])\n'done'", "ok", "\"done\""},
    {"daemon", 4, "import subprocess\nsubprocess.Popen(['setsid', 'sleep', '777000@'])\n'done'", "ok", "\"done\""},
    {"orphan", 4, "import subprocess\nsubprocess.run(['sh', '-c', '(setsid sleep 777000@ &) ; exit 0'])\n'done'",
     "ok", "\"done\""},
    {"stopped child", 3,
     "import os, signal, subprocess\np = subprocess.Popen(['sleep', '777000@'])\nos.kill(p.pid, signal.SIGSTOP)\n@",
     "ok", "@"},
    {"copies", 3, "import os, time\nfor _ in range(2):\n  if os.fork() == 0: time.sleep(60)\n@", "ok", "@", {}, bounded},
    {"leader first", 3, "import os, time\nif os.fork() == 0:\n  os.setsid()\n  time.sleep(60)\nos._exit(0)", "protocol",
     "null", {}, bounded},
    // 2^5 processes, and no more whatever limits them.
    {"fork bomb", 1,
     "import os, time\nme = os.getpid()\nfor _ in range(5):\n  try: os.fork()\n  except OSError: pass\n"
     "if os.getpid() != me: time.sleep(60)\n@",
     "ok", "@", {}, many_processes},
    {"threads", 2,
     "import threading, time\nfor _ in range(5): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n@",
     "ok", "@"},
    {"flood", 3, "import sys\nfor _ in range(200): print('z' * 999)\nprint('e' * 99999, file=sys.stderr)\n@", "ok", "@",
     "zzzzzzzz", little_output},
    {"flood without end", 2, "import os\nwhile True: os.write(1, b'f' * 65536)", "timeout cpu_limit", "null", "ffff",
     soon},
    {"artifact", 4, "open('f', 'w').write('call @')\n@", "ok", "@", {}, nullptr, 1},
    {"hidden files", 3,
     "import os, tempfile\nos.makedirs('.a/b')\nopen('.a/b/c', 'w').close()\nos.chmod('.a', 0)\n"
     "open(os.environ['HOME'] + '/h', 'w').close()\ntempfile.mkdtemp()\n@",
     "ok", "@"},
    {"link", 2, "import os\nos.symlink('/etc/passwd', 'p')", "artifact_limit"},
    {"large file", 2, "f = open('f', 'wb', buffering=0)\nf.write(b'x' * 1001)\nNone", "artifact_limit", "null", {},
     small_files},
    {"workspace gone", 2, "import os, shutil\nshutil.rmtree(os.getcwd(), ignore_errors=True)\n@", "ok", "@"},
    {"much memory", 3, "bytearray(64 << 20)\n1", "memory_limit", "null", {}, little_memory},
    {"growing list", 1, "a = []\nwhile True: a.append('m' * 10000 + str(len(a)))", "memory_limit", "null", {},
     little_memory},
    {"many files", 2, "a = [open('/dev/null') for _ in range(40)]", "open_files_limit", "null", {}, few_files},
    {"streams closed", 3, "import os\nos.close(0)\nos.close(1)\nos.close(2)\n@", "ok", "@"},
    {"channel closed", 3, "import os\nos.closerange(3, 2000)\n@", "protocol"},
    {"channel garbled", 3, "import os\nos.write(1000, b'no frame at all')\n@", "protocol"},
    {"channel as stderr", 2, "import os, sys\nos.dup2(1000, 2)\nprint('x', file=sys.stderr)\n@", "protocol"},
    {"everything closed", 2, "import os\nos.closerange(0, 2000)\nwhile True: pass", "timeout", "null", {}, soon},
};

}  // namespace

std::span<const Kind> kinds() { return kKinds; }

std::string fill_in(std::string_view text, uint64_t number) {
  std::string filled;
  for (const char c : text) {
    if (c == '@') {
      filled += std::to_string(number);
    } else {
      filled += c;
    }
  }
  return filled;
}

std::string answer_of(const Result& result) {
  return result.ok() ? "ok" : std::string(error_type_name(result.error->type));
}

std::string wrong_with(const Kind& kind, const Result& result, uint64_t number) {
  const std::string answer = answer_of(result);
  const std::string right = " " + std::string(kind.answers) + " ";
  if (right.find(" " + answer + " ") == std::string::npos)
    return answer + " instead of " + std::string(kind.answers) + (result.ok() ? "" : ": " + result.error->message);
  std::string value = fill_in(kind.value, number);
  if (value.starts_with('+')) value = std::to_string(number + 1);
  if (result.return_value != value) return "the value " + result.return_value.substr(0, 100) + " instead of " + value;
  if (result.artifacts.size() != kind.artifacts)
    return std::to_string(result.artifacts.size()) + " artifacts instead of " + std::to_string(kind.artifacts);
  // On a busy machine a deadline may come before the first line has run.
  const bool nothing_yet = answer == "timeout" && result.stdout_output.bytes.empty();
  if (!nothing_yet && !result.stdout_output.bytes.starts_with(fill_in(kind.output, number)))
    return "the output '" + result.stdout_output.bytes.substr(0, 100) + "'";
  return {};
}

}  // namespace pyplaypen::soak
