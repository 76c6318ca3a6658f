#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/networks.h"
#include "control/destination_names.h"
#include "control/parameters.h"
#include "control/rule_definitions.h"
#include "control/table_ref.h"
#include "control/transformation_definitions.h"

// The desired state of the engine, as the control plane last sent it (engine/contract/desired.example.json).

namespace thalweg::control {

enum class DesiredStatus { enabled, disabled, dropped };
std::string_view name_of(DesiredStatus status);

// How a source's changes are captured: decoded there, or mined from its WAL here.
enum class CaptureKind : uint8_t { logical, wal };
std::string_view name_of(CaptureKind kind);

struct DatabaseRef {
  std::string name;         // for messages
  base::Conninfo conninfo;  // holds a password: never logged, never returned
  // The source's servers are a primary and a standby: decode and copy at the standby. The role of its conninfo is
  // standby_first, until a start has found the server.
  bool reads_standby = false;
  bool operator==(const DatabaseRef&) const = default;
};

// The receiving address of another engine, which applies.
struct SendTo {
  std::string engine;  // its name
  std::string host;
  int64_t port = 0;
  bool operator==(const SendTo&) const = default;
};
struct ReceiveFrom {
  std::string engine;  // which captures
  bool operator==(const ReceiveFrom&) const = default;
};

// Digests of those definitions of a table that somebody has accepted, though they call more than harmless functions at
// the destinations (engine/src/instantiation/called_code.h).
using AcceptedCode = std::map<TableRef, std::set<std::string>>;

// Rules by table, of those that have any.
using TableRules = std::map<TableRef, RulesDefinition>;

// Transformations by table, of those that have any.
using TableTransformations = std::map<TableRef, Transformations>;

struct DestinationDefinition {
  std::string id;    // ^[a-z0-9]{1,16}$, unique in the stream
  std::string name;  // for messages
  DesiredStatus status = DesiredStatus::disabled;
  bool force = false;
  bool backlog = false;     // what it has not taken lies on disk durably; else it reads the queue directly
  base::Conninfo conninfo;  // empty where another engine applies
  std::optional<SendTo> send_to;
  StreamParameters parameters;  // the stream's with this destination's over them
  TableRules rules;             // of tables of the stream; they judge what the stream's rules let pass
  bool operator==(const DestinationDefinition&) const = default;
};

struct StreamDefinition {
  std::string id;  // ^[a-z0-9]{8,32}$
  std::string name;
  DesiredStatus status = DesiredStatus::disabled;
  bool force = false;  // with dropped: give up on a database that cannot be reached
  DatabaseRef source;
  CaptureKind capture_kind = CaptureKind::logical;
  int64_t staging_limit_mb = 10'240;                // of a stream that mines: staged WAL on the engine's disk
  int64_t wal_keep_mb = 1024;                       // of that, what is kept for searches alone
  int64_t capture_memory_mb = 256;                  // rows of open transactions in its memory
  std::string wal_archive;                          // by the name that the engine's host has for it; empty: none
  std::optional<ReceiveFrom> receive_from;          // another engine captures; there is one destination then
  std::vector<DestinationDefinition> destinations;  // one at least
  std::vector<TableRef> tables;                     // at least one, each once
  std::set<TableRef> inserts_only;                  // of these: updates and deletes are given up
  AcceptedCode accepted_code;                       // of these; a table that is not in it: nothing is accepted
  TableRules rules;                                 // of these
  TableTransformations transformations;             // of these; the capture and the copies carry them out
  DestinationNames names = {};                      // of these; everything else names tables as the source does
  std::string mask_key = {};                        // of their masks, a secret as passwords are; empty: none needs it
  StreamParameters parameters;
  bool operator==(const StreamDefinition&) const = default;

  const DestinationDefinition* find(std::string_view destination) const;  // null: there is none
};

// A stream and the one of its destinations that is served. The destination's status and force say what is desired of it
// together with those of its stream.
struct Delivery {
  StreamDefinition stream;  // without the list of its destinations
  DestinationDefinition destination;
};
Delivery delivery_to(const StreamDefinition& stream, const DestinationDefinition& destination);

struct DesiredState {
  uint64_t revision = 0;
  base::Networks database_networks = {};  // where its databases may be; their conninfos know it
  std::vector<StreamDefinition> streams;
  // Ids of streams that the engine has and the document's writer does not know (a control plane whose store came from
  // an older backup): as they are, or DROPPED. The engine puts its own definitions in their place.
  std::vector<std::string> kept = {};
  std::vector<std::string> dropped = {};
};

inline constexpr size_t kDesiredBytesMax = 16 * 1024 * 1024;

// Fails with invalid_request; the message starts with the JSON pointer of the invalid part.
base::Result<DesiredState> parse_desired(std::string_view json);
// Parses a document that an engine has stored, including the form of version 0.1.0: such a stream had one
// `destination`, or `send_to`, beside the list.
base::Result<DesiredState> parse_stored_desired(std::string_view json);
std::string serialise(const DesiredState& desired);

// Changes whenever the definition changes; stable over restarts of the engine.
uint64_t fingerprint(const StreamDefinition& stream);

}  // namespace thalweg::control
