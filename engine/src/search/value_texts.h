#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "lcr/frame.h"
#include "pg/connection.h"
#include "telemetry/log_search.h"

namespace thalweg::search {

// Values as the server writes them. Those whose binary form is their text, or nearly so, are read here; the source is
// asked for the others, many at a time. Owner: a search's thread.
class ValueTexts {
 public:
  // Longer ones of types that the server has to read are given in hex.
  static constexpr size_t kAskedBytesMax = size_t{1} << 20;

  explicit ValueTexts(pg::Connection& source) : source_(source) {}

  // `out` gets the text, at the latest with the next read(), and stays where it is until then. No value that did not
  // come.
  void add(const lcr::Value& value, base::TypeId type, telemetry::FoundValue& out);
  size_t bytes() const { return bytes_; }  // since the last read(): of texts, and of what is to be read
  // Fails as the connection does.
  base::Result<void> read();

 private:
  struct Waiting {
    base::TypeId type;
    std::string bytes;
    telemetry::FoundValue* out;
  };
  base::Result<void> ask(std::span<Waiting> values);

  pg::Connection& source_;
  std::vector<Waiting> waiting_;
  size_t bytes_ = 0;
};

}  // namespace thalweg::search
