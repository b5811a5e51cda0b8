#include "runtime/wire/codec.h"

#include <cstring>
#include <type_traits>

namespace pyplaypen::wire {
namespace {

// Appends fields. Reader below is its mirror image: one `fields` function a message serves both.
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

template <typename Coder, typename Value>
void fields(Coder& coder, Value& m)
  requires std::is_same_v<std::remove_const_t<Value>, Limits>
{
  coder.field(m.wall_seconds);
  coder.field(m.cpu_seconds);
  coder.field(m.memory_bytes);
  coder.field(m.process_count);
  coder.field(m.open_files);
  coder.field(m.file_bytes);
  coder.field(m.artifact_count);
  coder.field(m.artifact_bytes);
  coder.field(m.stdout_bytes);
  coder.field(m.stderr_bytes);
  coder.field(m.return_value_bytes);
  coder.field(m.result_frame_bytes);
}

template <typename Coder, typename Value>
void fields(Coder& coder, Value& m)
  requires std::is_same_v<std::remove_const_t<Value>, Request>
{
  coder.field(m.request_id);
  coder.field(m.code);
  coder.field(m.extra_json);
  coder.field(m.environment);
  fields(coder, m.limits);
}

template <typename Coder, typename Value>
void fields(Coder& coder, Value& m)
  requires std::is_same_v<std::remove_const_t<Value>, Report>
{
  coder.field(m.status);
  coder.field(m.value_json);
  coder.field(m.message);
  coder.field(m.traceback);
  coder.field(m.line);
  coder.field(m.exit_code);
  coder.field(m.value_type);
  coder.field(m.value_repr);
  coder.field(m.cpu_microseconds);
  coder.field(m.max_rss_bytes);
}

template <typename Coder, typename Value>
void fields(Coder& coder, Value& m)
  requires std::is_same_v<std::remove_const_t<Value>, Unshare>
{
  coder.field(m.namespaces);
  coder.field(m.map_root);
  coder.field(m.hostname);
  coder.field(m.mount_proc);
  coder.field(m.command_uid);
  coder.field(m.command_gid);
}

template <typename Coder, typename Value>
void fields(Coder& coder, Value& m)
  requires std::is_same_v<std::remove_const_t<Value>, Landlock>
{
  coder.field(m.read_paths);
  coder.field(m.write_paths);
  coder.field(m.execute_paths);
  coder.field(m.bind_tcp_ports);
  coder.field(m.connect_tcp_ports);
}

template <typename Coder, typename Value>
void fields(Coder& coder, Value& m)
  requires std::is_same_v<std::remove_const_t<Value>, Setup>
{
  coder.field(m.host_pid);
  coder.field(m.base_directory);
  coder.field(m.package_directory);
  coder.field(m.python);
  coder.field(m.environment);
  coder.field(m.preload);
  coder.field(m.globals_provider);
  coder.field(m.type_projector);
  coder.field(m.confine_writes);
  fields(coder, m.unshare);
  fields(coder, m.landlock);
}

template <typename Coder, typename Value>
void fields(Coder& coder, Value& m)
  requires std::is_same_v<std::remove_const_t<Value>, StartPython>
{
  coder.field(m.uid);
  coder.field(m.gid);
}

template <typename Coder, typename Value>
void fields(Coder& coder, Value& m)
  requires std::is_same_v<std::remove_const_t<Value>, Ready>
{
  coder.field(m.extension_failed);
  coder.field(m.failure);
  coder.field(m.python_version);
  coder.field(m.mapped_bytes);
}

template <typename Coder, typename Value>
void fields(Coder& coder, Value& m)
  requires std::is_same_v<std::remove_const_t<Value>, OpenKeeper>
{
  coder.field(m.slot);
  coder.field(m.uid);
  coder.field(m.gid);
  coder.field(m.cgroup_entrances);
}

template <typename Coder, typename Value>
void fields(Coder& coder, Value& m)
  requires std::is_same_v<std::remove_const_t<Value>, KeeperReady>
{
  coder.field(m.failure);
  coder.field(m.scoped);
  coder.field(m.user_namespace);
  coder.field(m.workspace);
}

template <typename Coder, typename Value>
void fields(Coder& coder, Value& m)
  requires std::is_same_v<std::remove_const_t<Value>, Spawn>
{
  coder.field(m.warm_up);
}

template <typename Coder, typename Value>
void fields(Coder& coder, Value& m)
  requires std::is_same_v<std::remove_const_t<Value>, Launch>
{
  coder.field(m.argv);
  coder.field(m.environment);
  coder.field(m.write_paths);
  coder.field(m.merge_output);
  coder.field(m.uid);
  coder.field(m.gid);
  fields(coder, m.limits);
}

template <typename Coder, typename Value>
void fields(Coder& coder, Value& m)
  requires std::is_same_v<std::remove_const_t<Value>, Spawned>
{
  coder.field(m.pid);
  coder.field(m.stage);
  coder.field(m.error_number);
  coder.field(m.failure);
}

template <typename Coder, typename Value>
void fields(Coder& coder, Value& m)
  requires std::is_same_v<std::remove_const_t<Value>, SpareReady>
{
  coder.field(m.failed_stage);
  coder.field(m.error_number);
  coder.field(m.failure);
}

template <typename Coder, typename Value>
void fields(Coder&, Value&)
  requires std::is_same_v<std::remove_const_t<Value>, Reap> ||
           std::is_same_v<std::remove_const_t<Value>, LeaderEnded>
{}

template <typename Coder, typename Value>
void fields(Coder& coder, Value& m)
  requires std::is_same_v<std::remove_const_t<Value>, Reaped>
{
  coder.field(m.wait_status);
  coder.field(m.cpu_microseconds);
  coder.field(m.max_rss_bytes);
  coder.field(m.processes);
}

template <typename Message>
std::string encode_fields(const Message& message) {
  std::string payload;
  Writer writer(payload);
  fields(writer, message);
  return payload;
}

}  // namespace

std::string encode(const Request& message) { return encode_fields(message); }
std::string encode(const Report& message) { return encode_fields(message); }
std::string encode(const Setup& message) { return encode_fields(message); }
std::string encode(const StartPython& message) { return encode_fields(message); }
std::string encode(const Ready& message) { return encode_fields(message); }
std::string encode(const OpenKeeper& message) { return encode_fields(message); }
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
  fields(reader, message);
  if (!reader.complete()) return std::nullopt;
  return message;
}

template std::optional<Request> decode(std::string_view);
template std::optional<Report> decode(std::string_view);
template std::optional<Setup> decode(std::string_view);
template std::optional<StartPython> decode(std::string_view);
template std::optional<Ready> decode(std::string_view);
template std::optional<OpenKeeper> decode(std::string_view);
template std::optional<KeeperReady> decode(std::string_view);
template std::optional<Spawn> decode(std::string_view);
template std::optional<Launch> decode(std::string_view);
template std::optional<Spawned> decode(std::string_view);
template std::optional<LeaderEnded> decode(std::string_view);
template std::optional<SpareReady> decode(std::string_view);
template std::optional<Reap> decode(std::string_view);
template std::optional<Reaped> decode(std::string_view);

}  // namespace pyplaypen::wire
