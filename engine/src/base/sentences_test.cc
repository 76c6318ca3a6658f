#include "base/sentences.h"

#include <gtest/gtest.h>

namespace thalweg::base {
namespace {

TEST(SentencesTest, AnErrorsMessageEndsBeforeTheNextSentence) {
  for (const std::string message : {"connection refused", "connection refused.", "connection refused\n"}) {
    std::string text = message;
    add_sentence(text, "Its backlog of 12.0 MiB is on the engine's disk.");
    EXPECT_EQ(text, "connection refused. Its backlog of 12.0 MiB is on the engine's disk.");
  }
}

}  // namespace
}  // namespace thalweg::base
