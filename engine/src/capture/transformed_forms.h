#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "capture/catalogue_look.h"
#include "capture/source_form.h"
#include "lcr/frame.h"
#include "transform/step.h"

// The forms in which tables with transformations have come. Steps name columns, and logical decoding tells no attribute
// numbers: after two columns have exchanged their names, a mask would be on the other one. So a column that a step
// names, or named, and that has got another name stops the stream, until somebody has given the table other steps.
// So does one of which the catalogue cannot say any more which one it was. Forms are noted in a file with their
// positions, so that a stop in between hides nothing.

namespace thalweg::capture {

// Owner: the agent that captures.
class TransformedForms {
 public:
  // An empty path: nothing is noted. Notes on another source count for nothing, and so does a file that cannot be read,
  // which is logged.
  void open(std::filesystem::path file, const std::string& source);
  // Forgets the relations that are not among these.
  base::Result<void> retain(const std::set<base::RelationId>& relations);
  // The steps are new, and nobody has given them as the answer to a refused form.
  bool wants_beginning(base::RelationId relation, const transform::Steps& steps);
  // The form that the steps were given for.
  base::Result<void> begin(base::RelationId relation, const CatalogueNow& now, const transform::Steps& steps);
  // The table as it is described at `lsn`; `look` is not of an unknown age. Fails with transformation_refused, or as
  // files do.
  base::Result<void> take(const lcr::TableDescription& table, const CatalogueLook& look, base::Lsn lsn,
                          const transform::Steps& steps);

 private:
  // Changes of earlier ones may come again.
  struct Noted {
    Form form = {};
    base::Lsn from = {};
    base::Lsn until = {};     // and perhaps longer
    int32_t highest = 0;      // attribute that had been made
    bool was_taken = false;   // with the steps that there are
    bool is_first = false;    // with them: what was before counts for nothing
    bool was_decoded = true;  // every change before it has been seen
  };
  struct Known {
    std::string steps = {};
    std::vector<Noted> forms = {};  // by `from`
    Form refused = {};              // with these steps
    Form answered = {};             // was refused with steps before
  };

  Known& known(base::RelationId relation, const transform::Steps& steps);
  static std::vector<const Form*> taken_around(const Known& known, size_t place);
  base::Result<void> refuse(Known& known, Form form, const lcr::TableDescription& table,
                            const std::vector<const Form*>& others);
  base::Result<void> note() const;
  void read(const std::string& text);

  std::filesystem::path file_;
  std::string source_;
  std::map<base::RelationId, Known> known_;
};

}  // namespace thalweg::capture
