#include "runtime/wire/codec.h"

#include <concepts>
#include <cstring>
#include <tuple>
#include <type_traits>

namespace pyplaypen::wire {
namespace {

// Every message as its fields, in the order in which they travel; const where the message is.
template <typename Value, typename Message>
concept Is = std::same_as<std::remove_const_t<Value>, Message>;

auto members(Is<Limits> auto& m) {
  return std::tie(m.wall_seconds, m.cpu_seconds, m.memory_bytes, m.process_count, m.open_files, m.file_bytes,
                  m.artifact_count, m.artifact_bytes, m.stdout_bytes, m.stderr_bytes, m.return_value_bytes,
                  m.result_frame_bytes);
}
auto members(Is<Unshare> auto& m) {
  return std::tie(m.namespaces, m.map_root, m.hostname, m.mount_proc, m.command_uid, m.command_gid);
}
auto members(Is<Landlock> auto& m) {
  return std::tie(m.read_paths, m.write_paths, m.execute_paths, m.bind_tcp_ports, m.connect_tcp_ports);
}
auto members(Is<Request> auto& m) {
  return std::tie(m.request_id, m.code, m.extra_json, m.environment, m.limits);
}
auto members(Is<Report> auto& m) {
  return std::tie(m.status, m.value_json, m.message, m.traceback, m.line, m.exit_code, m.value_type,
                  m.value_repr, m.cpu_microseconds, m.max_rss_bytes);
}
auto members(Is<Setup> auto& m) {
  return std::tie(m.host_pid, m.base_directory, m.package_directory, m.python, m.environment, m.preload,
                  m.globals_provider, m.type_projector, m.confine_writes, m.unshare, m.landlock);
}
auto members(Is<StartPython> auto& m) { return std::tie(m.uid, m.gid); }
auto members(Is<Ready> auto& m) {
  return std::tie(m.extension_failed, m.failure, m.python_version, m.mapped_bytes);
}
auto members(Is<OpenKeeper> auto& m) { return std::tie(m.slot, m.uid, m.gid, m.cgroup_entrances); }
auto members(Is<CloseKeeper> auto& m) { return std::tie(m.slot); }
auto members(Is<KeeperReady> auto& m) {
  return std::tie(m.failure, m.scoped, m.user_namespace, m.workspace, m.error_number);
}
auto members(Is<Spawn> auto& m) { return std::tie(m.warm_up); }
auto members(Is<Launch> auto& m) {
  return std::tie(m.argv, m.environment, m.write_paths, m.merge_output, m.uid, m.gid, m.limits);
}
auto members(Is<Spawned> auto& m) {
  return std::tie(m.pid, m.with_pidfd, m.with_tasks, m.with_children, m.with_workspace, m.stage,
                  m.error_number, m.failure);
}
std::tuple<> members(Is<LeaderEnded> auto&) { return {}; }
auto members(Is<SpareReady> auto& m) { return std::tie(m.failed_stage, m.error_number, m.failure); }
std::tuple<> members(Is<Reap> auto&) { return {}; }
auto members(Is<Reaped> auto& m) {
  return std::tie(m.wait_status, m.cpu_microseconds, m.max_rss_bytes, m.processes);
}

template <typename Value>
concept HasMembers = requires(Value& value) { members(value); };

// Appends fields. Reader below is its mirror image.
class Writer {
 public:
  explicit Writer(std::string& to) : to_(to) {}

  template <typename Number>
    requires std::is_arithmetic_v<Number> || std::is_enum_v<Number>
  void field(const Number& value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    to_.append(bytes, sizeof bytes);
  }
  void field(const std::string& text) {
    field(static_cast<uint32_t>(text.size()));
    to_.append(text);
  }
  template <typename Value>
  void field(const std::optional<Value>& value) {
    field(static_cast<uint8_t>(value.has_value()));
    if (value) field(*value);
  }
  template <typename Item>
  void field(const std::vector<Item>& list) {
    field(static_cast<uint32_t>(list.size()));
    for (const Item& item : list) field(item);
  }
  template <HasMembers Message>
  void field(const Message& message) {
    std::apply([&](const auto&... each) { (field(each), ...); }, members(message));
  }
  void field(const Environment& environment) {
    field(static_cast<uint32_t>(environment.size()));
    for (const auto& [name, value] : environment) {
      field(name);
      field(value);
    }
  }

 private:
  std::string& to_;
};

class Reader {
 public:
  explicit Reader(std::string_view from) : from_(from) {}

  bool complete() const { return good_ && from_.empty(); }

  template <typename Number>
    requires std::is_arithmetic_v<Number> || std::is_enum_v<Number>
  void field(Number& value) {
    const std::string_view bytes = take(sizeof value);
    if (!good_) return;
    if constexpr (std::is_same_v<Number, bool>) {
      value = bytes[0] == 1;
      good_ = bytes[0] == 0 || bytes[0] == 1;
    } else {
      std::memcpy(&value, bytes.data(), sizeof value);
    }
    if constexpr (std::is_same_v<Number, ReportStatus>) good_ = value <= kLastReportStatus;
    if constexpr (std::is_same_v<Number, WarmUp>) good_ = value <= WarmUp::kYes;
    if constexpr (std::is_same_v<Number, policy::Stage>)
      good_ = value >= policy::Stage{} && value <= policy::kLastStage;
  }
  void field(std::string& text) {
    uint32_t size = 0;
    field(size);
    text.assign(take(size));
  }
  template <typename Value>
  void field(std::optional<Value>& value) {
    bool present = false;
    field(present);
    if (good_ && present) field(value.emplace());
  }
  template <typename Item>
  void field(std::vector<Item>& list) {
    uint32_t count = 0;
    field(count);
    for (uint32_t i = 0; good_ && i < count; ++i) field(list.emplace_back());
  }
  template <HasMembers Message>
  void field(Message& message) {
    std::apply([&](auto&... each) { (field(each), ...); }, members(message));
  }
  void field(Environment& environment) {
    uint32_t count = 0;
    field(count);
    for (uint32_t i = 0; good_ && i < count; ++i) {
      std::string name;
      std::string value;
      field(name);
      field(value);
      environment.insert_or_assign(std::move(name), std::move(value));
    }
  }

 private:
  std::string_view take(size_t size) {
    if (!good_ || size > from_.size()) {
      good_ = false;
      return {};
    }
    const std::string_view taken = from_.substr(0, size);
    from_.remove_prefix(size);
    return taken;
  }

  std::string_view from_;
  bool good_ = true;
};

template <typename Message>
std::string encode_fields(const Message& message) {
  std::string payload;
  Writer writer(payload);
  writer.field(message);
  return payload;
}

}  // namespace

std::string encode(const Request& message) { return encode_fields(message); }
std::string encode(const Report& message) { return encode_fields(message); }
std::string encode(const Setup& message) { return encode_fields(message); }
std::string encode(const StartPython& message) { return encode_fields(message); }
std::string encode(const Ready& message) { return encode_fields(message); }
std::string encode(const OpenKeeper& message) { return encode_fields(message); }
std::string encode(const CloseKeeper& message) { return encode_fields(message); }
std::string encode(const KeeperReady& message) { return encode_fields(message); }
std::string encode(const Spawn& message) { return encode_fields(message); }
std::string encode(const Launch& message) { return encode_fields(message); }
std::string encode(const Spawned& message) { return encode_fields(message); }
std::string encode(const LeaderEnded& message) { return encode_fields(message); }
std::string encode(const SpareReady& message) { return encode_fields(message); }
std::string encode(const Reap& message) { return encode_fields(message); }
std::string encode(const Reaped& message) { return encode_fields(message); }

template <typename Message>
std::optional<Message> decode(std::string_view payload) {
  Message message;
  Reader reader(payload);
  reader.field(message);
  if (!reader.complete()) return std::nullopt;
  return message;
}

template std::optional<Request> decode(std::string_view);
template std::optional<Report> decode(std::string_view);
template std::optional<Setup> decode(std::string_view);
template std::optional<StartPython> decode(std::string_view);
template std::optional<Ready> decode(std::string_view);
template std::optional<OpenKeeper> decode(std::string_view);
template std::optional<CloseKeeper> decode(std::string_view);
template std::optional<KeeperReady> decode(std::string_view);
template std::optional<Spawn> decode(std::string_view);
template std::optional<Launch> decode(std::string_view);
template std::optional<Spawned> decode(std::string_view);
template std::optional<LeaderEnded> decode(std::string_view);
template std::optional<SpareReady> decode(std::string_view);
template std::optional<Reap> decode(std::string_view);
template std::optional<Reaped> decode(std::string_view);

}  // namespace pyplaypen::wire
