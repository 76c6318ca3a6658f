#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "capture/logical/frame_translator.h"
#include "capture/logical/pgoutput_parser.h"
#include "dictionary/mined_source.h"
#include "lcr/frame.h"
#include "mining/builder.h"
#include "mining/change_sink.h"
#include "pg/replication_stream.h"

// Frames built from the WAL beside those that logical decoding gives for the same transactions of a real server.

namespace thalweg::capture {

using dictionary::MinedSource;

// Owner: the test.
class Frames final : public FrameSink {
 public:
  struct Frame {
    std::string header;  // what of it is compared, as text
    std::string body;
    bool operator==(const Frame&) const = default;
    auto operator<=>(const Frame&) const = default;
  };

  std::span<std::byte> reserve(size_t frame_bytes) override {
    bytes_.resize(frame_bytes);
    return std::as_writable_bytes(std::span{bytes_});
  }
  void enqueue() override { take(std::as_bytes(std::span{bytes_})); }
  void take(std::span<const std::byte> bytes) {
    std::vector<uint64_t> aligned((bytes.size() + 7) / 8);
    std::memcpy(aligned.data(), bytes.data(), bytes.size());
    const auto view = lcr::FrameView::decode(std::as_bytes(std::span{aligned}));
    ASSERT_TRUE(view) << view.error().message;
    if (view->kind() == lcr::FrameKind::progress) return;
    const lcr::FrameHeader& header = view->header();
    Frame frame{.header = fmt::format("kind {} flags {} xid {} relation {} version {} lsn {}",
                                      static_cast<int>(view->kind()), header.flags, view->xid().value, header.relation,
                                      header.table_version, to_string(base::Lsn{header.lsn})),
                .body = {reinterpret_cast<const char*>(&header + 1), header.body_length}};
    // Logical decoding repeats a description after each invalidation.
    if (view->kind() == lcr::FrameKind::table && !described_.insert(frame).second) return;
    all.push_back(std::move(frame));
  }
  // pgoutput of version 14 also sends transactions that have no change of the publication.
  void drop_empty_transactions() {
    const auto is_of = [](const Frame& frame, lcr::FrameKind kind) {
      return frame.header.starts_with(fmt::format("kind {} ", static_cast<int>(kind)));
    };
    std::vector<Frame> kept;
    for (Frame& frame : all) {
      if (is_of(frame, lcr::FrameKind::commit) && !kept.empty() && is_of(kept.back(), lcr::FrameKind::begin)) {
        kept.pop_back();
      } else {
        kept.push_back(std::move(frame));
      }
    }
    all = std::move(kept);
  }
  std::vector<Frame> all;

 private:
  std::vector<char> bytes_;
  std::set<Frame> described_;
};

// The part of two frames at which they begin to differ.
inline std::string difference(const Frames::Frame& ours, const Frames::Frame& theirs) {
  constexpr size_t kBefore = 32;
  constexpr size_t kShown = 160;
  const auto at = std::ranges::mismatch(ours.body, theirs.body).in1 - ours.body.begin();
  const size_t begin = static_cast<size_t>(at) - std::min<size_t>(static_cast<size_t>(at), kBefore);
  std::string text =
      fmt::format("{}\n{}\nfrom byte {} on, which differ in byte {}:", ours.header, theirs.header, begin, at);
  for (const Frames::Frame* const frame : {&ours, &theirs}) {
    text += '\n';
    for (const char byte : frame->body.substr(begin, kShown)) {
      const bool is_letter = byte > ' ' && byte < 0x7F;
      text += is_letter ? fmt::format(" {}", byte) : fmt::format(" {:02x}", static_cast<unsigned char>(byte));
    }
  }
  return text;
}

// The builder's changes as frames. Changes that came in pieces are shown as if they had come whole: at their commit,
// without what was rolled back.
class FramesOf final : public mining::ChangeSink {
 public:
  explicit FramesOf(Frames& frames) : frames_(frames) {}
  base::Result<void> begin(base::Xid xid, const lcr::TransactionMark& mark) override {
    frames_.take(lcr::make_begin_frame(xid, mark));
    return {};
  }
  base::Result<void> describe(const mining::MinedTable& table) override {
    lcr::TableDescription& last = tables_[table.description.relation];
    const uint32_t version = last.version + 1;
    last = table.description;
    last.version = version;
    undescribed_.insert(last.relation);
    return {};
  }
  base::Result<void> change(const lcr::RowFrame& row) override {
    lcr::RowFrame whole = row;
    whole.flags &= ~lcr::kStreamed;
    whole.subxid = {};
    whole.table_version = tables_.at(row.relation).version;
    std::vector<std::byte> bytes(lcr::row_frame_bytes(whole));
    lcr::write_row_frame(whole, bytes);
    take(row.flags, row.xid, row.subxid, {row.relation}, std::move(bytes));
    return {};
  }
  base::Result<void> truncate(const mining::TruncateChange& truncate) override {
    const auto flags = static_cast<uint16_t>(truncate.flags & ~lcr::kStreamed);
    take(truncate.flags, truncate.xid, truncate.subxid, {truncate.relations.begin(), truncate.relations.end()},
         lcr::make_truncate_frame(truncate.xid, {}, truncate.lsn, flags, truncate.relations));
    return {};
  }
  base::Result<void> message(base::Xid, std::string_view) override { return {}; }
  base::Result<void> rolled_back(base::Xid xid, base::Xid subxid, base::Lsn) override {
    EXPECT_TRUE(pieces_.contains(xid)) << "nothing of it went out";
    std::erase_if(pieces_[xid], [&](const Piece& piece) { return !subxid || piece.subxid == subxid; });
    if (!subxid) pieces_.erase(xid);
    return {};
  }
  base::Result<void> commit(base::Xid xid, const lcr::TransactionMark& mark) override {
    frames_.take(lcr::make_commit_frame(xid, false, mark));
    return {};
  }
  base::Result<void> commit_streamed(base::Xid xid, const lcr::TransactionMark& mark,
                                     std::span<const base::Xid> subtransactions) override {
    ++in_pieces;
    auto pieces = pieces_.extract(xid);
    EXPECT_FALSE(pieces.empty());
    std::erase_if(pieces.mapped(), [&](const Piece& piece) {
      return piece.subxid && std::ranges::find(subtransactions, piece.subxid) == subtransactions.end();
    });
    if (pieces.mapped().empty()) return {};
    lcr::TransactionMark begun = mark;
    begun.end_lsn = {};
    frames_.take(lcr::make_begin_frame(xid, begun));
    for (Piece& piece : pieces.mapped()) take(0, xid, {}, piece.relations, std::move(piece.frame));
    frames_.take(lcr::make_commit_frame(xid, false, mark));
    return {};
  }
  size_t in_pieces = 0;  // transactions

 private:
  struct Piece {
    base::Xid subxid;
    std::vector<base::RelationId> relations;
    std::vector<std::byte> frame;
  };
  void take(uint16_t flags, base::Xid xid, base::Xid subxid, std::vector<base::RelationId> relations,
            std::vector<std::byte> frame) {
    if ((flags & lcr::kStreamed) != 0) {
      pieces_[xid].push_back({subxid, std::move(relations), std::move(frame)});
      return;
    }
    for (const base::RelationId relation : relations) {
      if (undescribed_.erase(relation) != 0) frames_.take(lcr::make_table_frame(tables_.at(relation)));
    }
    frames_.take(frame);
  }

  Frames& frames_;
  std::unordered_map<base::RelationId, lcr::TableDescription> tables_;
  std::set<base::RelationId> undescribed_;
  std::unordered_map<base::Xid, std::vector<Piece>> pieces_;
};

class MinedStreamTest : public ::testing::Test {
 protected:
  explicit MinedStreamTest(std::map<std::string, std::string> settings = {{"logical_decoding_work_mem", "1GB"}})
      : source_(dictionary::mined_options(std::move(settings))) {}

  void run(const std::string& sql) { MinedSource::value(session_, sql); }
  // How long values are compressed where a test asks for lz4.
  std::string lz4() { return MinedSource::offered(session_, "default_toast_compression", "lz4", "pglz"); }
  // The capture starts once `before` has run.
  void begin(const std::string& before) {
    run(before);
    run("CREATE PUBLICATION everything FOR ALL TABLES");
    source_.keep_wal();
    run("SELECT pg_create_logical_replication_slot('decoded', 'pgoutput')");
    start(source_.first_contents());
  }
  void start(dictionary::FirstContents contents) {
    from_ = contents.as_of;
    source_.begin(std::move(contents));
    builder_.emplace(source_.dictionary(),
                     mining::BuilderOptions{.from = from_,
                                            .is_wanted = [](auto) { return mining::Wanted::everything; },
                                            .sink = &sink_,
                                            .memory_bytes = memory_bytes_});
    source_.give_to([this](const auto& record, const auto& parts, const auto& format) {
      auto applied = builder_->apply(record, parts, format);
      if (!applied) refusal_ = applied.error();
      return applied;
    });
  }
  // The frames since the last comparison; they are forgotten then.
  void compare() {
    const base::Lsn end = *base::parse_lsn(MinedSource::value(session_, "SELECT pg_current_wal_insert_lsn()"));
    ASSERT_TRUE(source_.catch_up());
    ASSERT_NO_FATAL_FAILURE(decode(end));
    decoded_.drop_empty_transactions();
    ASSERT_FALSE(decoded_.all.empty());
    for (size_t i = 0; i < std::min(mined_.all.size(), decoded_.all.size()); ++i) {
      ASSERT_TRUE(mined_.all[i] == decoded_.all[i])
          << "frame " << i << ": " << difference(mined_.all[i], decoded_.all[i]);
    }
    ASSERT_EQ(mined_.all.size(), decoded_.all.size());
    frames_ += mined_.all.size();
    compared_until_ = end;
    mined_.all.clear();
    decoded_.all.clear();
  }

  pg::Connection& session() { return session_; }
  pg::Connection connect() const { return source_.connect(); }
  void keep_wal() { source_.keep_wal(); }
  MinedSource& source() { return source_; }
  dictionary::FirstContents first_contents(const std::function<void()>& then = [] {}) const {
    return source_.first_contents(then);
  }
  // Nearly all transactions come in pieces; what is open at the start is less than this.
  void allow_little_memory() { memory_bytes_ = 3000; }
  const mining::Builder& builder() const { return *builder_; }
  size_t in_pieces() const { return sink_.in_pieces; }
  void catch_up() { ASSERT_TRUE(source_.catch_up()); }
  const std::vector<Frames::Frame>& mined() const { return mined_.all; }
  base::Lsn compared_until() const { return compared_until_; }
  size_t frames() const { return frames_; }  // that were compared
  const std::optional<base::Error>& refusal() const { return refusal_; }

 private:
  void decode(base::Lsn end) {
    if (!stream_) {
      auto stream = pg::ReplicationStream::open(base::Conninfo{source_.cluster().conninfo()}, "builder");
      ASSERT_TRUE(stream) << stream.error().message;
      stream_.emplace(std::move(*stream));
      const auto started = stream_->start("decoded", from_, {"everything"},
                                          {.plugin = pg::OutputPlugin::pgoutput, .binary = true, .streaming = false});
      ASSERT_TRUE(started) << started.error().message;
    }
    while (true) {
      const auto message = stream_->receive(std::chrono::seconds{10});
      ASSERT_TRUE(message) << message.error().message;
      if (!*message) continue;
      if ((*message)->is_keepalive) {
        const base::Lsn position = (*message)->wal_end;
        const bool is_over = position >= end && !parser_.in_transaction();
        (void)stream_->send_feedback({.written = position,
                                      .flushed = is_over ? position : base::Lsn{},
                                      .applied = is_over ? position : base::Lsn{}});
        if (is_over) break;
        continue;
      }
      const auto parsed = parser_.parse((*message)->payload);
      ASSERT_TRUE(parsed) << parsed.error().message;
      const auto done = translator_.translate(**parsed, parser_, (*message)->wal_start);
      ASSERT_TRUE(done) << done.error().message;
    }
  }

  MinedSource source_;
  pg::Connection session_ = source_.connect();
  base::Lsn from_;
  uint64_t memory_bytes_ = UINT64_MAX;
  std::optional<mining::Builder> builder_;
  Frames mined_;
  FramesOf sink_{mined_};
  Frames decoded_;
  std::optional<pg::ReplicationStream> stream_;  // of the logical slot, from the first comparison on
  PgoutputParser parser_;
  FrameTranslator translator_{decoded_};
  base::Lsn compared_until_;
  size_t frames_ = 0;
  std::optional<base::Error> refusal_;  // the builder's
};

}  // namespace thalweg::capture
