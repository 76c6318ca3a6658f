#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <fmt/format.h>

#include "capture/capture.h"
#include "capture/logical/publication.h"
#include "capture/logical/slot.h"

// How fast a capture drains WAL that is already there, with a consumer that only looks at the frames.
//
// Usage: logical_capture_bench CONNINFO [TRANSACTIONS [ROWS]]
// Stages TRANSACTIONS (default 50000) of ROWS (10) changes, 60 % inserts, 30 % updates, 10 % deletes, on a five-column
// table in the named database, then captures them from the start three times. Drops what it made.

namespace {

using namespace thalweg;
constexpr const char* kName = "thalweg_capturebench";

template <typename T>
T must(base::Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "%s\n", result.error().message.c_str());
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

constexpr const char* kSchema =
    "CREATE TABLE capturebench (id bigint PRIMARY KEY, a int, b int, c text, d timestamptz);"
    "CREATE PROCEDURE capturebench_load(transactions int, changes int) LANGUAGE plpgsql AS $$ "
    "DECLARE next bigint := 0; low bigint := 0; BEGIN FOR t IN 1..transactions LOOP FOR i IN 0..changes - 1 LOOP "
    "IF i % 10 < 6 THEN next := next + 1; INSERT INTO capturebench VALUES (next, t, i, 'some text of a row', now()); "
    "ELSIF i % 10 < 9 THEN UPDATE capturebench SET b = b + 1 WHERE id = next - (i % 10 - 6); "
    "ELSE low := low + 1; DELETE FROM capturebench WHERE id = low; END IF; END LOOP; COMMIT; END LOOP; END $$";

void drain(const std::string& conninfo, base::Lsn start, base::Lsn end) {
  queue::LcrQueue queue({});
  std::atomic<uint64_t> confirmed{0};  // nothing is confirmed: the next round reads it again
  const base::SystemClock clock;
  auto capture = capture::make_logical_capture({.stream_id = "capturebench",
                                                .source_conninfo = conninfo,
                                                .slot = kName,
                                                .publications = {kName},
                                                .start = start,
                                                .system_identifier = {},
                                                .timeline = 0,
                                                .queue = &queue,
                                                .confirmed_lsn = &confirmed,
                                                .clock = &clock});
  uint64_t lcrs = 0;
  uint64_t bytes = 0;
  const double cpu_before = cpu_seconds();
  capture->start();
  std::chrono::steady_clock::time_point first;
  for (bool done = false; !done;) {
    const std::byte* frame = queue.browse(0, std::chrono::milliseconds(100));
    if (frame == nullptr) {
      if (const auto error = capture->status().error) must(base::Result<void>{std::unexpected(*error)});
      continue;
    }
    const auto view = lcr::FrameView::trusted(frame);
    if (bytes == 0) first = std::chrono::steady_clock::now();
    bytes += view.header().length;
    if (view.relation().value != 0 && view.kind() != lcr::FrameKind::table) ++lcrs;
    done = view.kind() == lcr::FrameKind::progress && view.lsn() >= end;
    queue.dequeue(0);
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - first).count();
  const double cpu = cpu_seconds() - cpu_before;
  const auto time = *capture->sample().time_ns;
  const auto share = [&](telemetry::Activity a) { return static_cast<double>(time[static_cast<size_t>(a)]) / 1e9; };
  std::printf(
      "%lu LCRs in %.2f s: %.0f LCR/s; engine CPU %.2f s = %.2f us an LCR; capture busy %.2f idle %.2f network %.2f "
      "flow control %.2f s\n",
      lcrs, seconds, static_cast<double>(lcrs) / seconds, cpu, cpu * 1e6 / static_cast<double>(lcrs),
      share(telemetry::Activity::busy), share(telemetry::Activity::idle), share(telemetry::Activity::network),
      share(telemetry::Activity::flow_control));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s CONNINFO [TRANSACTIONS [ROWS]]\n", argv[0]);
    return 2;
  }
  const std::string conninfo = argv[1];
  const int transactions = argc > 2 ? std::atoi(argv[2]) : 50'000;
  const int rows = argc > 3 ? std::atoi(argv[3]) : 10;
  auto source = must(pg::Connection::open(conninfo, {.search_path = "public"}));
  const std::string application = capture::capture_application_name("capturebench");
  must(source.script("DROP TABLE IF EXISTS capturebench; DROP PROCEDURE IF EXISTS capturebench_load"));
  must(capture::drop_slot(source, kName, application, std::chrono::seconds(10)));
  must(source.script(kSchema));
  must(capture::ensure_publication(source, kName, {{"public", "capturebench"}}));
  base::Lsn start;
  {
    const auto slot = must(
        capture::create_slot(conninfo, kName, {.application_name = application}, capture::SourcePlugin::automatic));
    start = slot.slot.consistent_point;
  }
  must(source.script(fmt::format("CALL capturebench_load({}, {})", transactions, rows)));
  const auto end = base::parse_lsn(must(source.query("SELECT pg_current_wal_insert_lsn()")).text(0, 0));
  for (int round = 0; round < 3; ++round) drain(conninfo, start, end.value());
  must(capture::drop_slot(source, kName, application, std::chrono::seconds(10)));
  must(capture::drop_publication(source, kName));
  must(source.script("DROP TABLE capturebench; DROP PROCEDURE capturebench_load"));
  return 0;
}
