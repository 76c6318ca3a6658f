// Mines what a stream has staged, as its engine would, into a queue that is emptied: changes a second.
//
// Method: the capture of the kind wal, with the folder of a stream whose engine has ended, reads the staged segments,
// checks each record, follows the catalogs, builds the changes and enqueues them; this thread dequeues them and does
// nothing else. Nothing is applied, and no position is confirmed, so that the folder can be mined again. The clock runs
// from the first change that is dequeued to the last one; the processor time is that of the whole process.
// usage: mining_bench CONNINFO SLOT PUBLICATION FOLDER END-LSN
// prints: changes, seconds, processor seconds, MiB of WAL

#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/clock.h"
#include "capture/capture.h"
#include "lcr/frame.h"
#include "queue/lcr_queue.h"

namespace thalweg::capture {
namespace {

using Seconds = std::chrono::duration<double>;

double processor_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

struct Mined {
  uint64_t changes = 0;
  uint64_t changes_at_last = 0;
  std::chrono::steady_clock::time_point first, last;
};

// Empties the queue until everything that commits before `end` has been captured. False: the capture has failed.
bool empty(queue::LcrQueue& queue, const Capture& capture, base::Lsn end, Mined& mined) {
  using namespace std::chrono_literals;
  while (true) {
    const std::byte* bytes = queue.browse(0, 0ms);
    if (bytes == nullptr) {
      // The clock is read where nothing waits, not for each change.
      if (mined.changes != mined.changes_at_last) {
        mined.last = std::chrono::steady_clock::now();
        mined.changes_at_last = mined.changes;
      }
      const CaptureStatus status = capture.status();
      if (status.error) std::fprintf(stderr, "%s\n", status.error->message.c_str());
      if (status.error) return false;
      if (status.captured >= end) return true;
      bytes = queue.browse(0, 10ms);
      if (bytes == nullptr) continue;
    }
    lcr::FrameHeader header;
    std::memcpy(&header, bytes, sizeof header);
    if (lcr::is_change(static_cast<lcr::FrameKind>(header.kind)) && mined.changes++ == 0) {
      mined.first = std::chrono::steady_clock::now();
    }
    queue.dequeue(0);
  }
}

int run(char** arguments) {
  const base::SystemClock clock;
  const std::atomic<uint64_t> confirmed{0};
  queue::LcrQueue queue({});
  const auto end = base::parse_lsn(arguments[4]);
  if (!end) return 2;
  CaptureOptions options{.stream_id = "bench",
                         .source_conninfo = base::Conninfo{arguments[0]},
                         .slot = arguments[1],
                         .publications = {arguments[2]},
                         .start = {},
                         .system_identifier = "",
                         .queue = &queue,
                         .confirmed_lsn = &confirmed,
                         .clock = &clock};
  options.mining.folder = arguments[3];
  const std::unique_ptr<Capture> capture = make_wal_capture(std::move(options));
  capture->start();
  Mined mined;
  const bool is_complete = empty(queue, *capture, *end, mined);
  const double processor = processor_seconds();
  uint64_t mined_bytes = 0;
  for (const telemetry::ComponentSample& part : capture->parts()) {
    for (const auto& [name, value] : part.counters) {
      if (name == std::string_view{"mined_bytes"}) mined_bytes = value;
    }
  }
  capture->request_stop();
  capture->join();
  if (!is_complete) return 1;
  std::printf("%llu %.4f %.4f %.1f\n", static_cast<unsigned long long>(mined.changes),
              Seconds(mined.last - mined.first).count(), processor, static_cast<double>(mined_bytes) / (1 << 20));
  return 0;
}

}  // namespace
}  // namespace thalweg::capture

int main(int count, char** arguments) {
  if (count == 6) return thalweg::capture::run(arguments + 1);
  std::fprintf(stderr, "usage: mining_bench CONNINFO SLOT PUBLICATION FOLDER END-LSN\n");
  return 2;
}
