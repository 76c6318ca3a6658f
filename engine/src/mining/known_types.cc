#include "mining/known_types.h"

#include <algorithm>
#include <iterator>

#include "mining/conversions.h"

namespace thalweg::mining {

namespace {

struct BuiltIn {
  uint32_t type;
  KnownType known;
};

// By src/include/catalog/pg_type.dat. A type that is missing here, and is made of nothing else, is refused.
constexpr BuiltIn kBuiltIn[] = {
    {16, {append_copied}},                  // bool
    {17, {append_copied}},                  // bytea
    {18, {append_copied}},                  // "char"
    {19, {append_name}},                    // name
    {20, {append_swapped, {8}}},            // int8
    {21, {append_swapped, {2}}},            // int2
    {23, {append_swapped, {4}}},            // int4
    {24, {append_swapped, {4}}},            // regproc
    {25, {append_copied}},                  // text
    {26, {append_swapped, {4}}},            // oid
    {27, {append_tuple_id}},                // tid
    {28, {append_swapped, {4}}},            // xid
    {29, {append_swapped, {4}}},            // cid
    {114, {append_copied}},                 // json
    {142, {append_xml}},                    // xml
    {600, {append_swapped, {8, 8}}},        // point
    {601, {append_swapped, {8, 8, 8, 8}}},  // lseg
    {602, {append_path}},                   // path
    {603, {append_swapped, {8, 8, 8, 8}}},  // box
    {604, {append_polygon}},                // polygon
    {628, {append_swapped, {8, 8, 8}}},     // line
    {650, {append_cidr}},                   // cidr
    {700, {append_swapped, {4}}},           // float4
    {701, {append_swapped, {8}}},           // float8
    {718, {append_swapped, {8, 8, 8}}},     // circle
    {774, {append_copied}},                 // macaddr8
    {790, {append_swapped, {8}}},           // money
    {829, {append_copied}},                 // macaddr
    {869, {append_inet}},                   // inet
    {1042, {append_copied}},                // bpchar
    {1043, {append_copied}},                // varchar
    {1082, {append_swapped, {4}}},          // date
    {1083, {append_swapped, {8}}},          // time
    {1114, {append_swapped, {8}}},          // timestamp
    {1184, {append_swapped, {8}}},          // timestamptz
    {1186, {append_swapped, {8, 4, 4}}},    // interval
    {1266, {append_swapped, {8, 4}}},       // timetz
    {1560, {append_bits}},                  // bit
    {1562, {append_bits}},                  // varbit
    {1700, {append_numeric}},               // numeric
    {1790, {append_copied}},                // refcursor
    {2202, {append_swapped, {4}}},          // regprocedure
    {2203, {append_swapped, {4}}},          // regoper
    {2204, {append_swapped, {4}}},          // regoperator
    {2205, {append_swapped, {4}}},          // regclass
    {2206, {append_swapped, {4}}},          // regtype
    {2950, {append_copied}},                // uuid
    {2970, {append_snapshot}},              // txid_snapshot
    {3220, {append_swapped, {8}}},          // pg_lsn
    {3614, {append_tsvector}},              // tsvector
    {3615, {append_tsquery}},               // tsquery
    {3734, {append_swapped, {4}}},          // regconfig
    {3769, {append_swapped, {4}}},          // regdictionary
    {3802, {append_jsonb}},                 // jsonb
    {4072, {append_jsonpath}},              // jsonpath
    {4089, {append_swapped, {4}}},          // regnamespace
    {4096, {append_swapped, {4}}},          // regrole
    {4191, {append_swapped, {4}}},          // regcollation
    {5038, {append_snapshot}},              // pg_snapshot
    {5069, {append_swapped, {8}}},          // xid8
};

// Types of extensions, in the extension's schema.
struct OfExtension {
  std::string_view extension;
  std::string_view type;
  Convert convert;
};
constexpr OfExtension kOfExtensions[] = {
    {"citext", "citext", append_copied},
    {"cube", "cube", append_cube},
    {"hstore", "hstore", append_hstore},
    {"ltree", "ltree", append_ltree},
};

}  // namespace

std::optional<KnownType> known_type(uint32_t type) {
  const auto* const found = std::ranges::find(kBuiltIn, type, &BuiltIn::type);
  return found == std::end(kBuiltIn) ? std::nullopt : std::optional{found->known};
}

Convert type_of_extension(std::string_view extension, std::string_view type) {
  for (const OfExtension& known : kOfExtensions) {
    if (known.extension == extension && known.type == type) return known.convert;
  }
  return nullptr;
}

}  // namespace thalweg::mining
