#include "control/desired_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <type_traits>

#include "control/desired_parts.h"
#include "control/old_form.h"
#include "control/strict_json.h"

namespace thalweg::control {
namespace {

using nlohmann::json;

constexpr size_t kStreamsMax = 1000;
constexpr size_t kTablesMax = 100'000;
constexpr size_t kAcceptedCodeMax = 1000;  // of a table
constexpr size_t kDigestLength = 64;       // SHA-256
constexpr size_t kDestinationsMax = 64;
constexpr size_t kDestinationIdBytesMax = 16;
constexpr size_t kNameBytesMax = 1000;
constexpr size_t kNetworksMax = 1000;
constexpr size_t kIdentifierBytesMax = 256;  // NAMEDATALEN is 64 unless somebody built a server of their own

constexpr int64_t kStagingLimitMinMb = 64;
constexpr int64_t kCaptureMemoryMinMb = 1;
constexpr int64_t kMegabytesMax = 16'777'216;

constexpr std::array<std::string_view, 2> kCaptureKinds = {"logical", "wal"};
constexpr std::array<std::string_view, 3> kStatusNames = {"ENABLED", "DISABLED", "DROPPED"};

// Origin of a desired-state document.
enum class Origin { control_plane, disk };

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

// Reads the choice among the source's servers.
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

// Sets for each conninfo the networks that it may lead to, and the side that it belongs to.
void know_databases(StreamDefinition& stream, const std::shared_ptr<const base::Networks>& networks) {
  const auto know = [&](base::Conninfo& conninfo, base::ErrorSide side) {
    conninfo.within = networks;
    conninfo.side = side;
  };
  know(stream.source.conninfo, base::ErrorSide::source);
  for (DestinationDefinition& destination : stream.destinations)
    know(destination.conninfo, base::ErrorSide::destination);
}

// Of the form of version 0.1.0, which only a stored document may have: it has been migrated before it is read.
void refuse_old_form(ObjectReader& reader, std::string_view member) {
  if (reader.member(member, false)) {
    reader.refuse(member, "belongs to the documents of an older version: upgrade the control plane");
  }
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

base::Result<void> read_receive_from(ObjectReader& parent, std::optional<ReceiveFrom>& out) {
  const json* value = parent.member("receive_from", false);
  if (!value) return {};
  ObjectReader reader(*value, parent.pointer("receive_from"));
  out.emplace().engine = reader.string("engine", 1, kNameBytesMax);
  refuse_old_form(reader, "shared_capture");
  return reader.finish();
}

// Any other value is none of a few words.
template <typename Value>
void read_choice(ObjectReader& reader, const ParameterSpec& spec, const json& value, Value& out) {
  if constexpr (std::is_enum_v<Value>) {
    const auto found =
        value.is_string() ? std::ranges::find(spec.values, value.get_ref<const std::string&>()) : spec.values.end();
    if (found == spec.values.end()) {
      reader.refuse(spec.name, fmt::format("must be one of {}", fmt::join(spec.values, ", ")));
    } else {
      out = static_cast<Value>(found - spec.values.begin());
    }
  }
}

base::Result<void> read_parameter(ObjectReader& reader, const ParameterSpec& spec, StreamParameters& out) {
  const json* value = reader.member(spec.name, false);
  if (!value) return {};
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
  } else if (auto* policies = std::get_if<ErrorPolicyDefinitions StreamParameters::*>(&spec.field)) {
    THALWEG_ASSIGN(out.**policies, read_error_policies(*value, reader.pointer(spec.name)));
  } else if (auto* handlers = std::get_if<ConflictHandlerDefinitions StreamParameters::*>(&spec.field)) {
    THALWEG_ASSIGN(out.**handlers, read_conflict_handlers(*value, reader.pointer(spec.name)));
  } else if (auto* detection = std::get_if<ConflictDetectionDefinition StreamParameters::*>(&spec.field)) {
    THALWEG_ASSIGN(out.**detection, read_conflict_detection(*value, reader.pointer(spec.name)));
  } else if (auto* statements = std::get_if<StatementHandlerDefinitions StreamParameters::*>(&spec.field)) {
    THALWEG_ASSIGN(out.**statements, read_statement_handlers(*value, reader.pointer(spec.name)));
  } else {
    std::visit([&](auto field) { read_choice(reader, spec, *value, out.*field); }, spec.field);
  }
  return {};
}

base::Result<void> read_parameters(ObjectReader& parent, StreamParameters& out) {
  const json* value = parent.member("parameters", false);
  if (!value) return {};
  ObjectReader reader(*value, parent.pointer("parameters"));
  for (const ParameterSpec& spec : parameter_specs()) THALWEG_TRY(read_parameter(reader, spec, out));
  return reader.finish();
}

// The member "rules" of a destination: tables of its stream, each once, with their sets.
base::Result<void> read_destination_rules(ObjectReader& parent, TableRules& out) {
  const json* value = parent.member("rules", false);
  if (!value) return {};
  const std::string pointer = parent.pointer("rules");
  if (!value->is_array() || value->size() > kTablesMax) {
    return std::unexpected(invalid_at(pointer, fmt::format("must be an array of at most {} tables", kTablesMax)));
  }
  for (size_t i = 0; i < value->size(); ++i) {
    const std::string at = fmt::format("{}/{}", pointer, i);
    ObjectReader reader((*value)[i], at);
    TableRef table{reader.string("schema", 1, kIdentifierBytesMax), reader.string("table", 1, kIdentifierBytesMax)};
    THALWEG_ASSIGN(RulesDefinition rules, read_rule_sets(reader));
    THALWEG_TRY(reader.finish());
    if (!rules.positive && !rules.negative) return std::unexpected(invalid_at(at, "has neither set of rules"));
    if (!out.emplace(std::move(table), std::move(rules)).second) {
      return std::unexpected(invalid_at(at, "names a table twice"));
    }
  }
  return {};
}

base::Result<DestinationDefinition> read_destination(const json& value, const std::string& pointer,
                                                     const StreamParameters& stream_parameters, Origin origin) {
  ObjectReader reader(value, pointer);
  DestinationDefinition out;
  out.parameters = stream_parameters;
  out.id = reader.string("id", 1, kDestinationIdBytesMax);
  if (!reader.failed() && !is_lower_alphanumeric(out.id)) reader.refuse("id", "must match ^[a-z0-9]{1,16}$");
  if (!reader.failed() && origin == Origin::control_plane && out.id == kOldFormId) {
    reader.refuse("id", "is reserved for destinations of an older version's documents");
  }
  out.name = reader.string("name", 1, kNameBytesMax);
  out.status = read_status(reader);
  out.force = reader.boolean("force", false);
  if (reader.member("backlog", true)) out.backlog = reader.boolean("backlog", false);
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
  THALWEG_TRY(read_destination_rules(reader, out.rules));
  THALWEG_TRY(reader.finish());
  return out;
}

// Checks of a stream's destinations together, which the checks of each entry cannot make.
base::Result<void> check_destinations(const StreamDefinition& stream, const std::string& pointer) {
  const auto dropped = [](const DestinationDefinition& destination) {
    return destination.status == DesiredStatus::dropped;
  };
  const auto kept = stream.destinations.size() - std::ranges::count_if(stream.destinations, dropped);
  if (stream.status != DesiredStatus::dropped && kept == 0) {
    return std::unexpected(invalid_at(pointer, "are all DROPPED: to end the stream, set its own status to DROPPED"));
  }
  for (size_t i = 0; i < stream.destinations.size(); ++i) {
    const DestinationDefinition& destination = stream.destinations[i];
    if (destination.backlog || dropped(destination) || kept == 1) continue;
    return std::unexpected(invalid_at(fmt::format("{}/{}/backlog", pointer, i),
                                      "must be true: only the one destination of a stream can do without"));
  }
  if (!stream.receive_from) return {};
  if (stream.destinations.size() > 1) {
    return std::unexpected(invalid_at(pointer, "must be one where the stream has receive_from"));
  }
  if (stream.destinations.front().send_to) {
    return std::unexpected(invalid_at(pointer + "/0/send_to", "cannot stand where the stream has receive_from"));
  }
  if (stream.destinations.front().backlog) {
    return std::unexpected(invalid_at(pointer + "/0/backlog", "must be false: the capturing engine has the backlog"));
  }
  return {};
}

base::Result<void> check_ruled_tables(const StreamDefinition& stream, const DestinationDefinition& destination,
                                      const std::string& pointer) {
  // The tables of a destination that goes may have left the stream.
  if (destination.rules.empty() || destination.status == DesiredStatus::dropped) return {};
  const std::set<TableRef> known(stream.tables.begin(), stream.tables.end());
  for (const auto& [table, rules] : destination.rules) {
    if (stream.transformations.contains(table)) {
      return std::unexpected(invalid_at(
          pointer + "/rules", fmt::format("has rules for {}.{}, which has transformations: only the stream can have "
                                          "rules for it",
                                          table.schema, table.table)));
    }
    if (known.contains(table)) continue;
    return std::unexpected(invalid_at(
        pointer + "/rules",
        fmt::format("has rules for {}.{}, which is none of the stream's tables", table.schema, table.table)));
  }
  return {};
}

base::Result<void> read_destinations(ObjectReader& parent, StreamDefinition& out, Origin origin) {
  const json* value = parent.member("destinations", true);
  if (!value) return {};
  const std::string pointer = parent.pointer("destinations");
  if (!value->is_array() || value->empty() || value->size() > kDestinationsMax) {
    return std::unexpected(
        invalid_at(pointer, fmt::format("must be an array of 1 to {} destinations", kDestinationsMax)));
  }
  std::set<std::string> ids;
  for (size_t i = 0; i < value->size(); ++i) {
    const std::string at = fmt::format("{}/{}", pointer, i);
    THALWEG_ASSIGN(DestinationDefinition destination, read_destination((*value)[i], at, out.parameters, origin));
    if (!ids.insert(destination.id).second) return std::unexpected(invalid_at(at + "/id", "names a destination twice"));
    THALWEG_TRY(check_ruled_tables(out, destination, at));
    out.destinations.push_back(std::move(destination));
  }
  return check_destinations(out, pointer);
}

void read_megabytes(ObjectReader& reader, std::string_view member, int64_t minimum, int64_t& out) {
  if (!reader.member(member, false)) return;
  const uint64_t number = reader.unsigned_integer(member);
  if (reader.failed()) return;
  if (number < static_cast<uint64_t>(minimum) || number > static_cast<uint64_t>(kMegabytesMax)) {
    reader.refuse(member, fmt::format("must be a whole number from {} to {}", minimum, kMegabytesMax));
  } else {
    out = static_cast<int64_t>(number);
  }
}

void read_capture(ObjectReader& reader, StreamDefinition& out) {
  if (reader.member("capture_kind", false)) {
    const std::string kind = reader.string("capture_kind", 1, kNameBytesMax);
    const auto found = std::ranges::find(kCaptureKinds, kind);
    if (found != kCaptureKinds.end()) {
      out.capture_kind = static_cast<CaptureKind>(found - kCaptureKinds.begin());
    } else if (!reader.failed()) {
      reader.refuse("capture_kind", fmt::format("must be one of {}", fmt::join(kCaptureKinds, ", ")));
    }
  }
  read_megabytes(reader, "staging_limit_mb", kStagingLimitMinMb, out.staging_limit_mb);
  read_megabytes(reader, "wal_keep_mb", 0, out.wal_keep_mb);
  read_megabytes(reader, "capture_memory_mb", kCaptureMemoryMinMb, out.capture_memory_mb);
  if (reader.member("wal_archive", false)) out.wal_archive = reader.string("wal_archive", 0, kNameBytesMax);
  if (out.capture_kind == CaptureKind::wal && out.source.reads_standby) {
    reader.refuse("capture_kind", "cannot be wal where the source is read at a standby");
  }
}

base::Result<StreamDefinition> read_stream(const json& value, const std::string& pointer, Origin origin) {
  ObjectReader reader(value, pointer);
  StreamDefinition stream;
  stream.id = reader.string("id", 1, kNameBytesMax);
  if (!reader.failed() && !is_stream_id(stream.id)) reader.refuse("id", "must match ^[a-z0-9]{8,32}$");
  stream.name = reader.string("name", 1, kNameBytesMax);
  stream.status = read_status(reader);
  stream.force = reader.boolean("force", false);
  THALWEG_TRY(read_database(reader, "source", stream.source));
  read_capture(reader, stream);
  refuse_old_form(reader, "destination");
  refuse_old_form(reader, "send_to");
  THALWEG_TRY(read_receive_from(reader, stream.receive_from));
  THALWEG_TRY(read_tables(reader, stream.tables, stream.inserts_only,
                          {.accepted_code = &stream.accepted_code,
                           .rules = &stream.rules,
                           .transformations = &stream.transformations,
                           .names = &stream.names}));
  const auto is_keyed = [](const auto& of_table) { return needs_key(of_table.second); };
  stream.mask_key = read_mask_key(reader, std::ranges::any_of(stream.transformations, is_keyed));
  THALWEG_TRY(read_parameters(reader, stream.parameters));
  THALWEG_TRY(read_destinations(reader, stream, origin));
  THALWEG_TRY(reader.finish());
  return stream;
}

json to_json(const DatabaseRef& database) {
  json out = {{"name", database.name}, {"conninfo", database.conninfo.text}};
  if (database.reads_standby) out["read_from"] = "standby";
  return out;
}

json to_json(const SendTo& to) { return {{"engine", to.engine}, {"host", to.host}, {"port", to.port}}; }

// Parameters that differ from `from` only: a later version's better default reaches old streams.
json parameters_beyond(const StreamParameters& from, const StreamParameters& parameters) {
  json out = json::object();
  for (const ParameterSpec& spec : parameter_specs()) {
    const bool differs = std::visit([&](auto field) { return parameters.*field != from.*field; }, spec.field);
    if (differs) out[std::string(spec.name)] = value_of(spec, parameters);
  }
  return out;
}

json to_json(const DestinationDefinition& destination, const StreamParameters& stream_parameters) {
  json out = {{"id", destination.id},
              {"name", destination.name},
              {"status", name_of(destination.status)},
              {"force", destination.force},
              {"backlog", destination.backlog},
              {"parameters", parameters_beyond(stream_parameters, destination.parameters)}};
  if (destination.send_to) {
    out["send_to"] = to_json(*destination.send_to);
  } else {
    out["conninfo"] = destination.conninfo.text;
  }
  for (const auto& [table, rules] : destination.rules) {
    json document = to_json(rules);
    document["schema"] = table.schema;
    document["table"] = table.table;
    out["rules"].push_back(std::move(document));
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
    if (const auto rules = stream.rules.find(table); rules != stream.rules.end()) {
      tables.back()["rules"] = to_json(rules->second);
    }
    if (const auto there = stream.names.find(table); there != stream.names.end()) {
      tables.back()["destination"] = {{"schema", there->second.schema}, {"table", there->second.table}};
    }
    if (const auto steps = stream.transformations.find(table); steps != stream.transformations.end()) {
      tables.back()["transformations"] = to_json(steps->second);
    }
  }
  json out = {{"id", stream.id},
              {"name", stream.name},
              {"status", name_of(stream.status)},
              {"force", stream.force},
              {"source", to_json(stream.source)},
              {"tables", std::move(tables)},
              {"parameters", parameters_beyond({}, stream.parameters)}};
  for (const DestinationDefinition& destination : stream.destinations) {
    out["destinations"].push_back(to_json(destination, stream.parameters));
  }
  const StreamDefinition defaults;
  if (stream.capture_kind != defaults.capture_kind) out["capture_kind"] = name_of(stream.capture_kind);
  if (stream.staging_limit_mb != defaults.staging_limit_mb) out["staging_limit_mb"] = stream.staging_limit_mb;
  if (stream.wal_keep_mb != defaults.wal_keep_mb) out["wal_keep_mb"] = stream.wal_keep_mb;
  if (stream.capture_memory_mb != defaults.capture_memory_mb) out["capture_memory_mb"] = stream.capture_memory_mb;
  if (!stream.wal_archive.empty()) out["wal_archive"] = stream.wal_archive;
  if (!stream.mask_key.empty()) out["mask_key"] = stream.mask_key;
  if (stream.receive_from) out["receive_from"] = {{"engine", stream.receive_from->engine}};
  return out;
}

}  // namespace

base::Result<std::string> read_conninfo(ObjectReader& parent, std::string_view database) {
  const json* value = parent.member(database, true);
  if (!value) return std::string{};
  ObjectReader reader(*value, parent.pointer(database));
  std::string conninfo = reader.string("conninfo", 1, kConninfoBytesMax);
  THALWEG_TRY(reader.finish());
  return conninfo;
}

base::Result<base::Networks> read_networks(ObjectReader& parent) {
  const json* value = parent.member("database_networks", false);
  if (!value) return base::Networks();
  const std::string pointer = parent.pointer("database_networks");
  const auto is_text = [](const json& network) { return network.is_string(); };
  if (!value->is_array() || value->size() > kNetworksMax || !std::ranges::all_of(*value, is_text)) {
    return std::unexpected(invalid_at(pointer, fmt::format("must be an array of at most {} ranges", kNetworksMax)));
  }
  auto networks = base::Networks::parse(value->get<std::vector<std::string>>());
  if (!networks) return std::unexpected(invalid_at(pointer, networks.error().message));
  return networks;
}

namespace {

bool is_digest(const json& value) {
  if (!value.is_string()) return false;
  const auto& text = value.get_ref<const std::string&>();
  return text.size() == kDigestLength && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

base::Result<void> read_accepted_code(ObjectReader& parent, const TableRef& table, AcceptedCode& out) {
  const json* value = parent.member("accepted_code", false);
  if (!value) return {};
  if (!value->is_array() || value->size() > kAcceptedCodeMax || !std::ranges::all_of(*value, is_digest)) {
    return std::unexpected(invalid_at(parent.pointer("accepted_code"),
                                      fmt::format("must be an array of at most {} SHA-256 digests", kAcceptedCodeMax)));
  }
  if (!value->empty()) out.emplace(table, value->get<std::set<std::string>>());
  return {};
}

}  // namespace

base::Result<void> read_tables(ObjectReader& parent, std::vector<TableRef>& out, std::set<TableRef>& inserts_only,
                               const TableParts& parts) {
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
    if (parts.accepted_code) THALWEG_TRY(read_accepted_code(reader, table, *parts.accepted_code));
    if (parts.rules) {
      THALWEG_ASSIGN(auto of_table, read_rules(reader));
      if (of_table) parts.rules->emplace(table, std::move(*of_table));
    }
    if (parts.transformations) {
      THALWEG_ASSIGN(auto of_table, read_transformations(reader));
      if (!of_table.empty()) parts.transformations->emplace(table, std::move(of_table));
    }
    if (parts.names) {
      THALWEG_ASSIGN(TableRef there, read_destination_name(reader, table));
      if (there != table) parts.names->emplace(table, std::move(there));
    }
    THALWEG_TRY(reader.finish());
    if (!seen.insert(table).second) return std::unexpected(invalid_at(pointer, "names a table twice"));
    out.push_back(std::move(table));
  }
  return parts.names ? check_destination_names(out, *parts.names, parent.pointer("tables")) : base::Result<void>{};
}

base::Result<std::vector<std::string>> read_unknown(ObjectReader& parent, std::string_view member,
                                                    std::set<std::string>& ids) {
  const json* value = parent.member(member, false);
  if (!value) return std::vector<std::string>();
  const std::string pointer = parent.pointer(member);
  const auto is_text = [](const json& id) { return id.is_string(); };
  if (!value->is_array() || value->size() > kStreamsMax || !std::ranges::all_of(*value, is_text)) {
    return std::unexpected(invalid_at(pointer, fmt::format("must be an array of at most {} ids", kStreamsMax)));
  }
  auto named = value->get<std::vector<std::string>>();
  for (const std::string& id : named) {
    if (!ids.insert(id).second) return std::unexpected(invalid_at(pointer, "names a stream twice"));
  }
  return named;
}

std::string_view name_of(CaptureKind kind) { return kCaptureKinds[static_cast<size_t>(kind)]; }

std::string_view name_of(DesiredStatus status) { return kStatusNames[static_cast<size_t>(status)]; }

const DestinationDefinition* StreamDefinition::find(std::string_view destination) const {
  const auto found = std::ranges::find(destinations, destination, &DestinationDefinition::id);
  return found == destinations.end() ? nullptr : &*found;
}

Delivery delivery_to(const StreamDefinition& stream, const DestinationDefinition& destination) {
  Delivery out{.stream = stream, .destination = destination};
  out.stream.destinations.clear();
  if (stream.status != DesiredStatus::enabled) out.destination.status = stream.status;
  out.destination.force = stream.force || destination.force;
  return out;
}

namespace {

base::Result<DesiredState> read_desired(const json& root, Origin origin) {
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
    THALWEG_ASSIGN(StreamDefinition stream, read_stream((*streams)[i], pointer, origin));
    if (!ids.insert(stream.id).second) return std::unexpected(invalid_at(pointer + "/id", "names a stream twice"));
    know_databases(stream, networks);
    desired.streams.push_back(std::move(stream));
  }
  return desired;
}

}  // namespace

base::Result<DesiredState> parse_desired(std::string_view text) {
  THALWEG_ASSIGN(const json root, parse_strict(text));
  return read_desired(root, Origin::control_plane);
}

base::Result<DesiredState> parse_stored_desired(std::string_view text) {
  THALWEG_ASSIGN(json root, parse_strict(text));
  try {
    for (json& stream : root.at("streams")) migrate_old_form(stream);
  } catch (const json::exception& exception) {
    return std::unexpected(invalid_at("/streams", exception.what()));  // not what an engine has stored
  }
  return read_desired(root, Origin::disk);
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
