#include "control/strict_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace thalweg::control {
namespace {

using nlohmann::json;
constexpr size_t kNestingMax = 32;

std::string escape(std::string_view member) {
  std::string out;
  for (char c : member) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  // A member's name is foreign input too: keep messages readable.
  if (out.size() > 80) out = out.substr(0, 80) + "...";
  return out;
}

// Refuses members that come twice, and nesting that no document of ours has.
class StrictSax : public nlohmann::detail::json_sax_dom_parser<json> {
  using Dom = nlohmann::detail::json_sax_dom_parser<json>;

 public:
  explicit StrictSax(json& document) : Dom(document, false) {}

  bool start_object(std::size_t size) {
    if (!deeper()) return false;
    keys_.emplace_back();
    return Dom::start_object(size);
  }
  bool end_object() {
    keys_.pop_back();
    --depth_;
    return Dom::end_object();
  }
  bool start_array(std::size_t size) { return deeper() && Dom::start_array(size); }
  bool end_array() {
    --depth_;
    return Dom::end_array();
  }
  bool key(json::string_t& name) {
    if (!keys_.back().insert(name).second) {
      why = fmt::format("the member \"{}\" comes twice", escape(name));
      return false;
    }
    return Dom::key(name);
  }
  template <class Exception>
  bool parse_error(std::size_t position, const std::string& /*token*/, const Exception& /*exception*/) {
    why = fmt::format("not JSON at byte {}", position);
    return false;
  }

  std::string why;

 private:
  bool deeper() {
    if (++depth_ <= kNestingMax) return true;
    why = "nested too deeply";
    return false;
  }

  size_t depth_ = 0;
  std::vector<std::set<std::string>> keys_;
};

}  // namespace

base::Error invalid_at(std::string_view pointer, std::string_view why) {
  return base::fail(base::ErrorCode::invalid_request, fmt::format("{}: {}", pointer.empty() ? "/" : pointer, why))
      .error();
}

base::Result<json> parse_strict(std::string_view text) {
  json root;
  StrictSax sax(root);
  if (!json::sax_parse(text.begin(), text.end(), &sax)) {
    return std::unexpected(invalid_at("", sax.why.empty() ? "not JSON" : sax.why));
  }
  return root;
}

ObjectReader::ObjectReader(const json& value, std::string pointer) : value_(value), pointer_(std::move(pointer)) {
  if (!value_.is_object()) error_ = invalid_at(pointer_, "must be an object");
}

std::string ObjectReader::pointer(std::string_view member) const { return pointer_ + "/" + escape(member); }

void ObjectReader::refuse(std::string_view member, std::string_view why) {
  if (!error_) error_ = invalid_at(pointer(member), why);
}

const json* ObjectReader::member(std::string_view name, bool required) {
  known_.emplace_back(name);
  if (error_) return nullptr;
  auto found = value_.find(name);
  if (found != value_.end()) return &*found;
  if (required) refuse(name, "is missing");
  return nullptr;
}

std::string ObjectReader::string(std::string_view name, size_t length_min, size_t length_max) {
  const json* value = member(name, true);
  if (!value) return {};
  if (!value->is_string()) {
    refuse(name, "must be a string");
    return {};
  }
  const auto& text = value->get_ref<const std::string&>();
  if (text.size() < length_min || text.size() > length_max) {
    refuse(name, fmt::format("must have {} to {} bytes", length_min, length_max));
  } else if (text.find('\0') != std::string::npos) {
    refuse(name, "must not contain a zero byte");
  }
  return error_ ? std::string{} : text;
}

uint64_t ObjectReader::unsigned_integer(std::string_view name) {
  const json* value = member(name, true);
  if (!value) return 0;
  if (!value->is_number_unsigned()) {
    refuse(name, "must be a whole number, not negative");
    return 0;
  }
  return value->get<uint64_t>();
}

bool ObjectReader::boolean(std::string_view name, bool otherwise) {
  const json* value = member(name, false);
  if (!value) return otherwise;
  if (!value->is_boolean()) {
    refuse(name, "must be true or false");
    return otherwise;
  }
  return value->get<bool>();
}

base::Result<void> ObjectReader::finish() {
  if (!error_) {
    for (const auto& [name, value] : value_.items()) {
      if (std::ranges::find(known_, name) == known_.end()) {
        refuse(name, "is not a known field");
        break;
      }
    }
  }
  if (error_) return std::unexpected(*error_);
  return {};
}

}  // namespace thalweg::control
