#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lcr/frame.h"
#include "rules/program.h"

namespace thalweg::rules {

enum class Outcome : uint8_t {
  is_true,
  is_false,
  is_null,
  undecidable,  // a TOAST value that did not come, an old value that the source does not send, an open transaction's
                // tag
  failed,       // as PostgreSQL would have: division by zero, a number out of range, an invalid cast
};

struct Verdict {
  Outcome outcome = Outcome::is_null;
  Failure failure = Failure::none;  // of `failed`
};

// Facts about a change besides its frame.
struct ChangeContext {
  std::string_view source;
  std::optional<std::string_view> tag = {};          // none: NULL
  std::optional<base::UnixMicros> commit_time = {};  // none: NULL
  // Of its transaction. False: neither of the two is known yet, and a rule that reads it is undecidable.
  bool is_committed = true;
  bool is_tag_known = true;
};

// The word of a rule's `operation` for a frame of a change.
std::string_view operation_of(lcr::FrameKind kind);

// A condition compiled for one version of one table. Owner: one thread.
class Condition {
 public:
  // Refuses with the place in `text`. Global conditions are compiled for each table anew.
  static Ruled<Condition> compile(std::string_view text, const RuleTable& table);

  // The frame is an insert, update, remove or truncate of that version. Values of a truncate are NULL, and so are the
  // old values of an insert and the new ones of a delete. `plain` is the row that a column without `old` or `new` is
  // of: the newest, or, of an update, the one before it. Allocates nothing.
  Verdict evaluate(const lcr::FrameView& frame, const ChangeContext& context, Scratch& scratch,
                   Row plain = Row::newest);

  // Whether it reads values of old rows that only REPLICA IDENTITY FULL sends. `plain_too`: plain columns are of an old
  // row as well, as in a delete.
  bool needs_old_row(bool plain_too) const { return needs_old_values_ || (plain_too && needs_plain_values_); }
  // Whether it reads values after a change that only REPLICA IDENTITY FULL is sure to send with every update.
  bool reads_long_values() const { return reads_long_values_; }

 private:
  Condition(Program program, std::unique_ptr<Strings> strings, const RuleTable& table);
  // A column's value in a tuple; its bytes lie in the frame.
  struct Raw {
    lcr::ValueMark mark = lcr::ValueMark::null;
    std::string_view bytes;
  };
  static Raw take(const std::byte*& at);
  static Failure set(const Load& load, const Raw* raw, Scratch& scratch, Datum& out);
  Failure load_new_row(const lcr::TupleView& tuple, Scratch& scratch);
  void walk(const lcr::TupleView& tuple, std::vector<Raw>& raw) const;
  // The value that the row has for the load; none: it did not come.
  const Raw* find(const Load& load, size_t index, const lcr::FrameHeader& header, Row plain) const;
  Failure load_row(const lcr::FrameView& frame, Scratch& scratch, Row plain);
  void load_attributes(const lcr::FrameView& frame, const ChangeContext& context);

  Program program_;
  std::unique_ptr<Strings> strings_;
  std::vector<uint16_t> columns_;  // that the program reads, in the order of the tuple
  std::vector<Raw> old_values_;    // as columns_
  std::vector<Raw> new_values_;
  std::vector<size_t> indexes_;  // of each load in columns_
  bool has_attributes_ = false;
  bool reads_before_ = false;  // old.col
  std::string schema_;
  std::string table_;
  bool key_is_sent_ = false;  // an update without an old tuple did not change the key
  bool old_rows_are_whole_ = true;
  bool needs_old_values_ = false;    // of columns outside the key, by `old`
  bool needs_plain_values_ = false;  // of the same, without `old` or `new`
  bool reads_long_values_ = false;   // of the same, not by `old`, that may be long
};

}  // namespace thalweg::rules
