#pragma once

#include "base/error.h"
#include "base/ids.h"
#include "capture/source_form.h"
#include "pg/connection.h"

namespace thalweg::capture {

// The change at which a table is looked at.
struct ChangePlace {
  base::Lsn lsn = {};
  base::Xid xid = {};        // the top-level transaction
  base::Xid subxid = {};     // none: the change is the top level's
  bool is_streamed = false;  // it comes before its transaction has ended

  base::Xid own() const { return subxid ? subxid : xid; }
};

struct CatalogueLook {
  enum class Age : uint8_t {
    unknown,  // the change's transaction has not ended, or was rolled back, or its end is not to be seen yet
    same,     // the catalogue is as it was for the change
    later,    // it is so, or has moved on
  };
  Age age = Age::unknown;
  Catalogue catalogue = {};
};

// The source's catalogue about a relation, and what it says of the time of a change. Waits for a second where the
// transaction has committed and others do not see it yet.
base::Result<CatalogueLook> look_at(pg::Connection& source, base::RelationId relation, const ChangePlace& change);

struct CatalogueNow {
  base::Lsn lsn = {};
  Catalogue catalogue = {};
};
base::Result<CatalogueNow> look_now(pg::Connection& source, base::RelationId relation);

}  // namespace thalweg::capture
