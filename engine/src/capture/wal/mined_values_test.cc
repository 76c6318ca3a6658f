#include <gtest/gtest.h>

#include <cstdlib>

#include "capture/wal/generated_values.h"
#include "capture/wal/mined_stream.h"

// Random values of every type that is known, alone and in arrays: the mined form of each is that of its send function,
// as logical decoding gives it.
// THALWEG_VALUES: how many of each type (500). THALWEG_VALUES_SEED: which ones (1).

namespace thalweg::capture {
namespace {

uint32_t setting(const char* name, uint32_t otherwise) {
  const char* const given = std::getenv(name);
  return given == nullptr ? otherwise : static_cast<uint32_t>(std::stoul(given));
}

class MinedValuesTest : public MinedStreamTest {
 protected:
  // WAL that was compared need not be kept: a run of millions has more of it than memory.
  MinedValuesTest()
      : MinedStreamTest({{"logical_decoding_work_mem", "1GB"}, {"wal_keep_size", "0"}, {"lock_timeout", "0"}}) {}

  // For each type a column, and one of arrays.
  static std::string table(size_t number, const std::vector<Generated>& types) {
    std::string columns;
    for (size_t i = 0; i < types.size(); ++i) {
      columns += fmt::format(", v{0} {1}, a{0} {1}[]", i, types[i].type);
    }
    return fmt::format("CREATE TABLE t{0} (id bigint{1}); ALTER TABLE t{0} REPLICA IDENTITY FULL;", number, columns);
  }
  static std::string rows(size_t number, const std::vector<Generated>& types, uint32_t count) {
    std::string values;
    for (const Generated& generated : types) {
      // An array of these would be one of their elements.
      const std::string type{generated.type};
      const std::string expression{generated.expression};
      const bool is_array = type == "int2vector" || type == "oidvector" || type == "pairs";
      const std::string element = is_array ? "(" + expression + "::text)" : expression;
      values += fmt::format(
          ", CASE WHEN g.n(12) > 0 THEN {0} END, (CASE g.n(9) WHEN 0 THEN NULL WHEN 1 THEN ARRAY[[NULL, {1}]]"
          " ELSE (ARRAY[{1}, NULL, {1}])[1:g.n(4)] END)::{2}[]",
          expression, element, type);
    }
    return fmt::format("INSERT INTO t{} SELECT n{} FROM generate_series(1, {}) n", number, values, count);
  }
  void forget() {
    run("SELECT pg_replication_slot_advance('mined', '" + to_string(compared_until()) + "')");
    run("CHECKPOINT");
  }
};

TEST_F(MinedValuesTest, OfEveryTypeAreThoseThatAreSent) {
  std::string tables = kGenerators;
  for (size_t i = 0; i < kGenerated.size(); ++i) tables += table(i, kGenerated[i]);
  begin(tables);
  const uint32_t seed = setting("THALWEG_VALUES_SEED", 1);
  const uint32_t count = setting("THALWEG_VALUES", 500);
  constexpr uint32_t kAtOnce = 500;
  uint32_t done = 0;
  for (uint32_t round = 0; done < count; ++round) {
    const uint32_t rows_now = std::min(kAtOnce, count - done);
    for (size_t i = 0; i < kGenerated.size(); ++i) {
      run(fmt::format("SELECT setseed({})", static_cast<double>((seed * 7919 + round * 31 + i) % 100'000) / 100'000));
      run(fmt::format("SET default_toast_compression = {}", (round + i) % 2 == 0 ? "pglz" : lz4()));
      run(rows(i, kGenerated[i], rows_now));
      run(fmt::format("UPDATE t{} SET id = -id WHERE id % 16 = 1", i));
      run(fmt::format("DELETE FROM t{} WHERE id % 8 = 3", i));
      compare();
      if (HasFatalFailure()) FAIL() << "table t" << i << ", seed " << seed << ", round " << round;
      run(fmt::format("TRUNCATE t{}", i));
    }
    compare();
    forget();
    done += rows_now;
  }
  EXPECT_GT(frames(), size_t{count} * kGenerated.size());
  RecordProperty("frames", static_cast<int>(frames()));
}

}  // namespace
}  // namespace thalweg::capture
