#include <optional>

#include "mining/conversions.h"

// xml_send of src/backend/utils/adt/xml.c: the declaration is printed anew, without the encoding, which is the
// connection's; and only if it says more than "version 1.0".

namespace thalweg::mining {

namespace {

struct Declaration {
  std::string_view version = {};     // of one that is there
  std::string_view standalone = {};  // "yes", "no"; empty: not said
  size_t bytes = 0;                  // 0: there is none
};

constexpr std::string_view kSpaces = " \t\n\r";

// Owner: the parser of one declaration.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : left_(text) {}
  bool skip_spaces() {
    const size_t spaces = std::min(left_.find_first_not_of(kSpaces), left_.size());
    left_.remove_prefix(spaces);
    return spaces != 0;
  }
  bool skip(std::string_view word) {
    if (!left_.starts_with(word)) return false;
    left_.remove_prefix(word.size());
    return true;
  }
  // Behind spaces, "=", spaces: a text in quotes.
  std::optional<std::string_view> assigned() {
    skip_spaces();
    if (!skip("=")) return std::nullopt;
    skip_spaces();
    if (left_.empty() || (left_.front() != '\'' && left_.front() != '"')) return std::nullopt;
    const size_t end = left_.find(left_.front(), 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view value = left_.substr(1, end - 1);
    left_.remove_prefix(end + 1);
    return value;
  }
  size_t left() const { return left_.size(); }

 private:
  std::string_view left_;
};

// parse_xml_decl. Null: it is not well formed, and sent as it is.
std::optional<Declaration> parse(std::string_view text) {
  Cursor cursor(text);
  Declaration declaration;
  if (!cursor.skip("<?xml")) return declaration;
  if (!cursor.skip_spaces() || !cursor.skip("version")) return std::nullopt;
  const auto version = cursor.assigned();
  if (!version) return std::nullopt;
  declaration.version = *version;
  bool has_space = cursor.skip_spaces();
  if (cursor.skip("encoding")) {
    if (!has_space || !cursor.assigned()) return std::nullopt;
    has_space = cursor.skip_spaces();
  }
  if (cursor.skip("standalone")) {
    const auto standalone = has_space ? cursor.assigned() : std::nullopt;
    if (standalone != "yes" && standalone != "no") return std::nullopt;
    declaration.standalone = *standalone;
    cursor.skip_spaces();
  }
  if (!cursor.skip("?>")) return std::nullopt;
  declaration.bytes = text.size() - cursor.left();
  for (const char byte : text.substr(0, declaration.bytes)) {
    if (static_cast<unsigned char>(byte) > 0x7F) return std::nullopt;
  }
  return declaration;
}

}  // namespace

bool append_xml(const SendForm&, std::span<const std::byte> content, std::string& out) {
  std::string_view text = text_of(content);
  text = text.substr(0, text.find('\0'));
  const auto declaration = parse(text);
  if (!declaration) {
    out += text;
    return true;
  }
  text.remove_prefix(declaration->bytes);
  const bool has_version = declaration->bytes != 0 && declaration->version != "1.0";
  if (has_version || !declaration->standalone.empty()) {
    out += "<?xml version=\"";
    out += declaration->version;
    out += '"';
    if (!declaration->standalone.empty()) {
      out += " standalone=\"";
      out += declaration->standalone;
      out += '"';
    }
    out += "?>";
  } else if (text.starts_with('\n')) {
    text.remove_prefix(1);
  }
  out += text;
  return true;
}

}  // namespace thalweg::mining
