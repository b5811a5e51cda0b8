#include "zygote/oom_order.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace pyplaypen::zygote {
namespace {

constexpr char kFile[] = "/proc/self/oom_score_adj";
constexpr std::string_view kFirst = "1000";  // OOM_SCORE_ADJ_MAX, include/uapi/linux/oom.h
constexpr int kAfterCalls = 500;

std::string read_own(int file) {
  char text[16] = {};
  const ssize_t got = file < 0 ? -1 : ::pread(file, text, sizeof text - 1, 0);
  return got > 0 ? text : "";
}

// Raising is everybody's right; lowering it again to where somebody with CAP_SYS_RESOURCE has put it, too.
// Where it fails, the order is another, and nothing else.
void write(int file, std::string_view value) { (void)!::pwrite(file, value.data(), value.size(), 0); }

}  // namespace

void come_after_calls() {
  const sys::UniqueFd file(::open(kFile, O_RDWR | O_CLOEXEC));
  const std::string own = read_own(file.get());
  if (!own.empty() && std::atoi(own.c_str()) < kAfterCalls) write(file.get(), std::to_string(kAfterCalls));
}

OomOrder::OomOrder() : file_(::open(kFile, O_RDWR | O_CLOEXEC)), own_(read_own(file_.get())) {}

void OomOrder::first() const {
  if (file_) write(file_.get(), kFirst);
}

void OomOrder::not_first() const {
  if (file_) write(file_.get(), own_);
}

}  // namespace pyplaypen::zygote
