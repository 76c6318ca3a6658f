#include "rules/reserved_words.h"

namespace thalweg::rules {

namespace {

// PostgreSQL 15's, with those that it takes as names of functions and types.
constexpr std::string_view kReserved =
    " "
    "all analyse analyze and any array as asc asymmetric authorization between binary both case cast "
    "check collate collation column concurrently constraint create cross current_catalog current_date "
    "current_role current_schema current_time current_timestamp current_user default deferrable desc "
    "distinct do else end except false fetch for foreign freeze from full grant group having ilike in "
    "initially inner intersect into is isnull join lateral leading left like limit localtime "
    "localtimestamp natural not notnull null offset on only or order outer overlaps placing primary "
    "references returning right select session_user similar some symmetric tablesample then to trailing "
    "true union unique user using variadic verbose when where window with ";

}  // namespace

bool is_reserved(std::string_view word) {
  for (size_t at = 0; (at = kReserved.find(word, at)) != std::string_view::npos; ++at) {
    if (kReserved[at - 1] == ' ' && kReserved[at + word.size()] == ' ') return true;
  }
  return false;
}

}  // namespace thalweg::rules
