#include "mining/table_check.h"

#include "wal/wal_format.h"

namespace thalweg::mining {

base::Result<void> check_tables(const dictionary::Dictionary& dictionary, std::span<const uint32_t> tables,
                                const IsWanted& is_wanted) {
  for (const uint32_t table : tables) THALWEG_TRY(read_table(dictionary, table, {}, is_wanted));
  return {};
}

base::Result<void> check_tables(const dictionary::FirstContents& contents, std::span<const uint32_t> tables,
                                const IsWanted& is_wanted) {
  THALWEG_ASSIGN(dictionary::Dictionary dictionary, dictionary::Dictionary::begin(contents));
  // A record of no meaning, at the contents' position: the dictionary takes them for what is valid there.
  constexpr uint8_t kNoop = 0x20;
  wal::WalRecord here;
  here.begin = here.end = contents.as_of;
  here.info = kNoop;
  THALWEG_TRY(dictionary.apply(here, {}, wal::wal_formats().front()));
  return check_tables(dictionary, tables, is_wanted);
}

}  // namespace thalweg::mining
