#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "spill/segment_reader.h"
#include "spill/segment_samples.h"

// This program's reads, one of which can fail: a disk that gives an error once holds the right bytes still.

namespace {
int reads_until_failure = 0;  // 0: none fails
}  // namespace

extern "C" ssize_t read(int descriptor, void* out, size_t bytes) {
  if (reads_until_failure > 0 && --reads_until_failure == 0) {
    errno = EIO;
    return -1;
  }
  return ::syscall(SYS_read, descriptor, out, bytes);
}

namespace thalweg::spill {
namespace {

TEST(FailingReads, ARunIsReadAgain) {
  const std::vector<std::vector<std::byte>> blocks{sample_row(600, 1), sample_row(300, 3)};
  const std::vector<std::byte> bytes = sample_segment({.log = 7, .number = 1}, blocks);
  size_t failures = 0;
  for (int which = 1; which < 12; ++which) {
    reads_until_failure = 0;
    base::File file(::memfd_create("segment", MFD_CLOEXEC));
    ASSERT_TRUE(file.write_all(bytes));
    ASSERT_TRUE(file.seek(0));
    auto reader = SegmentReader::open(std::move(file));
    ASSERT_TRUE(reader) << reader.error().message;
    reads_until_failure = which;
    std::vector<std::byte> out;
    while (true) {
      const auto run = reader->next_run();
      if (!run) {
        ASSERT_EQ(run.error().code, base::ErrorCode::file_error) << "read " << which << ": " << run.error().message;
        ++failures;
        continue;
      }
      if (run->empty()) break;
      out.insert(out.end(), run->begin(), run->end());
    }
    EXPECT_EQ(out, joined(blocks)) << "read " << which << " failed";
  }
  reads_until_failure = 0;
  EXPECT_GT(failures, 4U);
}

}  // namespace
}  // namespace thalweg::spill
