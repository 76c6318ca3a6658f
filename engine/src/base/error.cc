#include "base/error.h"

#include <array>
#include <cassert>

namespace thalweg::base {

namespace {

struct CatalogueEntry {
  std::string_view name;
  ErrorClass error_class;
  std::string_view title;
  std::string_view cure;
};

// Indexed by ErrorCode: both are expanded from the same lines in the same order.
constexpr std::array kCatalogue{
#define THALWEG_ERROR(code, error_class, title, cure) CatalogueEntry{#code, ErrorClass::error_class, title, cure},
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
