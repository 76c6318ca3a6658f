#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/ids.h"

// Searches in the WAL that is kept of a stream's source: who changed a row, when, from what to what.

namespace thalweg::telemetry {

// Of values, by column; none: SQL's NULL.
using SearchedKey = std::map<std::string, std::optional<std::string>>;

struct SearchRequest {
  // Transactions that commit at `from` or later, and before `to`; none: all that is kept.
  std::optional<base::Lsn> from = {};
  std::optional<base::Lsn> to = {};
  std::optional<base::UnixMicros> from_time = {};
  std::optional<base::UnixMicros> to_time = {};
  // Schema and name, as of the change; none: all tables of the stream.
  std::optional<std::pair<std::string, std::string>> table = {};
  SearchedKey key = {};  // only with `table`
  std::optional<base::Xid> xid = {};
  uint64_t limit = 1000;
};

enum class SearchState : uint8_t { running, done, failed };
constexpr std::string_view name_of(SearchState state) {
  constexpr std::array<std::string_view, 3> kNames = {"RUNNING", "DONE", "FAILED"};
  return kNames[static_cast<size_t>(state)];
}

struct SearchStatus {
  std::string id;
  SearchState state = SearchState::running;
  bool is_truncated = false;  // more may follow: the limit, or that of the memory, was reached
  base::UnixMicros begun_at;
  std::optional<base::UnixMicros> ended_at = {};
  uint64_t mined_bytes = 0;
  uint64_t total_bytes = 0;
  base::Lsn from;  // what commits there or later, and before `to`, is searched
  base::Lsn to;
  uint64_t found = 0;
  std::optional<base::Error> error = {};
};

struct FoundValue {
  std::optional<std::string> text = {};  // as the server writes it, kFoundTextBytesMax at most; none: SQL's NULL
  bool is_cut = false;
  bool is_masked = false;  // then there is no text
};
inline constexpr size_t kFoundTextBytesMax = size_t{64} << 10;

struct FoundColumn {
  std::string name;
  std::string type;  // as SQL
  bool is_key = false;
  // None: not known, or not there.
  std::optional<FoundValue> before = {};
  std::optional<FoundValue> after = {};
};

enum class FoundOperation : uint8_t { insert, update, remove, truncate };
constexpr std::string_view name_of(FoundOperation operation) {
  constexpr std::array<std::string_view, 4> kNames = {"INSERT", "UPDATE", "DELETE", "TRUNCATE"};
  return kNames[static_cast<size_t>(operation)];
}

// Where the row before the change is from.
enum class BeforeIs : uint8_t { whole, identity, followed, unknown };
constexpr std::string_view name_of(BeforeIs before) {
  constexpr std::array<std::string_view, 4> kNames = {"whole", "identity", "followed", "unknown"};
  return kNames[static_cast<size_t>(before)];
}

struct FoundChange {
  uint64_t number = 0;  // from 1 on, in the order of commits
  base::Xid xid;
  base::Lsn commit_lsn;
  base::UnixMicros commit_time;
  base::Lsn lsn;
  std::optional<std::string> origin = {};
  std::string schema;
  std::string table;
  FoundOperation operation = FoundOperation::insert;
  BeforeIs before_is = BeforeIs::unknown;
  std::vector<FoundColumn> columns = {};
};

struct SearchPart {
  uint64_t after = 0;  // changes with a higher number
  uint64_t limit = 100;
};
inline constexpr uint64_t kFoundShownMax = 1000;

struct FoundPart {
  SearchStatus status;
  std::vector<std::shared_ptr<const FoundChange>> changes = {};
  std::optional<uint64_t> next_after = {};  // none: there is no more now
};

// The kept WAL of a source, and the searches in it.
struct SearchList {
  base::Lsn kept_from;                                  // a search can begin there
  std::optional<base::UnixMicros> kept_from_time = {};  // of a commit there or earlier
  base::Lsn kept_until;
  uint64_t kept_bytes = 0;
  std::vector<SearchStatus> searches = {};
};

}  // namespace thalweg::telemetry
