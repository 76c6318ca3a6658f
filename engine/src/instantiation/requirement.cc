#include "instantiation/requirement.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "instantiation/catalogue.h"
#include "pg/text_array.h"

namespace thalweg::instantiation {
namespace {

// Objects that the catalogs record as needed by a table's columns, expressions, constraints and indexes. Built-in
// objects are pinned: pg_depend does not have them, and every server of that version does. An array's dependency is its
// element's.
constexpr const char* kRequirements = R"sql(
WITH wanted AS (SELECT * FROM unnest($1::oid[], $2::oid[]) w(root, oid)),
objects AS (
  SELECT w.root, w.oid AS relation, 'pg_class'::regclass AS class, w.oid AS object, NULL::name AS part FROM wanted w
  UNION ALL
  SELECT w.root, w.oid, 'pg_attrdef'::regclass, d.oid, CASE WHEN a.attgenerated = '' THEN a.attname END
    FROM wanted w JOIN pg_attrdef d ON d.adrelid = w.oid
    JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
  UNION ALL
  SELECT w.root, w.oid, 'pg_constraint'::regclass, k.oid, k.conname
    FROM wanted w JOIN pg_constraint k ON k.conrelid = w.oid
  UNION ALL
  SELECT w.root, w.oid, 'pg_class'::regclass, i.indexrelid, c.relname
    FROM wanted w JOIN pg_index i ON i.indrelid = w.oid JOIN pg_class c ON c.oid = i.indexrelid
),
owned AS MATERIALIZED (SELECT classid, objid, refobjid AS extension FROM pg_depend WHERE deptype = 'e')
SELECT DISTINCT n.nspname, r.relname, o.part, e.extname, en.nspname, f.oid::regprocedure::text,
       CASE WHEN f.oid IS NOT NULL THEN pg_get_functiondef(f.oid) END
  FROM objects o
  JOIN pg_class r ON r.oid = o.root JOIN pg_namespace n ON n.oid = r.relnamespace
  JOIN pg_depend d ON d.classid = o.class AND d.objid = o.object AND d.deptype IN ('n', 'a') AND d.refobjid >= 16384
  LEFT JOIN pg_type t ON d.refclassid = 'pg_type'::regclass AND t.oid = d.refobjid AND t.typelem <> 0
  LEFT JOIN owned itself ON itself.classid = d.refclassid AND itself.objid = d.refobjid
  LEFT JOIN owned element ON element.classid = d.refclassid AND element.objid = t.typelem
  LEFT JOIN pg_extension e ON e.oid = coalesce(itself.extension, element.extension)
  LEFT JOIN pg_namespace en ON en.oid = e.extnamespace
  LEFT JOIN pg_proc f ON e.oid IS NULL AND d.refclassid = 'pg_proc'::regclass AND f.oid = d.refobjid
    AND f.prokind = 'f'
 WHERE e.oid IS NOT NULL OR f.oid IS NOT NULL
 ORDER BY 1, 2, 3 NULLS FIRST, 4, 6
)sql";

// Prerequisites of a function's definition: its schema, and the types of its arguments and its result. The engine makes
// those for the tables, but only after the function was needed. A table's row type comes with the table alone.
constexpr const char* kWanted = R"sql(
SELECT f.oid::regprocedure::text, n.nspname, t.oid::bigint
  FROM pg_proc f JOIN pg_namespace n ON n.oid = f.pronamespace
  LEFT JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = f.oid AND d.refclassid = 'pg_type'::regclass
  LEFT JOIN pg_type t ON t.oid = d.refobjid
   AND NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = t.typrelid AND c.relkind <> 'c')
 WHERE f.oid >= 16384 AND f.prokind = 'f' AND f.oid::regprocedure::text = ANY ($1::text[])
 ORDER BY 1, 3
)sql";

struct Extension {
  std::string schema;  // empty: it is not installed
  bool available = false;
};

base::Result<std::map<std::string, Extension>> read_extensions(pg::Connection& destination) {
  THALWEG_ASSIGN(pg::Rows rows, destination.query("SELECT a.name, n.nspname FROM pg_available_extensions a "
                                                  "LEFT JOIN pg_extension e ON e.extname = a.name "
                                                  "LEFT JOIN pg_namespace n ON n.oid = e.extnamespace",
                                                  {}));
  std::map<std::string, Extension> found;
  for (size_t i = 0; i < rows.size(); ++i)
    found[std::string(rows.text(i, 0))] = {.schema = std::string(rows.text(i, 1)), .available = true};
  return found;
}

base::Result<std::set<std::string>> missing_functions(pg::Connection& destination,
                                                      const std::vector<Requirement>& requirements) {
  std::vector<std::string> wanted;
  for (const Requirement& requirement : requirements) {
    if (!requirement.is_extension()) wanted.push_back(requirement.function);
  }
  // to_regprocedure() would do, but before PostgreSQL 16 it fails where the type of an argument is missing, too.
  THALWEG_ASSIGN(pg::Rows rows, destination.query("SELECT DISTINCT f FROM unnest($1::text[]) f WHERE f NOT IN "
                                                  "(SELECT oid::regprocedure::text FROM pg_proc WHERE oid >= 16384)",
                                                  {pg::text_array(wanted)}));
  std::set<std::string> missing;
  for (size_t i = 0; i < rows.size(); ++i) missing.emplace(rows.text(i, 0));
  return missing;
}

struct Prelude {
  std::vector<std::string> schemas;
  std::string sql;    // what is there already stays
  std::string types;  // in words
};

void add_schema(const std::string& schema, std::vector<std::string>& schemas) {
  if (std::ranges::find(schemas, schema) == schemas.end()) schemas.push_back(schema);
}

struct Schemas {
  std::string role;  // that makes the tables
  std::set<std::string> there;

  // The role may be another one than the user who executes it, and could make nothing in the schemas otherwise.
  std::string make(const std::vector<std::string>& schemas) const {
    std::string sql;
    for (const std::string& schema : schemas) {
      const std::string name = pg::quote_identifier(schema);
      sql += fmt::format("CREATE SCHEMA IF NOT EXISTS {};\n", name);
      if (!there.contains(schema))
        sql += fmt::format("GRANT CREATE, USAGE ON SCHEMA {} TO {};\n", name, pg::quote_identifier(role));
    }
    return sql;
  }
};

base::Result<Schemas> read_schemas(pg::Connection& destination) {
  THALWEG_ASSIGN(pg::Rows rows, destination.query("SELECT current_user, nspname FROM pg_namespace", {}));
  Schemas found;
  for (size_t i = 0; i < rows.size(); ++i) {
    found.role = rows.text(i, 0);
    found.there.emplace(rows.text(i, 1));
  }
  return found;
}

void add_type(const TypeShape& type, Prelude& prelude) {
  if (type.create_sql.empty()) return;  // an extension's, or one that is made of code
  add_schema(type.name.schema, prelude.schemas);
  for (const std::string& create : type.create_sql) {
    // Labels and defaults are the source's: none may end the quotes.
    std::string tag = "$do$";
    while (create.contains(tag)) tag.insert(tag.size() - 1, "o");
    prelude.sql += fmt::format("DO {0} BEGIN {1}; EXCEPTION WHEN duplicate_object THEN NULL; END {0};\n", tag, create);
  }
  prelude.types += (prelude.types.empty() ? "" : ", ") + type.name.quoted();
}

base::Result<void> add_preludes(pg::Connection& source, std::vector<Requirement>& requirements) {
  std::vector<std::string> functions;
  for (const Requirement& requirement : requirements) {
    if (!requirement.is_extension()) functions.push_back(requirement.function);
  }
  if (functions.empty()) return {};
  THALWEG_ASSIGN(pg::Rows rows, source.query(kWanted, {pg::text_array(functions)}));
  Catalogue catalogue(source);
  std::map<std::string, Prelude> preludes;
  std::map<std::string, std::set<uint32_t>> seen;
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string function(rows.text(i, 0));
    Prelude& prelude = preludes[function];
    add_schema(std::string(rows.text(i, 1)), prelude.schemas);
    if (rows.is_null(i, 2)) continue;
    std::vector<TypeShape> types;
    THALWEG_TRY(catalogue.collect_type(static_cast<uint32_t>(rows.integer(i, 2)), seen[function], types));
    for (const TypeShape& type : types) add_type(type, prelude);
  }
  for (Requirement& requirement : requirements) {
    if (requirement.is_extension()) continue;
    const Prelude& prelude = preludes[requirement.function];
    requirement.schemas = prelude.schemas;
    requirement.definition = prelude.sql + requirement.definition;
    requirement.types = prelude.types;
  }
  return {};
}

Lack lack_of_extension(const Requirement& requirement, const Extension& there, const Schemas& schemas) {
  const std::string extension = pg::quote_identifier(requirement.extension);
  const std::string schema = pg::quote_identifier(requirement.schema);
  if (!there.schema.empty()) {
    return {&requirement,
            fmt::format("The extension is in schema {}: move it to where the source has it.", there.schema),
            schemas.make({requirement.schema}) + fmt::format("ALTER EXTENSION {} SET SCHEMA {};", extension, schema)};
  }
  return {&requirement,
          there.available ? "Create the extension at the destination."
                          : "Install the extension's package on the destination's server, then create the extension.",
          schemas.make({requirement.schema}) + fmt::format("CREATE EXTENSION {} SCHEMA {};", extension, schema)};
}

}  // namespace

base::Result<std::vector<Requirement>> read_requirements(pg::Connection& source,
                                                         const std::vector<TableShape>& tables) {
  std::vector<std::string> roots;
  std::vector<std::string> oids;
  for (const TableShape& table : tables) {
    roots.push_back(std::to_string(table.oid));
    oids.push_back(roots.back());
    for (const TableShape& partition : table.partitions) {
      roots.push_back(std::to_string(table.oid));
      oids.push_back(std::to_string(partition.oid));
    }
  }
  THALWEG_ASSIGN(pg::Rows rows, source.query(kRequirements, {pg::text_array(roots), pg::text_array(oids)}));
  std::vector<Requirement> found;
  for (size_t i = 0; i < rows.size(); ++i) {
    found.push_back({.extension = std::string(rows.text(i, 3)),
                     .function = std::string(rows.text(i, 5)),
                     .schema = std::string(rows.text(i, 4)),
                     .schemas = {},
                     .definition = std::string(rows.text(i, 6)),
                     .types = {},
                     .table = {std::string(rows.text(i, 0)), std::string(rows.text(i, 1))},
                     .part = std::string(rows.text(i, 2))});
  }
  THALWEG_TRY(add_preludes(source, found));
  return found;
}

base::Result<std::vector<Lack>> find_lacks(pg::Connection& destination, const std::vector<Requirement>& requirements) {
  THALWEG_ASSIGN(const auto extensions, read_extensions(destination));
  THALWEG_ASSIGN(const auto missing, missing_functions(destination, requirements));
  THALWEG_ASSIGN(const Schemas schemas, read_schemas(destination));
  std::vector<Lack> lacks;
  for (const Requirement& requirement : requirements) {
    if (requirement.is_extension()) {
      const auto there = extensions.find(requirement.extension);
      const Extension extension = there == extensions.end() ? Extension{} : there->second;
      if (extension.schema != requirement.schema) lacks.push_back(lack_of_extension(requirement, extension, schemas));
    } else if (missing.contains(requirement.function)) {
      const std::string cure = requirement.types.empty()
                                   ? "Create the function at the destination."
                                   : fmt::format(
                                         "Create the types that it takes or gives ({}), then the function, at the "
                                         "destination.",
                                         requirement.types);
      lacks.push_back({&requirement, cure, schemas.make(requirement.schemas) + requirement.definition + ";"});
    }
  }
  return lacks;
}

}  // namespace thalweg::instantiation
