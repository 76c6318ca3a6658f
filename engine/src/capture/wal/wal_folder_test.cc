#include "capture/wal/wal_folder.h"

#include <gtest/gtest.h>

#include <fstream>

#include "capture/wal/wal_start.h"
#include "dictionary/first_contents_file.h"
#include "dictionary/mined_source.h"

namespace thalweg::capture {
namespace {

using dictionary::MinedSource;

class WalFolderTest : public testing::Test {
 protected:
  WalFolderTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "thalweg-wal-folder-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~WalFolderTest() override { std::filesystem::remove_all(path_); }

  std::filesystem::path path_;
};

TEST_F(WalFolderTest, TheStateSurvives) {
  const WalFolder folder(path_ / "mined");
  ASSERT_TRUE(folder.read_state());
  EXPECT_FALSE(*folder.read_state());
  const MiningState state{.system_identifier = "7012345678901234567",
                          .kept_from = {0x1000028},
                          .started_at = {0x2000028},
                          .at = {.confirmed = {0x1'0000'0000}, .restart = {0x2'0000'0040}},
                          .earlier = {{.confirmed = {0x40}, .restart = {0x30}}}};
  ASSERT_TRUE(folder.write_state(state));
  const auto read = folder.read_state();
  ASSERT_TRUE(read && *read);
  EXPECT_EQ((*read)->system_identifier, state.system_identifier);
  EXPECT_EQ((*read)->kept_from, state.kept_from);
  EXPECT_EQ((*read)->started_at, state.started_at);
  EXPECT_EQ((*read)->at, state.at);
  EXPECT_EQ((*read)->earlier, state.earlier);
  std::ofstream(path_ / "mined/mining.json") << "{";
  EXPECT_EQ(folder.read_state().error().code, base::ErrorCode::file_error);
  ASSERT_TRUE(folder.clear());
  EXPECT_FALSE(*folder.read_state());
}

// The newest dictionary that is old enough; the first contents before there is one.
TEST_F(WalFolderTest, ARestartBeginsWithWhatItNeedsAndTheRestGoes) {
  MinedSource source;
  auto session = source.connect();
  MinedSource::value(session, "CREATE TABLE t (id int PRIMARY KEY)");
  source.keep_wal();
  auto contents = source.first_contents();
  WalFolder folder(path_);
  ASSERT_TRUE(dictionary::save_first_contents(contents, folder.first_contents()));
  MiningState state{.kept_from = {0x28}, .started_at = contents.as_of, .at = {.confirmed = {}, .restart = {0x28}}};
  source.begin(std::move(contents));
  EXPECT_EQ(*folder.save(source.dictionary()), false) << "it has not come to its first contents";
  {
    const auto begun = folder.begin(state);
    ASSERT_TRUE(begun) << begun.error().message;
    EXPECT_EQ(begun->from, state.kept_from);
    EXPECT_FALSE(begun->dictionary.is_ready());
  }
  std::vector<base::Lsn> positions;
  for (int i = 0; i < 3; ++i) {
    MinedSource::value(session, fmt::format("ALTER TABLE t ADD COLUMN c{} int", i));
    ASSERT_TRUE(source.catch_up());
    ASSERT_TRUE(*folder.save(source.dictionary()));
    positions.push_back(source.dictionary().position());
  }
  EXPECT_EQ(*folder.drop_unneeded(state), state.kept_from);
  state.at.restart = {positions[1].value + 8};
  EXPECT_EQ(*folder.drop_unneeded(state), positions[1]);
  EXPECT_EQ(folder.dictionaries(), 2U);
  EXPECT_FALSE(std::filesystem::exists(folder.first_contents()));
  WalFolder again(path_);
  const auto begun = again.begin(state);
  ASSERT_TRUE(begun) << begun.error().message;
  EXPECT_EQ(begun->from, positions[1]);
  EXPECT_EQ(begun->dictionary.position(), positions[1]);
  size_t columns = 0;
  begun->dictionary.rows(dictionary::Catalog::pg_attribute, {}, [&](const dictionary::Row& row) {
    const std::string& name = std::get<std::string>(row[1]);
    columns += name == "c0" || name == "c1" || name == "c2";
  });
  EXPECT_EQ(columns, 2U);
}

// A source that has left timeline 1 at `end`.
shipment::WalIdentity switched(base::Lsn end) {
  return {.system_identifier = 7, .history = pg::TimelineHistory(2, {{.timeline = 1, .end = end}})};
}

TEST_F(WalFolderTest, GoesBackBeforeTheEndOfATimeline) {
  WalFolder folder(path_);
  std::filesystem::create_directories(folder.staging());
  const auto touch = [](const std::filesystem::path& file) { std::ofstream(file) << "x"; };
  const auto dictionary = [&](uint64_t at) { return path_ / fmt::format("dictionary-{:016X}", at); };
  for (const uint64_t at : {100, 200, 300}) touch(dictionary(at));
  MiningState state{.at = {.confirmed = {120}, .restart = {110}}};
  for (const uint64_t at : {180, 260, 320}) state.advance({.confirmed = {at}, .restart = {at - 10}});
  ASSERT_TRUE(folder.write_state(state));
  EXPECT_EQ(*folder.left_at(switched({250})), std::nullopt) << "nothing is staged";
  touch(folder.staging() / "000000010000000000000001");
  EXPECT_EQ(*folder.left_at(switched({250})), base::Lsn{250});
  EXPECT_EQ(folder.left_at({.history = pg::TimelineHistory(3, {{.timeline = 2, .end = {250}}})}).error().code,
            base::ErrorCode::source_diverged);

  const auto back = folder.back_to({250}, state);
  ASSERT_TRUE(back && *back);
  EXPECT_EQ((*back)->at, (MiningPosition{.confirmed = {180}, .restart = {170}}));
  EXPECT_EQ((*back)->earlier, (std::vector<MiningPosition>{{.confirmed = {120}, .restart = {110}}}));
  EXPECT_EQ((*folder.back_to({320}, state))->at, state.at);
  EXPECT_FALSE(*folder.back_to({119}, state)) << "nothing that was noted lies there";
  EXPECT_EQ(*folder.reaches_back_to(state), base::Lsn{120});
  ASSERT_TRUE(folder.cut_back({250}, **back));
  EXPECT_FALSE(std::filesystem::exists(dictionary(300)));
  EXPECT_TRUE(std::filesystem::exists(dictionary(200)));
  EXPECT_EQ((*folder.read_state())->at, (*back)->at);

  state = **back;
  ASSERT_TRUE(folder.cut_back({250}, state)) << "it may be done twice";
  state.advance({.confirmed = {240}, .restart = {230}});
  EXPECT_EQ(*folder.drop_unneeded(state), base::Lsn{200});
  EXPECT_EQ(state.earlier, std::vector<MiningPosition>{}) << "no dictionary and no WAL is kept for them";
  EXPECT_FALSE(*folder.back_to({190}, state));
  EXPECT_EQ(*folder.reaches_back_to(state), base::Lsn{240});
}

TEST_F(WalFolderTest, GoesBackToWhereARestoredDestinationIs) {
  WalFolder folder(path_);
  const shipment::WalIdentity source{.system_identifier = 7, .history = pg::TimelineHistory(1)};
  EXPECT_EQ(check_mining(folder, source, {250}).error().code, base::ErrorCode::position_gap) << "nothing is left";
  EXPECT_EQ(check_kept(path_, {250}).error().code, base::ErrorCode::position_gap);
  std::ofstream(path_ / fmt::format("dictionary-{:016X}", 100)) << "x";
  MiningState state{.system_identifier = "7", .at = {.confirmed = {90}, .restart = {80}}};
  for (const uint64_t at : {180, 260, 320}) state.advance({.confirmed = {at}, .restart = {at - 10}});
  ASSERT_TRUE(folder.write_state(state));

  for (const uint64_t at : {0, 320, 400}) {
    const auto on = check_mining(folder, source, {at});
    ASSERT_TRUE(on) << on.error().message;
    EXPECT_EQ(on->state.at, state.at);
    EXPECT_FALSE(on->again_until);
  }
  const auto back = check_mining(folder, source, {319});
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->state.at, (MiningPosition{.confirmed = {260}, .restart = {250}}));
  EXPECT_EQ(back->again_until, base::Lsn{320});
  EXPECT_EQ((*folder.read_state())->at, state.at) << "nothing is written before something is mined";
  EXPECT_EQ(check_mining(folder, source, {180})->state.at.confirmed, base::Lsn{180});
  EXPECT_TRUE(check_kept(path_, {180}));

  const auto gap = check_mining(folder, source, {179});
  ASSERT_FALSE(gap);
  EXPECT_EQ(gap.error().code, base::ErrorCode::position_gap);
  EXPECT_EQ(gap.error().lsn, base::Lsn{179});
  EXPECT_NE(gap.error().message.find("from 0/B4 on"), std::string::npos) << gap.error().message;
  EXPECT_NE(gap.error().message.find("1 bytes"), std::string::npos) << gap.error().message;
  EXPECT_NE(gap.error().message.find("wal_keep_mb"), std::string::npos) << gap.error().message;
  EXPECT_EQ(check_kept(path_, {179}).error().message, gap.error().message);
}

class KeptWalFolderTest : public WalFolderTest {
 protected:
  void make_dictionaries(uint64_t first, uint64_t last, uint64_t step) {
    for (uint64_t at = first; at <= last; at += step)
      std::ofstream(path_ / fmt::format("dictionary-{:016X}", at)) << "x";
  }
  static std::vector<uint64_t> positions(const WalFolder& folder) {
    std::vector<uint64_t> out;
    const auto saved = folder.saved();
    for (const base::Lsn position : *saved) out.push_back(position.value);
    return out;
  }
};

TEST_F(KeptWalFolderTest, SearchesHaveWhatIsKeptForThem) {
  make_dictionaries(1000, 6000, 1000);
  WalFolder folder(path_);
  MiningState state{.at = {.confirmed = {900}, .restart = {900}}};
  for (const uint64_t at : {1500, 2500, 3500, 4500, 5600}) state.advance({.confirmed = {at}, .restart = {at - 100}});
  ASSERT_TRUE(folder.back_to({UINT64_MAX}, state));  // it finds the dictionaries
  EXPECT_EQ(*folder.drop_unneeded(state, {.bytes = 2500}), base::Lsn{2000}) << "at or before the first that is kept";
  EXPECT_EQ(positions(folder), (std::vector<uint64_t>{2000, 3000, 4000, 5000, 6000}));
  EXPECT_EQ(state.earlier.front().confirmed, base::Lsn{2500});
  EXPECT_EQ(folder.dictionaries(), 2U) << "of those that are needed";
  EXPECT_TRUE(folder.keeps());

  ASSERT_TRUE(folder.write_state(state));
  WalFolder again(path_);
  MiningState read = **again.read_state();
  EXPECT_EQ(again.begin(read).error().code, base::ErrorCode::file_error) << "these are no real ones";
  EXPECT_EQ(*again.drop_unneeded(read, {.bytes = 2500}), base::Lsn{2000}) << "a restart keeps them";

  EXPECT_EQ(*again.drop_unneeded(read, {.bytes = 2500, .possible_from = {3500}}), base::Lsn{4000});
  EXPECT_EQ(positions(again), (std::vector<uint64_t>{4000, 5000, 6000}));
  EXPECT_EQ(*again.drop_unneeded(read, {.bytes = 2500, .possible_from = {UINT64_MAX}}), base::Lsn{5000})
      << "what is needed stays, however little room there is";
  EXPECT_FALSE(again.keeps());
  EXPECT_EQ(*again.drop_unneeded(read), base::Lsn{5000});
  EXPECT_EQ(positions(again), (std::vector<uint64_t>{5000, 6000}));
}

TEST_F(KeptWalFolderTest, FirstContentsAreKeptAsLongAsTheirWal) {
  make_dictionaries(1000, 3000, 1000);
  WalFolder folder(path_);
  std::ofstream(folder.first_contents()) << "x";
  MiningState state{.kept_from = {500}, .started_at = {900}, .at = {.confirmed = {900}, .restart = {500}}};
  for (const uint64_t at : {1500, 3500}) state.advance({.confirmed = {at}, .restart = {at - 100}});
  EXPECT_EQ((*folder.back_to({950}, state))->at.confirmed, base::Lsn{900});
  EXPECT_EQ(*folder.drop_unneeded(state, {.bytes = 2500}), base::Lsn{500});
  EXPECT_TRUE(folder.keeps());
  EXPECT_EQ(positions(folder), (std::vector<uint64_t>{1000, 2000, 3000}));
  EXPECT_EQ(*folder.reaches_back_to(state), base::Lsn{900});

  EXPECT_EQ(*folder.drop_unneeded(state, {.bytes = 2500, .possible_from = {501}}), base::Lsn{1000})
      << "there is no room";
  EXPECT_FALSE(std::filesystem::exists(folder.first_contents()));
  EXPECT_EQ(*folder.reaches_back_to(state), base::Lsn{1500});
  EXPECT_FALSE(*folder.back_to({950}, state));
}

TEST_F(KeptWalFolderTest, WhatIsCutBackIsNotKept) {
  make_dictionaries(1000, 4000, 1000);
  WalFolder folder(path_);
  MiningState state{.at = {.confirmed = {1100}, .restart = {1100}}};
  for (const uint64_t at : {2100, 3100, 4100}) state.advance({.confirmed = {at}, .restart = {at}});
  const auto back = folder.back_to({2500}, state);
  ASSERT_TRUE(back && *back);
  ASSERT_TRUE(folder.cut_back({2500}, **back));
  MiningState now = **back;
  EXPECT_EQ(*folder.drop_unneeded(now, {.bytes = 10'000}), base::Lsn{1000});
  EXPECT_EQ(positions(folder), (std::vector<uint64_t>{1000, 2000}));
}

TEST_F(KeptWalFolderTest, KeptDictionariesAreBounded) {
  constexpr uint64_t kLast = 10'000;
  make_dictionaries(100, kLast, 100);
  WalFolder folder(path_);
  MiningState state{.at = {.confirmed = {50}, .restart = {50}}};
  for (uint64_t at = 100; at <= kLast; at += 100) {
    state.advance({.confirmed = {at}, .restart = {at}, .has_dictionary = true});
    state.advance({.confirmed = {at + 10}, .restart = {at + 10}});
  }
  EXPECT_TRUE(std::ranges::any_of(state.earlier, [](const auto& at) { return at.confirmed == base::Lsn{200}; }))
      << "those with a dictionary stay";
  ASSERT_TRUE(folder.back_to({UINT64_MAX}, state));
  EXPECT_EQ(*folder.drop_unneeded(state, {.bytes = kLast}), base::Lsn{100});
  auto kept = positions(folder);
  EXPECT_EQ(kept.size(), 17U) << "and the one that is needed";
  EXPECT_EQ(kept.front(), 100U);
  EXPECT_EQ(kept.back(), kLast);
  for (const MiningPosition& position : state.earlier) {
    EXPECT_TRUE(!position.has_dictionary || std::ranges::find(kept, position.confirmed.value) != kept.end());
  }
  EXPECT_EQ(*folder.drop_unneeded(state, {.bytes = kLast - 200}), base::Lsn{100});
  EXPECT_EQ(positions(folder).size(), 17U);
  const Keeping little{.bytes = 40};
  EXPECT_EQ(*folder.drop_unneeded(state, little), base::Lsn{kept[kept.size() - 2]})
      << "the newest at or before the first that is kept";
}

TEST_F(WalFolderTest, FirstContentsOnTheDiskAreTheSame) {
  const MinedSource source;
  const auto contents = source.first_contents();
  const auto file = path_ / "first";
  ASSERT_TRUE(dictionary::save_first_contents(contents, file));
  const auto read = dictionary::load_first_contents(file);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->as_of, contents.as_of);
  for (size_t i = 0; i < dictionary::kCatalogs; ++i) {
    const auto& one = contents.catalogs.at(i);
    const auto& other = read->catalogs.at(i);
    EXPECT_EQ(one.file, other.file);
    ASSERT_EQ(one.columns.size(), other.columns.size());
    for (size_t column = 0; column < one.columns.size(); ++column) {
      EXPECT_EQ(one.columns[column].name, other.columns[column].name);
      EXPECT_EQ(one.columns[column].length, other.columns[column].length);
      EXPECT_EQ(one.columns[column].align, other.columns[column].align);
    }
    ASSERT_EQ(one.rows.size(), other.rows.size());
    for (size_t row = 0; row < one.rows.size(); ++row) {
      EXPECT_EQ(one.rows[row].place, other.rows[row].place);
      EXPECT_EQ(one.rows[row].row, other.rows[row].row);
    }
  }
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
  EXPECT_EQ(dictionary::load_first_contents(file).error().code, base::ErrorCode::file_error);
}

}  // namespace
}  // namespace thalweg::capture
