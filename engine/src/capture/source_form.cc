#include "capture/source_form.h"

#include <algorithm>

namespace thalweg::capture {
namespace {

enum class Presence : uint8_t { never, perhaps, always };  // in a form that has columns up to the attribute

// A form between `before` and the catalogue.
Presence presence_of(const Attribute& attribute, const Form& before, int32_t highest) {
  if (attribute.is_generated) return Presence::never;  // it was made so
  const bool is_later = before.empty() || attribute.number > highest;
  if (is_later) return attribute.is_dropped ? Presence::perhaps : Presence::always;
  const bool was_there = std::ranges::find(before, attribute.number, &FormColumn::number) != before.end();
  if (was_there) return attribute.is_dropped ? Presence::perhaps : Presence::always;
  const bool is_all_known = std::ranges::find(before, 0, &FormColumn::number) == before.end();
  return attribute.is_dropped && is_all_known ? Presence::never : Presence::perhaps;
}

}  // namespace

Form form_in(const Catalogue& catalogue) {
  Form form;
  for (const Attribute& attribute : catalogue) {
    if (attribute.is_dropped || attribute.is_generated) continue;
    form.push_back({.number = attribute.number, .name = attribute.name});
  }
  return form;
}

std::vector<std::vector<int32_t>> possible_numbers(size_t columns, const Catalogue& catalogue, const Form& before,
                                                   int32_t highest) {
  // Of the attributes in front of each: at least so many are in the form, and at most.
  std::vector<size_t> least{0}, most{0};
  std::vector<Presence> presences;
  for (const Attribute& attribute : catalogue) {
    const Presence presence = presences.emplace_back(presence_of(attribute, before, highest));
    least.push_back(least.back() + (presence == Presence::always ? 1 : 0));
    most.push_back(most.back() + (presence == Presence::never ? 0 : 1));
  }
  const auto can_follow = [&](size_t attribute, size_t count) {
    for (size_t end = attribute + 1; end <= catalogue.size() && least[end] - least[attribute + 1] <= count; ++end) {
      if (catalogue[end - 1].number >= highest && count <= most[end] - most[attribute + 1]) return true;
    }
    return false;
  };
  std::vector<std::vector<int32_t>> possible(columns);
  for (size_t attribute = 0; attribute < catalogue.size(); ++attribute) {
    if (presences[attribute] == Presence::never) continue;
    for (size_t column = least[attribute]; column <= most[attribute] && column < columns; ++column) {
      if (can_follow(attribute, columns - 1 - column)) possible[column].push_back(catalogue[attribute].number);
    }
  }
  return possible;
}

}  // namespace thalweg::capture
