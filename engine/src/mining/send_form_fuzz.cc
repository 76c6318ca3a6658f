#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <vector>

#include "mining/conversions.h"
#include "mining/send_form.h"

// Input: the number of a form, then a value without its length as it lies in a table.

namespace {

using thalweg::mining::Convert;
using thalweg::mining::SendForm;
using thalweg::mining::StoredAttribute;

// The seeds have it in place of the types' oids that their server gave them (record_values.py).
constexpr uint32_t kComposite = 16384;

using Form = std::shared_ptr<const SendForm>;

Form plain(Convert convert) {
  return std::make_shared<const SendForm>(SendForm{.convert = convert, .length = -1, .align = 'i'});
}
Form integer() {
  return std::make_shared<const SendForm>(
      SendForm{.convert = thalweg::mining::append_swapped, .length = 4, .align = 'i', .parts = {4}});
}
Form of(Convert convert, Form element, char align = 'i') {
  return std::make_shared<const SendForm>(
      SendForm{.convert = convert, .length = -1, .align = align, .element = std::move(element)});
}
Form composite(std::vector<Form> members) {
  SendForm form{.convert = thalweg::mining::append_composite, .type = kComposite, .length = -1, .align = 'd'};
  for (Form& member : members) {
    form.attributes.push_back({.type = 1, .length = member->length, .align = member->align, .form = std::move(member)});
  }
  form.attributes.push_back({.length = -1, .align = 'i', .is_dropped = true});
  form.attributes.push_back(
      {.type = 1, .length = 4, .align = 'i', .has_missing = true, .missing = "seven", .form = integer()});
  return std::make_shared<const SendForm>(std::move(form));
}

// In the order of record_values.py; new ones at the end.
std::vector<Form> forms() {
  using namespace thalweg::mining;
  const Form text = plain(append_copied);
  const Form pair = composite({integer(), text, plain(append_numeric)});
  const auto labels = std::make_shared<const std::unordered_map<uint32_t, std::string>>(
      std::unordered_map<uint32_t, std::string>{{kComposite, "label"}});
  return {
      integer(),
      text,
      plain(append_name),
      plain(append_bits),
      std::make_shared<const SendForm>(SendForm{.convert = append_label, .length = 4, .align = 'i', .labels = labels}),
      plain(append_tuple_id),
      plain(append_snapshot),
      plain(append_inet),
      plain(append_cidr),
      plain(append_path),
      plain(append_polygon),
      plain(append_numeric),
      plain(append_tsvector),
      plain(append_tsquery),
      plain(append_xml),
      plain(append_jsonb),
      plain(append_jsonpath),
      of(append_array, integer()),
      of(append_array, text),
      of(append_range, integer()),
      of(append_range, text),
      of(append_multirange, integer()),
      of(append_multirange, text),
      pair,
      of(append_array, pair, 'd'),
      composite({pair, of(append_array, pair, 'd'), plain(append_jsonb)}),
      plain(append_hstore),
      plain(append_ltree),
      plain(append_cube)};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::vector<Form> all = forms();
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span{data + 1, size - 1});
  // A copy of exactly this size, so that the sanitizer sees any read behind it.
  const std::vector<std::byte> content(bytes.begin(), bytes.end());
  std::string out;
  (void)all[data[0] % all.size()]->append(content, out);
  return 0;
}
