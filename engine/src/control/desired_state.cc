#include "control/desired_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "control/desired_parts.h"
#include "control/strict_json.h"

namespace thalweg::control {
namespace {

using nlohmann::json;

constexpr size_t kStreamsMax = 1000;
constexpr size_t kTablesMax = 100'000;
constexpr size_t kCodeMax = 1000;  // of a table
constexpr size_t kDestinationsMax = 64;
constexpr size_t kDestinationIdBytesMax = 16;
constexpr size_t kNameBytesMax = 1000;
constexpr size_t kNetworksMax = 1000;
constexpr size_t kIdentifierBytesMax = 256;  // NAMEDATALEN is 64 unless somebody built a server of their own

constexpr std::array<std::string_view, 3> kStatusNames = {"ENABLED", "DISABLED", "DROPPED"};

bool is_lower_alphanumeric(std::string_view id) {
  return std::ranges::all_of(id, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); });
}

bool is_stream_id(std::string_view id) { return id.size() >= 8 && id.size() <= 32 && is_lower_alphanumeric(id); }

DesiredStatus read_status(ObjectReader& reader) {
  const std::string status = reader.string("status", 1, kNameBytesMax);
  if (reader.failed()) return DesiredStatus::disabled;
  const auto found = std::ranges::find(kStatusNames, status);
  if (found == kStatusNames.end()) {
    reader.refuse("status", fmt::format("must be one of {}", fmt::join(kStatusNames, ", ")));
    return DesiredStatus::disabled;
  }
  return static_cast<DesiredStatus>(found - kStatusNames.begin());
}

// Which of the source's servers is read.
void read_server(ObjectReader& reader, DatabaseRef& source) {
  if (!reader.member("read_from", false)) return;
  const std::string server = reader.string("read_from", 1, kNameBytesMax);
  if (server == "standby") {
    source.reads_standby = true;
    source.conninfo.role = base::ServerRole::standby_first;
  } else if (!reader.failed() && server != "primary") {
    reader.refuse("read_from", "must be one of primary, standby");
  }
}

base::Result<void> read_database(ObjectReader& parent, std::string_view member, DatabaseRef& out) {
  const json* value = parent.member(member, true);
  if (!value) return {};
  ObjectReader reader(*value, parent.pointer(member));
  out.name = reader.string("name", 1, kNameBytesMax);
  out.conninfo = reader.string("conninfo", 1, kConninfoBytesMax);
  if (member == "source") read_server(reader, out);
  return reader.finish();
}

// What a conninfo may lead to goes with it.
void keep_within(StreamDefinition& stream, const std::shared_ptr<const base::Networks>& networks) {
  stream.source.conninfo.within = networks;
  stream.destination.conninfo.within = networks;
  for (DestinationDefinition& one : stream.destinations) one.conninfo.within = networks;
}

base::Result<void> read_send_to(ObjectReader& parent, std::optional<SendTo>& out) {
  const json* value = parent.member("send_to", false);
  if (!value) return {};
  ObjectReader reader(*value, parent.pointer("send_to"));
  SendTo& to = out.emplace();
  to.engine = reader.string("engine", 1, kNameBytesMax);
  to.host = reader.string("host", 1, kNameBytesMax);
  const uint64_t port = reader.unsigned_integer("port");
  if (!reader.failed() && (port < 1 || port > 65535)) reader.refuse("port", "must be a port from 1 to 65535");
  to.port = static_cast<int64_t>(port);
  return reader.finish();
}

base::Result<void> read_paths(ObjectReader& parent, StreamDefinition& out) {
  THALWEG_TRY(read_send_to(parent, out.send_to));
  if (const json* value = parent.member("receive_from", false)) {
    ObjectReader reader(*value, parent.pointer("receive_from"));
    ReceiveFrom& from = out.receive_from.emplace();
    from.engine = reader.string("engine", 1, kNameBytesMax);
    from.shared_capture = reader.boolean("shared_capture", false);
    THALWEG_TRY(reader.finish());
  }
  if (out.send_to && out.receive_from) parent.refuse("receive_from", "cannot stand beside send_to");
  return {};
}

void read_parameter(ObjectReader& reader, const ParameterSpec& spec, StreamParameters& out) {
  const json* value = reader.member(spec.name, false);
  if (!value) return;
  if (auto* integer = std::get_if<int64_t StreamParameters::*>(&spec.field)) {
    bool fits = value->is_number_integer() && (!value->is_number_unsigned() || value->get<uint64_t>() <= INT64_MAX);
    int64_t number = fits ? value->get<int64_t>() : 0;
    if (!fits || number < spec.minimum || number > spec.maximum) {
      reader.refuse(spec.name, fmt::format("must be a whole number from {} to {}", spec.minimum, spec.maximum));
    } else {
      out.** integer = number;
    }
  } else if (auto* flag = std::get_if<bool StreamParameters::*>(&spec.field)) {
    if (!value->is_boolean()) {
      reader.refuse(spec.name, "must be true or false");
    } else {
      out.** flag = value->get<bool>();
    }
  } else if (auto* choice = std::get_if<std::string StreamParameters::*>(&spec.field)) {
    if (!value->is_string() ||
        std::ranges::find(spec.values, value->get_ref<const std::string&>()) == spec.values.end()) {
      reader.refuse(spec.name, fmt::format("must be one of {}", fmt::join(spec.values, ", ")));
    } else {
      out.** choice = value->get<std::string>();
    }
  }
}

base::Result<void> read_parameters(ObjectReader& parent, StreamParameters& out) {
  const json* value = parent.member("parameters", false);
  if (!value) return {};
  ObjectReader reader(*value, parent.pointer("parameters"));
  for (const ParameterSpec& spec : parameter_specs()) read_parameter(reader, spec, out);
  return reader.finish();
}

base::Result<DestinationDefinition> read_destination(const json& value, const std::string& pointer,
                                                     const StreamParameters& stream_parameters) {
  ObjectReader reader(value, pointer);
  DestinationDefinition out;
  out.parameters = stream_parameters;
  out.id = reader.string("id", 1, kDestinationIdBytesMax);
  if (!reader.failed() && !is_lower_alphanumeric(out.id)) reader.refuse("id", "must match ^[a-z0-9]{1,16}$");
  out.name = reader.string("name", 1, kNameBytesMax);
  out.status = read_status(reader);
  out.force = reader.boolean("force", false);
  THALWEG_TRY(read_send_to(reader, out.send_to));
  if (!out.send_to) out.conninfo = reader.string("conninfo", 1, kConninfoBytesMax);
  THALWEG_TRY(read_parameters(reader, out.parameters));
  for (const std::string_view shared : {"queue_size", "queue_memory_mb", "source_plugin"}) {
    const json* given = reader.member("parameters", false);
    if (given && given->contains(shared)) {
      return std::unexpected(invalid_at(fmt::format("{}/{}", reader.pointer("parameters"), shared),
                                        "belongs to the stream: its destinations share one capture and one queue"));
    }
  }
  THALWEG_TRY(reader.finish());
  return out;
}

base::Result<void> read_destinations(ObjectReader& parent, const json& value, StreamDefinition& out) {
  const std::string pointer = parent.pointer("destinations");
  if (!value.is_array() || value.empty() || value.size() > kDestinationsMax) {
    return std::unexpected(
        invalid_at(pointer, fmt::format("must be an array of 1 to {} destinations", kDestinationsMax)));
  }
  if (out.send_to) {
    return std::unexpected(
        invalid_at(parent.pointer("send_to"), "belongs into one of the destinations, beside its id"));
  }
  if (out.receive_from) {
    return std::unexpected(
        invalid_at(pointer, "cannot stand beside receive_from: an engine that receives has one destination"));
  }
  std::set<std::string> ids;
  for (size_t i = 0; i < value.size(); ++i) {
    const std::string at = fmt::format("{}/{}", pointer, i);
    THALWEG_ASSIGN(DestinationDefinition destination, read_destination(value[i], at, out.parameters));
    if (!ids.insert(destination.id).second) return std::unexpected(invalid_at(at + "/id", "names a destination twice"));
    out.destinations.push_back(std::move(destination));
  }
  const auto dropped = [](const DestinationDefinition& one) { return one.status == DesiredStatus::dropped; };
  if (out.status != DesiredStatus::dropped && std::ranges::all_of(out.destinations, dropped)) {
    return std::unexpected(invalid_at(pointer, "are all DROPPED: to end the stream, set its own status to DROPPED"));
  }
  return {};
}

base::Result<StreamDefinition> read_stream(const json& value, const std::string& pointer) {
  ObjectReader reader(value, pointer);
  StreamDefinition stream;
  stream.id = reader.string("id", 1, kNameBytesMax);
  if (!reader.failed() && !is_stream_id(stream.id)) reader.refuse("id", "must match ^[a-z0-9]{8,32}$");
  stream.name = reader.string("name", 1, kNameBytesMax);
  stream.status = read_status(reader);
  stream.force = reader.boolean("force", false);
  THALWEG_TRY(read_database(reader, "source", stream.source));
  THALWEG_TRY(read_paths(reader, stream));
  THALWEG_TRY(read_tables(reader, stream.tables, stream.inserts_only, &stream.accepted_code));
  THALWEG_TRY(read_parameters(reader, stream.parameters));
  if (const json* destinations = reader.member("destinations", false)) {
    THALWEG_TRY(read_destinations(reader, *destinations, stream));
  } else if (!stream.send_to) {
    THALWEG_TRY(read_database(reader, "destination", stream.destination));
  }
  THALWEG_TRY(reader.finish());
  return stream;
}

json to_json(const DatabaseRef& database) {
  json out = {{"name", database.name}, {"conninfo", database.conninfo.text}};
  if (database.reads_standby) out["read_from"] = "standby";
  return out;
}

json to_json(const SendTo& to) { return {{"engine", to.engine}, {"host", to.host}, {"port", to.port}}; }

// What differs from `from` only: a later version's better default reaches old streams.
json parameters_beyond(const StreamParameters& from, const StreamParameters& parameters) {
  json out = json::object();
  for (const ParameterSpec& spec : parameter_specs()) {
    std::visit(
        [&](auto field) {
          if (parameters.*field != from.*field) out[std::string(spec.name)] = parameters.*field;
        },
        spec.field);
  }
  return out;
}

json to_json(const DestinationDefinition& destination, const StreamParameters& stream_parameters) {
  json out = {{"id", destination.id},
              {"name", destination.name},
              {"status", name_of(destination.status)},
              {"force", destination.force},
              {"parameters", parameters_beyond(stream_parameters, destination.parameters)}};
  if (destination.send_to) {
    out["send_to"] = to_json(*destination.send_to);
  } else {
    out["conninfo"] = destination.conninfo.text;
  }
  return out;
}

json to_json(const StreamDefinition& stream) {
  json tables = json::array();
  for (const TableRef& table : stream.tables) {
    tables.push_back({{"schema", table.schema}, {"table", table.table}});
    if (stream.inserts_only.contains(table)) tables.back()["inserts_only"] = true;
    if (const auto code = stream.accepted_code.find(table); code != stream.accepted_code.end()) {
      tables.back()["accepted_code"] = code->second;
    }
  }
  json out = {{"id", stream.id},
              {"name", stream.name},
              {"status", name_of(stream.status)},
              {"force", stream.force},
              {"source", to_json(stream.source)},
              {"tables", std::move(tables)},
              {"parameters", parameters_beyond({}, stream.parameters)}};
  if (stream.fans_out()) {
    for (const DestinationDefinition& one : stream.destinations) {
      out["destinations"].push_back(to_json(one, stream.parameters));
    }
  } else if (stream.send_to) {
    out["send_to"] = to_json(*stream.send_to);
  } else {
    out["destination"] = to_json(stream.destination);
  }
  if (stream.receive_from) {
    out["receive_from"] = {{"engine", stream.receive_from->engine}};
    if (stream.receive_from->shared_capture) out["receive_from"]["shared_capture"] = true;
  }
  return out;
}

}  // namespace

base::Result<base::Networks> read_networks(ObjectReader& parent) {
  const json* value = parent.member("database_networks", false);
  if (!value) return base::Networks();
  const std::string pointer = parent.pointer("database_networks");
  const auto is_text = [](const json& one) { return one.is_string(); };
  if (!value->is_array() || value->size() > kNetworksMax || !std::ranges::all_of(*value, is_text)) {
    return std::unexpected(invalid_at(pointer, fmt::format("must be an array of at most {} ranges", kNetworksMax)));
  }
  auto networks = base::Networks::parse(value->get<std::vector<std::string>>());
  if (!networks) return std::unexpected(invalid_at(pointer, networks.error().message));
  return networks;
}

base::Result<std::set<std::string>> read_code(ObjectReader& table) {
  std::set<std::string> code;
  const json* value = table.member("accepted_code", false);
  if (!value) return code;
  const std::string pointer = table.pointer("accepted_code");
  const auto is_text = [](const json& one) { return one.is_string(); };
  if (!value->is_array() || value->size() > kCodeMax || !std::ranges::all_of(*value, is_text)) {
    return std::unexpected(invalid_at(pointer, fmt::format("must be an array of at most {} names", kCodeMax)));
  }
  for (const json& one : *value) code.insert(one.get<std::string>());
  return code;
}

base::Result<void> read_tables(ObjectReader& parent, std::vector<TableRef>& out, std::set<TableRef>& inserts_only,
                               AcceptedCode* accepted_code) {
  const json* value = parent.member("tables", true);
  if (!value) return {};
  if (!value->is_array() || value->empty() || value->size() > kTablesMax) {
    return std::unexpected(
        invalid_at(parent.pointer("tables"), fmt::format("must be an array of 1 to {} tables", kTablesMax)));
  }
  std::set<TableRef> seen;
  for (size_t i = 0; i < value->size(); ++i) {
    std::string pointer = fmt::format("{}/{}", parent.pointer("tables"), i);
    ObjectReader reader((*value)[i], pointer);
    TableRef table{reader.string("schema", 1, kIdentifierBytesMax), reader.string("table", 1, kIdentifierBytesMax)};
    if (reader.boolean("inserts_only", false)) inserts_only.insert(table);
    if (accepted_code) {
      THALWEG_ASSIGN(std::set<std::string> code, read_code(reader));
      if (!code.empty()) accepted_code->emplace(table, std::move(code));
    }
    THALWEG_TRY(reader.finish());
    if (!seen.insert(table).second) return std::unexpected(invalid_at(pointer, "names a table twice"));
    out.push_back(std::move(table));
  }
  return {};
}

base::Result<std::vector<std::string>> read_unknown(ObjectReader& parent, std::string_view member,
                                                    std::set<std::string>& ids) {
  const json* value = parent.member(member, false);
  if (!value) return std::vector<std::string>();
  const std::string pointer = parent.pointer(member);
  const auto is_text = [](const json& one) { return one.is_string(); };
  if (!value->is_array() || value->size() > kStreamsMax || !std::ranges::all_of(*value, is_text)) {
    return std::unexpected(invalid_at(pointer, fmt::format("must be an array of at most {} ids", kStreamsMax)));
  }
  auto named = value->get<std::vector<std::string>>();
  for (const std::string& id : named) {
    if (!ids.insert(id).second) return std::unexpected(invalid_at(pointer, "names a stream twice"));
  }
  return named;
}

std::string_view name_of(DesiredStatus status) { return kStatusNames[static_cast<size_t>(status)]; }

StreamDefinition branch_of(const StreamDefinition& stream, const DestinationDefinition& destination) {
  StreamDefinition out = stream;
  out.destinations.clear();
  out.destination = {.name = destination.name, .conninfo = destination.conninfo};
  out.send_to = destination.send_to;
  out.parameters = destination.parameters;
  out.status = stream.status == DesiredStatus::enabled ? destination.status : stream.status;
  out.force = stream.force || destination.force;
  return out;
}

base::Result<DesiredState> parse_desired(std::string_view text) {
  THALWEG_ASSIGN(const json root, parse_strict(text));
  ObjectReader reader(root, "");
  DesiredState desired;
  if (reader.unsigned_integer("format") != 1) reader.refuse("format", "must be 1");
  desired.revision = reader.unsigned_integer("revision");
  THALWEG_ASSIGN(desired.database_networks, read_networks(reader));
  const auto networks = std::make_shared<const base::Networks>(desired.database_networks);
  const json* streams = reader.member("streams", true);
  if (streams && (!streams->is_array() || streams->size() > kStreamsMax)) {
    reader.refuse("streams", fmt::format("must be an array of at most {} streams", kStreamsMax));
  }
  std::set<std::string> ids;
  THALWEG_ASSIGN(desired.kept, read_unknown(reader, "kept", ids));
  THALWEG_ASSIGN(desired.dropped, read_unknown(reader, "dropped", ids));
  THALWEG_TRY(reader.finish());

  for (size_t i = 0; i < streams->size(); ++i) {
    std::string pointer = fmt::format("/streams/{}", i);
    THALWEG_ASSIGN(StreamDefinition stream, read_stream((*streams)[i], pointer));
    if (!ids.insert(stream.id).second) return std::unexpected(invalid_at(pointer + "/id", "names a stream twice"));
    keep_within(stream, networks);
    desired.streams.push_back(std::move(stream));
  }
  return desired;
}

std::string serialise(const DesiredState& desired) {
  json streams = json::array();
  for (const StreamDefinition& stream : desired.streams) streams.push_back(to_json(stream));
  json root = {{"format", 1}, {"revision", desired.revision}, {"streams", std::move(streams)}};
  if (!desired.database_networks.text().empty()) root["database_networks"] = desired.database_networks.text();
  return root.dump(2) + "\n";
}

uint64_t fingerprint(const StreamDefinition& stream) {
  // FNV-1a: it must only be the same after a restart, and a password must not be found from it by looking.
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (unsigned char byte : to_json(stream).dump()) hash = (hash ^ byte) * 0x100000001b3ULL;
  return hash;
}

}  // namespace thalweg::control
