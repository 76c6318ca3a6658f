#include "base/bind_names.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace thalweg::base {

namespace {

constexpr size_t kNowhere = std::string_view::npos;
constexpr std::array<std::string_view, 12> kKinds = {"new",      "old",         "operation",  "schema",
                                                     "table",    "commit_time", "commit_lsn", "xid",
                                                     "sqlstate", "error",       "constraint", "kind"};
// Those that take parameters, and end no transaction.
constexpr std::array<std::string_view, 6> kStatements = {"insert", "update", "delete", "merge", "select", "with"};

bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name(char c) { return is_name_start(c) || is_digit(c) || c == '$'; }
bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f' || c == '\v'; }

// Only ASCII: what the server does with others depends on its encoding, so they have to be quoted.
std::string lower(std::string_view text) {
  std::string folded(text);
  for (char& c : folded) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return folded;
}

// Source: the lexical structure in PostgreSQL's documentation, 4.1, and its scanner (scan.l).
class Binder {
 public:
  explicit Binder(std::string_view text) : text_(text) {}

  std::expected<BoundStatement, std::string> run() {
    while (at_ < text_.size() && fault_.empty()) step();
    if (!fault_.empty()) return std::unexpected(fault_);
    if (!has_begun_) return std::unexpected(std::string("the text has no statement"));
    return std::move(out_);
  }

 private:
  char at(size_t place) const { return place < text_.size() ? text_[place] : '\0'; }

  void refuse(std::string why) {
    if (fault_.empty()) fault_ = std::move(why);
  }

  // "at character 7": of UTF-8, from 1.
  std::string place_of(size_t byte) const {
    const auto characters = std::ranges::count_if(
        text_.substr(0, byte), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
    return fmt::format("at character {}", characters + 1);
  }

  void copy_to(size_t end) {
    if (end == kNowhere) return refuse(fmt::format("the quote or comment {} is not closed", place_of(at_)));
    out_.sql += text_.substr(at_, end - at_);
    at_ = end;
  }

  void step() {
    const char c = text_[at_];
    const char next = at(at_ + 1);
    if (is_space(c)) return copy_to(at_ + 1);
    if (c == '-' && next == '-') return copy_to(std::min(text_.find_first_of("\n\r", at_), text_.size()));
    if (c == '/' && next == '*') return copy_to(end_of_comment());
    if (semicolon_ != kNowhere) {
      return refuse(fmt::format("the text has more than one statement: something follows the semicolon {}",
                                place_of(semicolon_)));
    }
    if (c == ';') {
      semicolon_ = at_;
      return copy_to(at_ + 1);
    }
    if (!has_begun_) begin();
    if (is_name_start(c)) return copy_to((c == 'e' || c == 'E') && next == '\'' ? end_of_escaped() : end_of_name(at_));
    if (is_digit(c)) return copy_to(end_of_name(at_));  // 0x1F, 1e5
    if (c == '\'' || c == '"') return copy_to(end_of_quoted(at_ + 1, c, false));
    if (c == '$') return is_digit(next) ? refuse_number() : copy_to(end_of_dollar_quoted());
    if (c == ':' && (next == ':' || next == '=')) return copy_to(at_ + 2);
    if (c == ':' && is_name_start(next)) return bind();
    copy_to(at_ + 1);
  }

  void begin() {
    has_begun_ = true;
    const size_t end = is_name_start(text_[at_]) ? end_of_name(at_) : at_;
    if (std::ranges::find(kStatements, lower(text_.substr(at_, end - at_))) != kStatements.end()) return;
    refuse("a statement begins with INSERT, UPDATE, DELETE, MERGE, SELECT or WITH");
  }

  void refuse_number() {
    size_t end = at_ + 1;
    while (is_digit(at(end))) ++end;
    refuse(fmt::format("{} {} is a number: values have names here, such as :new.id", text_.substr(at_, end - at_),
                       place_of(at_)));
  }

  void bind() {
    const size_t end = end_of_name(at_ + 1);
    const std::string name = lower(text_.substr(at_ + 1, end - at_ - 1));
    const auto found = std::ranges::find(kKinds, name);
    if (found == kKinds.end()) {
      return refuse(fmt::format("{} {} is no bind name (:{}); a colon that begins none has a space behind it",
                                text_.substr(at_, end - at_), place_of(at_), fmt::join(kKinds, ", :")));
    }
    BindName bound{.kind = static_cast<BindKind>(found - kKinds.begin())};
    const bool has_column = bound.kind == BindKind::new_value || bound.kind == BindKind::old_value;
    const size_t after = has_column ? read_column(end, bound.column) : end;
    if (!fault_.empty()) return;
    if (has_column && bound.column.empty()) {
      return refuse(
          fmt::format(":{0} {1} is followed by a column, such as :{0}.id or :{0}.\"Id\"", name, place_of(at_)));
    }
    auto place = std::ranges::find(out_.names, bound);
    if (place == out_.names.end()) place = out_.names.insert(place, std::move(bound));
    out_.sql += fmt::format("${}", place - out_.names.begin() + 1);
    // A digit behind it would become part of the number.
    if (is_name(at(after))) out_.sql += ' ';
    at_ = after;
  }

  // Behind the column of :new or :old that ends at `from`.
  size_t read_column(size_t from, std::string& column) {
    if (at(from) != '.') return from;
    if (is_name_start(at(from + 1))) {
      const size_t end = end_of_name(from + 1);
      column = lower(text_.substr(from + 1, end - from - 1));
      return end;
    }
    if (at(from + 1) != '"') return from;
    const size_t end = end_of_quoted(from + 2, '"', false);
    if (end == kNowhere) {
      refuse(fmt::format("the quote or comment {} is not closed", place_of(from + 1)));
      return from;
    }
    for (size_t i = from + 2; i < end - 1; ++i) {
      column += text_[i];
      if (text_[i] == '"') ++i;
    }
    return end;
  }

  size_t end_of_name(size_t from) const {
    while (from < text_.size() && is_name(text_[from])) ++from;
    return from;
  }

  // Behind the quote that ends what begins at `from`; two quotes are one of the text.
  size_t end_of_quoted(size_t from, char quote, bool escapes) const {
    for (size_t i = from; i < text_.size(); ++i) {
      if (escapes && text_[i] == '\\') {
        ++i;
      } else if (text_[i] == quote) {
        if (at(i + 1) != quote) return i + 1;
        ++i;
      }
    }
    return kNowhere;
  }

  // E'...': goes on in the next line with another quote, where a backslash escapes, too.
  size_t end_of_escaped() const {
    size_t end = end_of_quoted(at_ + 2, '\'', true);
    while (end != kNowhere) {
      const size_t next = next_part(end);
      if (next == kNowhere) return end;
      end = end_of_quoted(next + 1, '\'', true);
    }
    return end;
  }

  // The quote that continues a string which ended at `from`; kNowhere: none does.
  size_t next_part(size_t from) const {
    bool new_line = false;
    while (from < text_.size()) {
      if (is_space(text_[from])) {
        new_line = new_line || text_[from] == '\n' || text_[from] == '\r';
        ++from;
      } else if (text_[from] == '-' && at(from + 1) == '-') {
        from = std::min(text_.find_first_of("\n\r", from), text_.size());
      } else {
        break;
      }
    }
    return new_line && at(from) == '\'' ? from : kNowhere;
  }

  // $tag$...$tag$; behind the dollar where none begins.
  size_t end_of_dollar_quoted() const {
    size_t tag_end = at_ + 1;
    if (is_name_start(at(tag_end))) {
      while (is_name(at(tag_end)) && text_[tag_end] != '$') ++tag_end;
    }
    if (at(tag_end) != '$') return at_ + 1;
    const std::string_view tag = text_.substr(at_, tag_end - at_ + 1);
    const size_t end = text_.find(tag, tag_end + 1);
    return end == kNowhere ? kNowhere : end + tag.size();
  }

  size_t end_of_comment() const {
    int depth = 0;
    for (size_t i = at_; i + 1 < text_.size(); ++i) {
      const bool opens = text_[i] == '/' && text_[i + 1] == '*';
      const bool closes = text_[i] == '*' && text_[i + 1] == '/';
      if (!opens && !closes) continue;
      depth += opens ? 1 : -1;
      ++i;
      if (depth == 0) return i + 1;
    }
    return kNowhere;
  }

  const std::string_view text_;
  size_t at_ = 0;
  bool has_begun_ = false;
  size_t semicolon_ = kNowhere;
  std::string fault_;
  BoundStatement out_;
};

}  // namespace

std::string written(const BindName& name) {
  std::string text = fmt::format(":{}", kKinds[static_cast<size_t>(name.kind)]);
  if (name.kind == BindKind::new_value || name.kind == BindKind::old_value) text += "." + name.column;
  return text;
}

std::expected<BoundStatement, std::string> bind_names(std::string_view text) { return Binder(text).run(); }

}  // namespace thalweg::base
