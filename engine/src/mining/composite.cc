#include "mining/conversions.h"
#include "wal/little_endian.h"
#include "wal/tuple_values.h"

// record_send of src/backend/utils/adt/rowtypes.c. A composite is a tuple with its header behind its length
// (DatumTupleFields of src/include/access/htup_details.h).

namespace thalweg::mining {

bool append_composite(const SendForm& form, std::span<const std::byte> content, std::string& out) {
  constexpr size_t kTypeAt = 4;  // behind the type's modifier
  constexpr size_t kInfomask2At = 14;
  constexpr size_t kInfomaskAt = 16;
  constexpr size_t kHeaderBytesAt = 18;
  constexpr size_t kDataAt = 19;
  if (content.size() < kDataAt || wal::load<uint32_t>(content, kTypeAt) != form.type) return false;
  const wal::HeapTuple tuple{.infomask2 = wal::load<uint16_t>(content, kInfomask2At),
                             .infomask = wal::load<uint16_t>(content, kInfomaskAt),
                             .header_bytes = wal::load<uint8_t>(content, kHeaderBytesAt),
                             .data = content.subspan(kDataAt)};
  if (!wal::is_whole(tuple) || tuple.columns() > form.attributes.size()) return false;
  uint32_t count = 0;
  for (const StoredAttribute& attribute : form.attributes) count += attribute.is_dropped ? 0 : 1;
  append_network(out, count);
  wal::TupleValues values(tuple);
  for (const StoredAttribute& attribute : form.attributes) {
    const wal::TupleValue read = values.next(attribute.length, attribute.align);
    if (read.state == wal::TupleValue::State::damaged) return false;
    if (attribute.is_dropped) continue;
    append_network(out, attribute.type);
    if (read.state == wal::TupleValue::State::present) {
      std::string plain;
      const auto value = wal::plain_content(read.value, plain);
      if (!value || !append_sized(*attribute.form, *value, out)) return false;
    } else if (read.state == wal::TupleValue::State::absent && attribute.has_missing) {
      return false;  // no server adds a column with a default to a table whose rows are values
    } else {
      append_network(out, kNullLength);
    }
  }
  return true;
}

}  // namespace thalweg::mining
