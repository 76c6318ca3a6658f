#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "capture/wal/masked_columns.h"
#include "mining/change_sink.h"
#include "pg/connection.h"
#include "search/value_texts.h"
#include "telemetry/log_search.h"

namespace thalweg::search {

struct FinderOptions {
  telemetry::SearchRequest request;
  base::Lsn from;  // what commits before it is left out
  const capture::MaskedColumns* masked = nullptr;
  const capture::MaskedColumns::Transformations* transformations = nullptr;
  const std::atomic<bool>* stop = nullptr;
  // Takes what was found. False: there is no room for all of it.
  std::function<bool(std::vector<std::shared_ptr<telemetry::FoundChange>>)> publish;
};

// Finds the changes that a request asks for among those that are built. Of transactions that come in pieces it holds
// what fits the request until they end. Owner: a search's thread.
class ChangeFinder final : public mining::ChangeSink {
 public:
  // Of changes of all transactions that are open and come in pieces. Of one that does not fit, only the first changes
  // are found, and the search ends with it.
  static constexpr size_t kHeldBytesMax = size_t{32} << 20;

  ChangeFinder(pg::Connection& source, FinderOptions options)
      : source_(source), options_(std::move(options)), texts_(source) {}

  // Of the record that is built next; 0: none.
  void set_origin(uint16_t origin) { origin_ = origin; }
  // Changes of tables are left out, or were, that nobody has seen: what rows were is not known any more.
  void forget_rows() { followed_.clear(); }
  // Nothing more is wanted: the limit is reached, or the time of the last commits.
  bool is_done() const { return is_done_; }
  bool is_truncated() const { return is_truncated_; }
  // Gives what was found since the last time, with its texts. Fails as the source does.
  base::Result<void> flush();

  base::Result<void> begin(base::Xid xid, const lcr::TransactionMark& mark) override;
  base::Result<void> describe(const mining::MinedTable& table) override;
  base::Result<void> change(const lcr::RowFrame& row) override;
  base::Result<void> truncate(const mining::TruncateChange& truncate) override;
  base::Result<void> message(base::Xid xid, std::string_view content) override;
  base::Result<void> rolled_back(base::Xid xid, base::Xid subxid, base::Lsn lsn) override;
  base::Result<void> commit(base::Xid xid, const lcr::TransactionMark& mark) override;
  base::Result<void> commit_streamed(base::Xid xid, const lcr::TransactionMark& mark,
                                     std::span<const base::Xid> subtransactions) override;

 private:
  // Of what is not published.
  static constexpr size_t kWaitingBytesMax = size_t{4} << 20;
  static constexpr size_t kWaitingMax = 256;

  struct KeyColumn {
    size_t column;                           // its place in the description
    std::optional<std::string> binary = {};  // none: NULL
  };
  // A table as it was described.
  struct Form {
    lcr::TableDescription description;
    std::vector<int16_t> numbers = {};               // attnum, by column
    std::vector<bool> is_hidden = {};                // by the steps of today
    std::vector<std::string> types = {};             // as SQL; empty until they are asked for
    std::optional<std::vector<KeyColumn>> key = {};  // none: no row of this form can have the key
    bool follows = false;                            // the key is the replica identity
  };
  // Values of a row, by attnum.
  struct Known {
    base::TypeId type;
    int32_t type_modifier = -1;
    lcr::ValueMark mark = lcr::ValueMark::null;
    std::string bytes;
  };
  using KnownRow = std::map<int16_t, Known>;
  struct Held {
    base::Xid subxid;
    std::shared_ptr<Form> form;
    lcr::FrameKind kind = lcr::FrameKind::insert;
    uint16_t flags = 0;
    base::Lsn lsn;
    std::string old_tuple = {};
    std::string new_tuple = {};
    size_t bytes() const { return sizeof(Held) + old_tuple.size() + new_tuple.size(); }
  };
  struct Open {
    std::vector<Held> changes = {};
    bool is_cut = false;  // some did not fit
  };
  struct Row {
    const lcr::RowFrame& frame;
    std::vector<lcr::Value> old_values = {};  // empty: did not come
    std::vector<lcr::Value> new_values = {};
  };

  base::Result<std::optional<std::vector<KeyColumn>>> key_of(const Form& form);
  bool is_masked(const Form& form, size_t column, base::Lsn lsn) const;
  bool has_key(const Form& form, const std::vector<lcr::Value>& values, base::Lsn lsn) const;
  bool had_key(const Form& form, const Row& row) const;
  bool fits(const Form& form, const Row& row) const;
  bool is_in_time() const;
  base::Result<void> accept(const std::shared_ptr<Form>& form, Row& row);
  void follow(Form& form, const Row& row, const std::optional<KnownRow>& before);
  base::Result<void> add_columns(Form& form, const Row& row, const KnownRow& followed, telemetry::FoundChange& out);
  base::Result<void> read_types(Form& form);
  base::Result<void> add_truncate(Form& form, base::Lsn lsn);
  base::Result<std::shared_ptr<telemetry::FoundChange>> begin_change(const Form& form, base::Lsn lsn);
  base::Result<std::optional<std::string>> origin_name();
  void hold(base::Xid xid, Held held);
  base::Result<void> add(std::shared_ptr<telemetry::FoundChange> change);
  base::Result<void> check_stop() const;
  void note_end(const lcr::TransactionMark& mark);

  pg::Connection& source_;
  const FinderOptions options_;
  ValueTexts texts_;
  std::unordered_map<base::RelationId, std::shared_ptr<Form>> forms_;  // that are searched
  std::unordered_map<base::Xid, Open> open_;
  size_t held_bytes_ = 0;
  std::map<base::RelationId, KnownRow> followed_;  // the row with the key, as the last change left it
  std::map<uint16_t, std::string> origins_;
  uint16_t origin_ = 0;
  base::Xid xid_;
  lcr::TransactionMark mark_ = {};
  std::vector<std::shared_ptr<telemetry::FoundChange>> found_;
  uint64_t count_ = 0;
  bool is_done_ = false;
  bool is_truncated_ = false;
};

}  // namespace thalweg::search
