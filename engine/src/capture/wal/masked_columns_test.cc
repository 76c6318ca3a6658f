#include "capture/wal/masked_columns.h"

#include <gtest/gtest.h>

#include "dictionary/mined_source.h"

namespace thalweg::capture {
namespace {

using dictionary::MinedSource;
using transform::Step;
using transform::StepKind;
using transform::Steps;

const TableKey kPeople{"public", "people"};

Step step(StepKind kind, const std::string& column, const std::string& to = "") {
  Step made;
  made.kind = kind;
  made.column = column;
  made.to = to;
  return made;
}

Steps hiding(const std::string& column) { return {step(StepKind::mask_column, column)}; }

TEST(HiddenColumns, StepsAreFollowedThroughTheirNames) {
  const std::vector<std::string> columns = {"id", "mail", "town", "notes"};
  const auto hidden = [&](const Steps& steps) { return hidden_columns(steps, columns); };
  EXPECT_EQ(hidden({}), (std::vector<bool>{false, false, false, false}));
  EXPECT_EQ(hidden({step(StepKind::rename_column, "mail", "email"), step(StepKind::mask_column, "email"),
                    step(StepKind::drop_column, "notes"), step(StepKind::add_column, "notes"),
                    step(StepKind::cast_column, "town")}),
            (std::vector<bool>{false, true, false, true}));
  Step keeping = step(StepKind::keep_columns, "");
  keeping.columns = {"id", "town"};
  EXPECT_EQ(hidden({keeping}), (std::vector<bool>{false, true, false, true}));
  EXPECT_EQ(hidden(hiding("email")), (std::vector<bool>{false, false, false, false}));
}

TEST(MaskedColumns, StayMaskedForWhatWasWrittenMeanwhile) {
  MinedSource source;
  auto session = source.connect();
  MinedSource::value(session, "CREATE TABLE people (id int PRIMARY KEY, mail text, town text)");
  const auto oid = static_cast<uint32_t>(std::stoul(MinedSource::value(session, "SELECT 'people'::regclass::oid")));
  const ColumnId mail(oid, 2);
  const ColumnId town(oid, 3);
  constexpr base::Lsn kLater{UINT64_MAX - 1};
  MaskedColumns masked;
  ASSERT_TRUE(masked.note(session, {{kPeople, hiding("mail")}}, {}));
  EXPECT_TRUE(masked.is_masked(mail, kLater));
  EXPECT_FALSE(masked.is_masked(town, {1}));

  MinedSource::value(session, "ALTER TABLE people RENAME COLUMN mail TO email");
  ASSERT_TRUE(masked.note(session, {{kPeople, hiding("mail")}}, {}));
  EXPECT_TRUE(masked.is_masked(mail, kLater)) << "nobody knows yet which column the mask is for";
  ASSERT_TRUE(masked.note(session, {{kPeople, hiding("town")}}, {}));
  EXPECT_TRUE(masked.is_masked(mail, {1}));
  EXPECT_FALSE(masked.is_masked(mail, kLater));
  EXPECT_TRUE(masked.is_masked(town, kLater));

  MinedSource::value(session, "ALTER TABLE people RENAME TO persons");
  ASSERT_TRUE(masked.note(session, {{kPeople, hiding("town")}}, {}));
  EXPECT_TRUE(masked.is_masked(town, kLater));

  const auto file = std::filesystem::temp_directory_path() / fmt::format("thalweg-masked-{}.json", getpid());
  ASSERT_TRUE(masked.save(file));
  auto read = MaskedColumns::load(file);
  std::filesystem::remove(file);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(read->is_masked(mail, {1}));
  EXPECT_FALSE(read->is_masked(mail, kLater));
  EXPECT_TRUE(read->is_masked(town, kLater));
  ASSERT_TRUE(read->note(session, {}, kLater));
  EXPECT_FALSE(read->is_masked(mail, {1})) << "the WAL from then is gone";
  EXPECT_FALSE(read->is_masked(town, {1}));
}

}  // namespace
}  // namespace thalweg::capture
