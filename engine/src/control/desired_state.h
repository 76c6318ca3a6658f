#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/networks.h"
#include "control/parameters.h"

// What the engine shall do, as the control plane last said it (engine/contract/desired.example.json).

namespace thalweg::control {

enum class DesiredStatus { enabled, disabled, dropped };
std::string_view name_of(DesiredStatus status);

struct DatabaseRef {
  std::string name;         // for messages
  base::Conninfo conninfo;  // holds a password: never logged, never returned
  // Of a source whose servers are a primary and a standby: decoded and copied at the standby. The role of its conninfo
  // is standby_first, until a start has found the server.
  bool reads_standby = false;
  bool operator==(const DatabaseRef&) const = default;
};

struct TableRef {
  std::string schema;
  std::string table;
  auto operator<=>(const TableRef&) const = default;
};

// Where the other half of a stream over two engines runs.
struct SendTo {
  std::string engine;  // the peer's name
  std::string host;
  int64_t port = 0;
  bool operator==(const SendTo&) const = default;
};
struct ReceiveFrom {
  std::string engine;
  bool shared_capture = false;  // slot and publication belong to the sending engine, which has other destinations too
  bool operator==(const ReceiveFrom&) const = default;
};

// What a table's definitions may call at a destination, as the role that applies: "app.f(integer)".
using AcceptedCode = std::map<TableRef, std::set<std::string>>;

// One of several destinations of a stream.
struct DestinationDefinition {
  std::string id;    // ^[a-z0-9]{1,16}$, unique in the stream
  std::string name;  // for messages
  DesiredStatus status = DesiredStatus::disabled;
  bool force = false;
  base::Conninfo conninfo;  // empty where another engine applies
  std::optional<SendTo> send_to;
  StreamParameters parameters;  // the stream's with this destination's over them
  bool operator==(const DestinationDefinition&) const = default;
};

struct StreamDefinition {
  std::string id;  // ^[a-z0-9]{8,32}$
  std::string name;
  DesiredStatus status = DesiredStatus::disabled;
  bool force = false;  // with dropped: give up on a database that cannot be reached
  DatabaseRef source;
  DatabaseRef destination;        // empty in a half that sends, and where there are `destinations`
  std::optional<SendTo> send_to;  // at most one of the two; neither: combined capture and apply
  std::optional<ReceiveFrom> receive_from;
  std::vector<DestinationDefinition> destinations;  // of a fan-out; else empty
  std::vector<TableRef> tables;                     // at least one, each once
  std::set<TableRef> inserts_only;                  // of these: updates and deletes are given up
  AcceptedCode accepted_code;                       // of these
  StreamParameters parameters;
  bool operator==(const StreamDefinition&) const = default;

  bool fans_out() const { return !destinations.empty(); }
};

// The stream as one of its destinations sees it: as if it had that one only.
StreamDefinition branch_of(const StreamDefinition& stream, const DestinationDefinition& destination);

struct DesiredState {
  uint64_t revision = 0;
  base::Networks database_networks = {};  // where its databases may be; their conninfos know it
  std::vector<StreamDefinition> streams;
  // Ids of streams that the engine has and whoever wrote the document does not know (a control plane whose store came
  // back from an older backup): as they are, or DROPPED. The engine puts its own definitions in their place.
  std::vector<std::string> kept = {};
  std::vector<std::string> dropped = {};
};

inline constexpr size_t kDesiredBytesMax = 16 * 1024 * 1024;

// Fails with invalid_request; the message starts with the JSON pointer of what is wrong.
base::Result<DesiredState> parse_desired(std::string_view json);
std::string serialise(const DesiredState& desired);

// Changes whenever the definition changes; stable over restarts of the engine.
uint64_t fingerprint(const StreamDefinition& stream);

}  // namespace thalweg::control
