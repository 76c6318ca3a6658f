#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "lcr/frame.h"
#include "transform/step.h"

// The forms in which tables with transformations have come. Steps name columns, and logical decoding tells no attribute
// numbers: after two columns have exchanged their names, a mask would be on the other one. So a column that a step
// names, or named, and that has got another name stops the stream, until somebody has given the table other steps.
// Forms are noted in a file, so that a stop in between hides nothing.

namespace thalweg::capture {

struct FormColumn {
  int32_t number = 0;  // pg_attribute.attnum; 0: the catalogue has the table in another form by now
  std::string name = {};
  bool operator==(const FormColumn&) const = default;
};
using Form = std::vector<FormColumn>;

// Owner: the agent that captures.
class TransformedForms {
 public:
  // An empty path: nothing is noted. What was noted of another source counts for nothing, and so does a file that
  // cannot be read, which is logged.
  void open(std::filesystem::path file, const std::string& source);
  // Forgets the relations that are not among these.
  base::Result<void> retain(const std::set<base::RelationId>& relations);
  // `form`: the table's. Fails with transformation_refused, or as files do.
  base::Result<void> take(const lcr::TableDescription& table, Form form, const transform::Steps& steps);

 private:
  struct Known {
    std::string steps = {};        // for which it is known
    std::vector<Form> forms = {};  // that were taken: changes of earlier ones may come again
    Form refused = {};             // for these steps
    Form answered = {};            // was refused for the steps before
    Form last = {};                // in this session
  };

  base::Result<void> note() const;

  std::filesystem::path file_;
  std::string source_;
  std::map<base::RelationId, Known> known_;
};

}  // namespace thalweg::capture
