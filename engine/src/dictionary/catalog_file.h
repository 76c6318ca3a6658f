#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "dictionary/catalog_layout.h"
#include "dictionary/catalogs.h"
#include "wal/heap_page.h"

// The rows of one catalog in one of its files, by their places. A catalog has a second file while VACUUM FULL or
// CLUSTER rewrites it.

namespace thalweg::dictionary {

// A place in a file (ctid).
struct Place {
  uint32_t block = 0;
  uint16_t offset = 0;
  constexpr auto operator<=>(const Place&) const = default;
};

// How much is known of a row.
enum class Knowledge : uint8_t {
  none,      // only that a transaction removes it
  selected,  // its values, by SQL: Version::bytes is a packed row
  stored,    // its tuple: Version::bytes is its data
};

// A version of a row.
struct Version {
  Knowledge knowledge = Knowledge::none;
  std::string bytes = {};
  // Of a stored one, from its header.
  uint16_t infomask2 = 0;
  uint16_t infomask = 0;
  uint8_t header_bytes = 0;
  // Transactions that have not ended, and subtransactions of such; none: it is there, and stays, for everybody.
  base::Xid inserted_by = {};
  base::Xid removed_by = {};
  // False: it was on a page's image only, which does not say whether anybody sees it.
  bool is_settled = false;
  // Of one that is not settled, from its page.
  base::Xid xmin = {};
  base::Xid xmax = {};

  wal::HeapTuple tuple() const {
    return {.infomask2 = infomask2,
            .infomask = infomask,
            .header_bytes = header_bytes,
            .data = std::as_bytes(std::span{bytes})};
  }
  // Takes the tuple's bytes and what of the header belongs to them.
  void store(const wal::HeapTuple& tuple);
  // Whether it has these values; its own header may have other hints.
  bool has(const wal::HeapTuple& tuple) const;
};

// Owner: the dictionary.
class CatalogFile {
 public:
  using Page = std::map<uint16_t, Version>;

  CatalogFile(Catalog catalog, std::shared_ptr<const CatalogLayout> layout);

  Catalog catalog() const { return catalog_; }
  Version* find(Place place);
  // Replaces what was there. Null: the version is no row of this catalog, and nothing was done.
  Version* put(Place place, Version version);
  void erase(Place place);
  // Null: nothing is known of the page.
  const Page* page(uint32_t block) const;
  void erase_page(uint32_t block);
  // Those from this block on.
  void truncate(uint32_t blocks);
  // Null: its values are not known, or are no row of this catalog.
  std::optional<Row> row(const Version& version) const;

  // Versions that have this value at the catalog's key of that number, in no order.
  void each_with_key(size_t key, int64_t value, const std::function<void(const Version&)>& take) const;
  void each(const std::function<void(Place, Version&)>& take);
  void each(const std::function<void(Place, const Version&)>& take) const;
  size_t size() const;

 private:
  void index(Place place, const Row& row);
  void forget(Place place, const Version& version);
  Catalog catalog_;
  std::shared_ptr<const CatalogLayout> layout_;
  std::unordered_map<uint32_t, Page> pages_;
  std::vector<std::unordered_multimap<int64_t, Place>> keys_;
};

}  // namespace thalweg::dictionary
