#include "pyplaypen/limits.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <variant>

namespace pyplaypen {
namespace {

using Member = std::variant<double Limits::*, uint64_t Limits::*>;

struct Row {
  std::string_view name;
  Member member;
  double least;  // the smallest value that a call can run under
};

// A child needs its three standard descriptors, the one it reports on, and two to import a module.
constexpr double kLeastOpenFiles = 8;
// Ten years. Beyond about 2^63 ns the kernel's clocks overflow.
constexpr double kMostSeconds = 315'360'000;

constexpr std::array kRows = {
    Row{"wall_seconds", &Limits::wall_seconds, 0},
    Row{"cpu_seconds", &Limits::cpu_seconds, 0},
    Row{"memory_bytes", &Limits::memory_bytes, 0},
    Row{"process_count", &Limits::process_count, 1},
    Row{"open_files", &Limits::open_files, kLeastOpenFiles},
    Row{"file_bytes", &Limits::file_bytes, 0},
    Row{"artifact_count", &Limits::artifact_count, 0},
    Row{"artifact_bytes", &Limits::artifact_bytes, 0},
    Row{"stdout_bytes", &Limits::stdout_bytes, 0},
    Row{"stderr_bytes", &Limits::stderr_bytes, 0},
    Row{"return_value_bytes", &Limits::return_value_bytes, 0},
    Row{"result_frame_bytes", &Limits::result_frame_bytes, 0},
};

constexpr auto kNames = [] {
  std::array<std::string_view, kRows.size()> names{};
  for (size_t i = 0; i < names.size(); ++i) names[i] = kRows[i].name;
  return names;
}();

const Row& row_of(std::string_view name) {
  for (const Row& row : kRows)
    if (row.name == name) return row;
  std::string text = "unknown limit '" + std::string(name) + "'; the limits are";
  for (const std::string_view known : kNames) text.append(" ").append(known);
  throw LimitError(text);
}

std::string sentence(std::string_view name, std::string_view value, std::string_view why) {
  return std::string("limit ").append(name).append("=").append(value).append(": ").append(why);
}

// The digits without separators; "_" is allowed between two digits only, as in Python.
std::string without_separators(std::string_view text, std::string_view name) {
  const auto digit = [&](size_t i) { return i < text.size() && text[i] >= '0' && text[i] <= '9'; };
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      plain.push_back(text[i]);
    } else if (i == 0 || !digit(i - 1) || !digit(i + 1)) {
      throw LimitError(sentence(name, text, "'_' may stand between two digits only"));
    }
  }
  return plain;
}

double parse_number(std::string_view name, std::string_view text) {
  const std::string plain = without_separators(text, name);
  double value = 0;
  const char* const end = plain.data() + plain.size();
  const char* const start = plain.starts_with('+') ? plain.data() + 1 : plain.data();
  const auto parsed = std::from_chars(start, end, value);
  if (parsed.ec == std::errc::result_out_of_range)
    throw LimitError(sentence(name, text, "the number is out of range"));
  if (parsed.ec != std::errc() || parsed.ptr != end || plain.empty())
    throw LimitError(sentence(name, text, "not a number; write it as digits, for example 60 or 1_000"));
  if (!std::isfinite(value))
    throw LimitError(sentence(name, text, "must be finite; it would switch the limit off"));
  if (value < 0 || std::signbit(value))
    throw LimitError(sentence(name, text, "must not be negative; it would switch the limit off"));
  return value;
}

uint64_t parse_whole(std::string_view name, std::string_view text) {
  const std::string plain = without_separators(text, name);
  uint64_t value = 0;
  const char* const end = plain.data() + plain.size();
  const char* const start = plain.starts_with('+') ? plain.data() + 1 : plain.data();
  const auto parsed = std::from_chars(start, end, value);
  if (parsed.ec == std::errc() && parsed.ptr == end && !plain.empty()) return value;
  const double real = parse_number(name, text);  // the better sentence for "-1", "nan" and "abc"
  if (real != std::floor(real)) throw LimitError(sentence(name, text, "must be a whole number"));
  if (real >= 18446744073709551616.0)  // 2^64
    throw LimitError(sentence(name, text, "the number is out of range"));
  throw LimitError(sentence(name, text, "must be a whole number, written as digits"));
}

// `more`: by how much the resource limit that is set lies above the value.
void check_inherited(const Limits& limits, std::string_view name, int resource, uint64_t value, uint64_t more) {
  rlimit inherited{};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &inherited) != 0) return;
  const uint64_t most = inherited.rlim_max - std::min<uint64_t>(more, inherited.rlim_max);
  if (inherited.rlim_max == RLIM_INFINITY || (value <= most && more <= inherited.rlim_max)) return;
  throw LimitError(sentence(name, limit_text(limits, name),
                            "above the hard limit that this process inherited; the range here is up to " +
                                std::to_string(most)));
}

}  // namespace

void set_limit(Limits& limits, std::string_view name, std::string_view text, LimitUse use) {
  const Row& row = row_of(name);
  Limits changed = limits;
  if (const auto* real = std::get_if<double Limits::*>(&row.member)) {
    changed.*(*real) = parse_number(name, text);
  } else {
    changed.*std::get<uint64_t Limits::*>(row.member) = parse_whole(name, text);
  }
  if (name == "cpu_seconds" && use == LimitUse::kCommand &&
      changed.cpu_seconds != std::floor(changed.cpu_seconds))
    throw LimitError(sentence(name, text, "must be a whole number of seconds for a command"));
  limits = changed;
}

void set_limit(Limits& limits, std::string_view assignment, LimitUse use) {
  const size_t equals = assignment.find('=');
  if (equals == std::string_view::npos)
    throw LimitError("limit '" + std::string(assignment) + "' must be written as name=value");
  set_limit(limits, assignment.substr(0, equals), assignment.substr(equals + 1), use);
}

void check_limits(const Limits& limits, LimitUse use) {
  for (const Row& row : kRows) {
    if (const auto* real = std::get_if<double Limits::*>(&row.member)) {
      const double value = limits.*(*real);
      if (!std::isfinite(value) || value < row.least || value > kMostSeconds)
        throw LimitError(sentence(row.name, limit_text(limits, row.name), "must be a number of seconds from 0 to 315360000"));
    } else if (static_cast<double>(limits.*std::get<uint64_t Limits::*>(row.member)) < row.least) {
      throw LimitError(sentence(row.name, limit_text(limits, row.name),
                                "must be at least " + std::to_string(static_cast<int>(row.least))));
    }
  }
  if (use == LimitUse::kCommand && limits.cpu_seconds != std::floor(limits.cpu_seconds))
    throw LimitError(sentence("cpu_seconds", limit_text(limits, "cpu_seconds"),
                              "must be a whole number of seconds for a command"));
  const auto inherited = [&](std::string_view name, int resource, uint64_t value, uint64_t more) {
    check_inherited(limits, name, resource, value, more);
  };
  // The hard limit is one second above the soft one.
  inherited("cpu_seconds", RLIMIT_CPU, static_cast<uint64_t>(std::ceil(limits.cpu_seconds)), 1);
  inherited("memory_bytes", RLIMIT_AS, limits.memory_bytes, 0);
  inherited("open_files", RLIMIT_NOFILE, limits.open_files, 0);
  // For code one byte higher, so that a file which was cut there can be told from one that fits.
  const bool exact = use == LimitUse::kCommand ||
                     limits.file_bytes == std::numeric_limits<uint64_t>::max();
  inherited("file_bytes", RLIMIT_FSIZE, limits.file_bytes, exact ? 0 : 1);
}

std::span<const std::string_view> limit_names() { return kNames; }

std::string limit_text(const Limits& limits, std::string_view name) {
  const Row& row = row_of(name);
  char buffer[64];
  std::to_chars_result written{};
  if (const auto* real = std::get_if<double Limits::*>(&row.member)) {
    written = std::to_chars(buffer, buffer + sizeof buffer, limits.*(*real));
  } else {
    written = std::to_chars(buffer, buffer + sizeof buffer,
                            limits.*std::get<uint64_t Limits::*>(row.member));
  }
  return {buffer, written.ptr};
}

}  // namespace pyplaypen
