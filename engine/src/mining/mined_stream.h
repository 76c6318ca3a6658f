#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "capture/logical/frame_translator.h"
#include "capture/logical/pgoutput_parser.h"
#include "dictionary/mined_source.h"
#include "mining/builder.h"
#include "pg/replication_stream.h"

// Frames built from the WAL beside those that logical decoding gives for the same transactions of a real server.

namespace thalweg::mining {

using dictionary::MinedSource;

// Owner: the test.
class Frames final : public capture::FrameSink {
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

class MinedStreamTest : public ::testing::Test {
 protected:
  explicit MinedStreamTest(std::map<std::string, std::string> settings = {{"logical_decoding_work_mem", "1GB"}})
      : source_(dictionary::mined_options(std::move(settings))) {}

  void run(const std::string& sql) { MinedSource::value(session_, sql); }
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
    builder_.emplace(source_.dictionary(), BuilderOptions{.from = from_,
                                                          .is_wanted = [](const auto&, const auto&) { return true; },
                                                          .take = [this](auto frame) { mined_.take(frame); }});
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
  dictionary::FirstContents first_contents() const { return source_.first_contents(); }
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
  std::optional<Builder> builder_;
  Frames mined_;
  Frames decoded_;
  std::optional<pg::ReplicationStream> stream_;  // of the logical slot, from the first comparison on
  capture::PgoutputParser parser_;
  capture::FrameTranslator translator_{decoded_};
  base::Lsn compared_until_;
  size_t frames_ = 0;
  std::optional<base::Error> refusal_;  // the builder's
};

}  // namespace thalweg::mining
