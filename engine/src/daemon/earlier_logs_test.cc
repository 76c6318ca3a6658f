// The logs of earlier sessions: which are found, whether they continue from a position, which are of another history.

#include "daemon/earlier_logs.h"

#include <gtest/gtest.h>

#include <fstream>

#include "lcr/frame_samples.h"

namespace thalweg::daemon {
namespace {

namespace fs = std::filesystem;
using base::ErrorCode;
using base::Lsn;

class EarlierLogsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "thalweg_earlier_logs_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    fs::create_directories(directory_ / "backlog");
    space_.emplace(directory_, uint64_t{1} << 30, clock_, 0);
    logs_.emplace(*space_, directory_ / "backlog", "stream", "warehouse");
  }
  void TearDown() override {
    logs_.reset();
    fs::remove_all(directory_);
  }

  // A session's log of one frame: all that commits from `from` up to `synced`.
  void leave(const EarlierLogs::Own& own, uint64_t from, uint64_t synced) {
    auto log = spill::DurableLog::create(*space_, own.folder, own.id, Lsn{from});
    ASSERT_TRUE(log) << log.error().message;
    ASSERT_TRUE((*log)->append(lcr::make_insert_frame({1}, {from}, "x")));
    ASSERT_TRUE((*log)->sync(Lsn{synced}));
  }
  // One session after the other on `timeline`.
  void session(uint64_t from, uint64_t synced, int timeline = 1) {
    ASSERT_TRUE(logs_->begin_session(pg::TimelineHistory(timeline), false));
    leave(logs_->own(timeline), from, synced);
  }
  ErrorCode refusal(uint64_t reached, uint64_t session_from, uint64_t slot_made_at = 0) {
    const auto checked = logs_->check_reach(Lsn{reached}, Lsn{session_from}, Lsn{slot_made_at}, "warehouse");
    EXPECT_FALSE(checked);
    return checked ? ErrorCode{} : checked.error().code;
  }
  bool reaches(uint64_t reached, uint64_t session_from) {
    return logs_->check_reach(Lsn{reached}, Lsn{session_from}, {}, "warehouse").has_value();
  }

  fs::path directory_;
  base::SystemClock clock_;
  std::optional<spill::SpillSpace> space_;
  std::optional<EarlierLogs> logs_;
};

TEST_F(EarlierLogsTest, ContinueFromWhereTheDestinationIs) {
  session(100, 200);
  session(150, 300);
  ASSERT_TRUE(logs_->begin_session(pg::TimelineHistory(1), false));
  EXPECT_EQ(logs_->frames_left(), 2u);
  EXPECT_EQ(logs_->logged(), Lsn{300});
  EXPECT_EQ(logs_->front().from(), Lsn{100});
  EXPECT_TRUE(reaches(100, 300));
  EXPECT_TRUE(reaches(250, 250));
  EXPECT_EQ(refusal(99, 300), ErrorCode::position_gap);
  EXPECT_EQ(refusal(100, 301), ErrorCode::position_gap);
  EXPECT_EQ(refusal(100, 400, 350), ErrorCode::slot_lost);
}

TEST_F(EarlierLogsTest, AnEmptyOneIsRemovedAndItsNumberIsNotUsedAgain) {
  ASSERT_TRUE(logs_->begin_session(pg::TimelineHistory(1), false));
  const EarlierLogs::Own first = logs_->own(1);
  leave(first, 100, 100);
  ASSERT_TRUE(logs_->begin_session(pg::TimelineHistory(1), false));
  EXPECT_TRUE(logs_->empty());
  EXPECT_FALSE(fs::exists(first.folder));
  EXPECT_NE(logs_->own(1).id, first.id);
}

TEST_F(EarlierLogsTest, ADamagedOneLeavesNoneUntilTheyAreReadAgain) {
  session(100, 200);
  session(200, 300);
  const fs::path segment = directory_ / "backlog" / "0000000002" / "00000000";
  const fs::path away = directory_ / "away";
  fs::rename(segment, away);
  EXPECT_FALSE(logs_->begin_session(pg::TimelineHistory(1), false));
  EXPECT_TRUE(logs_->is_unread());
  EXPECT_TRUE(logs_->empty());
  leave(logs_->own(1), 300, 400);  // this session's own is none of them
  fs::rename(away, segment);
  ASSERT_TRUE(logs_->read_again());
  EXPECT_FALSE(logs_->is_unread());
  EXPECT_EQ(logs_->logged(), Lsn{300});
}

TEST_F(EarlierLogsTest, ThoseOfAnotherHistoryAreSetAsideAndNamed) {
  session(100, 200);
  session(200, 300);
  const pg::TimelineHistory promoted(2, {{.timeline = 1, .end = Lsn{250}}});
  ASSERT_TRUE(logs_->begin_session(promoted, false));
  EXPECT_EQ(logs_->logged(), Lsn{200});
  EXPECT_TRUE(reaches(100, 200));
  EXPECT_EQ(refusal(100, 260), ErrorCode::source_diverged);
  logs_->drop_strays();
  EXPECT_FALSE(fs::exists(directory_ / "backlog" / "0000000002"));
  EXPECT_TRUE(fs::exists(directory_ / "backlog" / "0000000001"));
  EXPECT_EQ(refusal(100, 260), ErrorCode::position_gap);
}

TEST_F(EarlierLogsTest, OneWithoutATimelineIsJudgedByTheDestination) {
  ASSERT_TRUE(logs_->begin_session(pg::TimelineHistory(1), false));
  leave(logs_->own(0), 100, 300);
  const pg::TimelineHistory promoted(2, {{.timeline = 1, .end = Lsn{250}}});
  ASSERT_TRUE(logs_->begin_session(promoted, true));
  EXPECT_FALSE(logs_->empty());
  EXPECT_EQ(logs_->logged(), Lsn{});  // nobody knows yet
  logs_->set_strays_aside(1);
  EXPECT_TRUE(logs_->empty());
}

TEST_F(EarlierLogsTest, AClosedSessionKeepsWhatWasLogged) {
  session(100, 200);
  ASSERT_TRUE(logs_->begin_session(pg::TimelineHistory(1), false));
  logs_->close(Lsn{400});
  EXPECT_TRUE(logs_->empty());
  EXPECT_EQ(logs_->logged(), Lsn{400});
  EXPECT_TRUE(fs::exists(directory_ / "backlog" / "0000000001"));
}

TEST_F(EarlierLogsTest, AreGivenUpWhereEverythingComesAgain) {
  session(100, 200);
  session(200, 300);
  ASSERT_TRUE(logs_->begin_session(pg::TimelineHistory(1), false));
  logs_->give_up();
  EXPECT_TRUE(logs_->empty());
  EXPECT_FALSE(logs_->logged()) << "no position is claimed for them";
  EXPECT_TRUE(reaches(50, 50));
  ASSERT_TRUE(logs_->begin_session(pg::TimelineHistory(1), false));
  EXPECT_TRUE(logs_->empty()) << "they are gone from the disk";
}

}  // namespace
}  // namespace thalweg::daemon
