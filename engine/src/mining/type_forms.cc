#include "mining/type_forms.h"

#include <algorithm>
#include <span>

#include "mining/catalog_columns.h"
#include "mining/conversions.h"
#include "mining/known_types.h"
#include "wal/varlena.h"

namespace thalweg::mining {

namespace {

using dictionary::Catalog;
using dictionary::Dictionary;
using dictionary::Row;

// Arrays by their own names, whose elements' array types are others.
constexpr uint32_t kInt2Vector = 22;
constexpr uint32_t kOidVector = 30;

// A type is made of others, which are made of others: more than this is none that anybody uses.
constexpr size_t kDepthMax = 64;

// The value of a row that is older than the attribute.
std::optional<std::string> sent_missing(const std::string& value, const SendForm& form) {
  const auto bytes = std::as_bytes(std::span{value}).subspan(1);
  if (value.front() == dictionary::kSentElement) {
    // Sent when the dictionary began: nothing that it depends on may have changed since then.
    const std::string_view sent = text_of(bytes);
    const auto is_this = [&](const auto& label) { return label.second == sent; };
    if (form.may_change && (!form.labels || std::ranges::none_of(*form.labels, is_this))) return std::nullopt;
    return std::string{sent};
  }
  const auto stored = wal::parse_value(bytes, form.length);
  std::string plain;
  const auto content = stored ? wal::plain_content(*stored, plain) : std::nullopt;
  std::string sent;
  return content && form.append(*content, sent) ? std::optional{sent} : std::nullopt;
}

}  // namespace

std::vector<Row> attributes_of(const Dictionary& dictionary, uint32_t relation, base::Xid viewer) {
  std::vector<Row> attributes;
  dictionary.rows_with_key(Catalog::pg_attribute, 0, relation, viewer, [&](Row row) {
    if (integer(row, attribute_at::number) > 0) attributes.push_back(std::move(row));
  });
  std::ranges::sort(attributes, {}, [](const Row& row) { return integer(row, attribute_at::number); });
  return attributes;
}

std::shared_ptr<const SendForm> TypeForms::of(uint32_t type) {
  const auto [found, is_new] = made_.try_emplace(type);
  if (!is_new) return found->second;
  if (depth_ == kDepthMax) return nullptr;
  ++depth_;
  auto form = make(type);
  --depth_;
  return made_[type] = std::move(form);
}

std::shared_ptr<const SendForm> TypeForms::make(uint32_t type) {
  const auto row = type_row(type);
  if (!row) return nullptr;
  if (letter(*row, type_at::kind) == 'd') return of(oid(*row, type_at::base));
  SendForm form{.type = type,
                .length = static_cast<int16_t>(integer(*row, type_at::length)),
                .align = letter(*row, type_at::align)};
  if (!complete(*row, form)) return nullptr;
  form.may_change =
      form.may_change || form.labels || !form.attributes.empty() || (form.element && form.element->may_change);
  return std::make_shared<const SendForm>(std::move(form));
}

std::optional<Row> TypeForms::type_row(uint32_t type) const {
  std::optional<Row> row;
  dictionary_.rows_with_key(Catalog::pg_type, 0, type, viewer_, [&](Row found) { row = std::move(found); });
  return row;
}

bool TypeForms::complete(const Row& row, SendForm& form) {
  switch (letter(row, type_at::kind)) {
    case 'b':
      return complete_base(row, form);
    case 'c':
      return complete_composite(row, form);
    case 'e':
      return complete_enum(form);
    case 'r':
      form.convert = append_range;
      return complete_range(form, 0);
    case 'm':
      form.convert = append_multirange;
      return complete_range(form, 1);
    default:
      return false;
  }
}

bool TypeForms::complete_base(const Row& row, SendForm& form) {
  if (const auto known = known_type(form.type)) {
    form.convert = known->convert;
    form.parts = known->parts;
    return true;
  }
  if (const uint32_t element = oid(row, type_at::element); form.length == -1 && element != 0) {
    const auto of_element = type_row(element);
    const bool is_vector = form.type == kInt2Vector || form.type == kOidVector;
    if (is_vector || (of_element && oid(*of_element, type_at::array) == form.type)) {
      form.convert = append_array;
      form.element = of(element);
      return form.element != nullptr;
    }
  }
  dictionary_.rows_with_key(
      Catalog::pg_extension, 0, integer(row, type_at::schema), viewer_, [&](const Row& extension) {
        if (const Convert found = type_of_extension(text(extension, extension_at::name), text(row, type_at::name))) {
          form.convert = found;
        }
      });
  return form.convert != nullptr && form.length == -1;
}

bool TypeForms::complete_enum(SendForm& form) {
  constexpr size_t kByType = 1;
  auto labels = std::make_shared<std::unordered_map<uint32_t, std::string>>();
  dictionary_.rows_with_key(Catalog::pg_enum, kByType, form.type, viewer_, [&](const Row& label) {
    labels->emplace(oid(label, enum_at::oid), text(label, enum_at::label));
  });
  form.convert = append_label;
  form.labels = std::move(labels);
  return true;
}

// `key`: that of pg_range by which the type is found.
bool TypeForms::complete_range(SendForm& form, size_t key) {
  dictionary_.rows_with_key(Catalog::pg_range, key, form.type, viewer_,
                            [&](const Row& range) { form.element = of(oid(range, range_at::subtype)); });
  return form.element != nullptr;
}

bool TypeForms::complete_composite(const Row& row, SendForm& form) {
  form.convert = append_composite;
  form.may_change = true;
  for (const Row& attribute : attributes_of(dictionary_, oid(row, type_at::relation), viewer_)) {
    form.attributes.push_back(this->attribute(attribute));
    if (!form.attributes.back().is_dropped && !form.attributes.back().form) return false;
  }
  return true;
}

StoredAttribute TypeForms::attribute(const Row& row) {
  StoredAttribute attribute{.type = oid(row, attribute_at::type),
                            .length = static_cast<int16_t>(integer(row, attribute_at::length)),
                            .align = letter(row, attribute_at::align),
                            .is_dropped = integer(row, attribute_at::dropped) != 0,
                            .has_missing = integer(row, attribute_at::has_missing) != 0};
  if (!attribute.is_dropped) attribute.form = of(attribute.type);
  const auto* const missing = std::get_if<std::string>(&row[attribute_at::missing]);
  if (attribute.has_missing && attribute.form && missing != nullptr) {
    attribute.missing = sent_missing(*missing, *attribute.form);
  }
  return attribute;
}

}  // namespace thalweg::mining
