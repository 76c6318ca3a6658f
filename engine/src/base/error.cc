#include "base/error.h"

#include <algorithm>
#include <array>
#include <cassert>

namespace thalweg::base {

namespace {

struct CatalogueEntry {
  std::string_view name;
  ErrorClass error_class;
  ErrorSide side;
  std::string_view title;
  std::string_view cure;
};

// Indexed by ErrorCode: both are expanded from the same lines in the same order.
constexpr std::array kCatalogue{
#define THALWEG_ERROR(code, error_class, side, title, cure) \
  CatalogueEntry{#code, ErrorClass::error_class, ErrorSide::side, title, cure},
#include "base/error_catalogue.inc"
#undef THALWEG_ERROR
};

constexpr bool is_sorted_by_name() {
  for (size_t i = 1; i < kCatalogue.size(); ++i) {
    if (kCatalogue[i - 1].name >= kCatalogue[i].name) return false;
  }
  return true;
}
static_assert(is_sorted_by_name(), "error_catalogue.inc is sorted by code, each code once");

constexpr std::array<std::string_view, 5> kSides{"unknown", "source", "destination", "link", "engine"};
constexpr std::array<std::string_view, 4> kRowOperations{"", "INSERT", "UPDATE", "DELETE"};

const CatalogueEntry& entry_of(ErrorCode code) {
  const auto index = static_cast<size_t>(code);
  assert(index < kCatalogue.size());
  return kCatalogue[index];
}

}  // namespace

std::string_view name_of(ErrorCode code) { return entry_of(code).name; }
ErrorClass class_of(ErrorCode code) { return entry_of(code).error_class; }
std::string_view title_of(ErrorCode code) { return entry_of(code).title; }
std::string_view cure_of(ErrorCode code) { return entry_of(code).cure; }

std::string_view name_of(ErrorSide side) { return kSides.at(static_cast<size_t>(side)); }
std::string_view name_of(RowOperation operation) { return kRowOperations.at(static_cast<size_t>(operation)); }

std::optional<ErrorCode> error_code_named(std::string_view name) {
  const auto found = std::ranges::lower_bound(kCatalogue, name, {}, &CatalogueEntry::name);
  if (found == kCatalogue.end() || found->name != name) return std::nullopt;
  return static_cast<ErrorCode>(found - kCatalogue.begin());
}

std::optional<ErrorSide> error_side_named(std::string_view name) {
  const auto found = std::ranges::find(kSides, name);
  if (found == kSides.end()) return std::nullopt;
  return static_cast<ErrorSide>(found - kSides.begin());
}

std::optional<RowOperation> row_operation_named(std::string_view name) {
  const auto found = std::ranges::find(kRowOperations, name);
  if (found == kRowOperations.end()) return std::nullopt;
  return static_cast<RowOperation>(found - kRowOperations.begin());
}

std::string message_without_rows(const Error& error) {
  if (!error.may_show_rows) return error.message;
  return std::string(title_of(error.code)) +
         (error.sqlstate.empty() ? "" : "; the server's SQLSTATE: " + error.sqlstate);
}

ErrorSide side_of(const Error& error) {
  return error.side == ErrorSide::unknown ? entry_of(error.code).side : error.side;
}

std::string_view name_of(ErrorClass error_class) {
  switch (error_class) {
    case ErrorClass::transient:
      return "transient";
    case ErrorClass::permanent:
      return "permanent";
    case ErrorClass::operator_action:
      return "operator_action";
    case ErrorClass::corruption:
      return "corruption";
  }
  assert(false);
  return "permanent";
}

}  // namespace thalweg::base
