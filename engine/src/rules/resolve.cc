#include "rules/resolve.h"

#include <algorithm>

namespace thalweg::rules {

namespace {

using Candidates = std::vector<const Candidate*>;

bool accepts_polymorphic(Type source, Type target) {
  const std::string_view name = name_of(target);
  if (source == Type::unknown) return true;
  if (name == "anyenum") return source == Type::any_enum;
  return name == "anyelement" || name == "anynonarray" || name == "anycompatible";
}

// Keeps the candidates with the highest score.
void keep_best(Candidates& candidates, const auto& score) {
  size_t best = 0;
  for (const Candidate* candidate : candidates) best = std::max(best, score(*candidate));
  std::erase_if(candidates, [&](const Candidate* candidate) { return score(*candidate) < best; });
}

// The rules for strings that have no type: a category for each, then preferred types of it.
void decide_unknowns(Candidates& candidates, std::span<const Type> arguments) {
  std::vector<char> categories(arguments.size(), '\0');
  std::vector<bool> has_preferred(arguments.size(), false);
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] != Type::unknown) continue;
    bool conflict = false;
    for (const Candidate* candidate : candidates) {
      const char category = category_of(candidate->arguments[i]);
      const bool preferred = is_preferred(candidate->arguments[i]);
      if (categories[i] == '\0') {
        categories[i] = category;
        has_preferred[i] = preferred;
      } else if (category == categories[i]) {
        has_preferred[i] = has_preferred[i] || preferred;
      } else if (category == 'S') {
        categories[i] = 'S';
        has_preferred[i] = preferred;
        conflict = false;
      } else if (categories[i] != 'S') {
        conflict = true;
      }
    }
    if (conflict) return;  // no category for one: none of this helps
  }
  Candidates kept;
  for (const Candidate* candidate : candidates) {
    bool fits = true;
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i] != Type::unknown) continue;
      if (category_of(candidate->arguments[i]) != categories[i]) fits = false;
      if (has_preferred[i] && !is_preferred(candidate->arguments[i])) fits = false;
    }
    if (fits) kept.push_back(candidate);
  }
  if (!kept.empty()) candidates = std::move(kept);
}

const Candidate* select(Candidates candidates, std::span<const Type> arguments) {
  std::erase_if(candidates, [&](const Candidate* candidate) {
    if (candidate->count != arguments.size()) return true;
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (!converts_implicitly(arguments[i], candidate->arguments[i])) return true;
    }
    return false;
  });
  const auto only = [&] { return candidates.size() == 1 ? candidates.front() : nullptr; };
  if (candidates.size() < 2) return only();
  keep_best(candidates, [&](const Candidate& candidate) {
    size_t exact = 0;
    for (size_t i = 0; i < arguments.size(); ++i) {
      exact += arguments[i] != Type::unknown && candidate.arguments[i] == arguments[i];
    }
    return exact;
  });
  if (candidates.size() == 1) return only();
  keep_best(candidates, [&](const Candidate& candidate) {
    size_t good = 0;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const Type type = candidate.arguments[i];
      good += arguments[i] != Type::unknown &&
              (type == arguments[i] || (is_preferred(type) && category_of(type) == category_of(arguments[i])));
    }
    return good;
  });
  if (candidates.size() == 1) return only();
  if (std::ranges::find(arguments, Type::unknown) == arguments.end()) return nullptr;
  decide_unknowns(candidates, arguments);
  if (candidates.size() == 1) return only();
  // All known arguments of one type: the unknown ones are taken for it, too.
  Type known = Type::unknown;
  for (const Type type : arguments) {
    if (type == Type::unknown) continue;
    if (known != Type::unknown && known != type) return nullptr;
    known = type;
  }
  if (known == Type::unknown) return nullptr;
  std::erase_if(candidates, [&](const Candidate* candidate) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (!converts_implicitly(known, candidate->arguments[i])) return true;
    }
    return false;
  });
  return only();
}

const Candidate* exact(std::span<const Candidate> candidates, std::span<const Type> arguments) {
  for (const Candidate& candidate : candidates) {
    if (candidate.count == arguments.size() &&
        std::ranges::equal(arguments, std::span(candidate.arguments).first(candidate.count))) {
      return &candidate;
    }
  }
  return nullptr;
}

Candidates all_of(std::span<const Candidate> candidates) {
  Candidates made;
  for (const Candidate& candidate : candidates) made.push_back(&candidate);
  return made;
}

}  // namespace

bool converts_implicitly(Type source, Type target) {
  if (source == target || source == Type::unknown) return target != Type::none || source == target;
  if (source == Type::none || target == Type::none) return false;
  if (is_polymorphic(target)) return accepts_polymorphic(source, target);
  const Cast* const cast = find_cast(source, target);
  return cast != nullptr && cast->context == 'i';
}

const Candidate* resolve_operator(std::span<const Candidate> candidates, Type left, Type right) {
  if (left == Type::none) {
    const Type unary[] = {left, right};
    if (const Candidate* found = exact(candidates, unary)) return found;
    Candidates prefix = all_of(candidates);
    std::erase_if(prefix, [](const Candidate* candidate) { return candidate->arguments[0] != Type::none; });
    return select(std::move(prefix), unary);
  }
  // A string without a type is first taken for the other side's type.
  const Type assumed[] = {left == Type::unknown ? right : left, right == Type::unknown ? left : right};
  if (const Candidate* found = exact(candidates, assumed)) return found;
  const Type arguments[] = {left, right};
  return select(all_of(candidates), arguments);
}

const Candidate* resolve_function(std::span<const Candidate> candidates, std::span<const Type> arguments) {
  if (const Candidate* found = exact(candidates, arguments)) return found;
  return select(all_of(candidates), arguments);
}

Type common_type(std::span<const Type> types) {
  Type common = types[0];
  if (common != Type::unknown && std::ranges::count(types, common) == static_cast<ptrdiff_t>(types.size())) {
    return common;
  }
  for (const Type type : types.subspan(1)) {
    if (type == Type::unknown || type == common) continue;
    if (common == Type::unknown) {
      common = type;
    } else if (category_of(type) != category_of(common)) {
      return Type::none;
    } else if (!is_preferred(common) && converts_implicitly(common, type) && !converts_implicitly(type, common)) {
      common = type;
    }
  }
  if (common == Type::unknown) common = Type::text;
  for (const Type type : types) {
    if (!converts_implicitly(type, common)) return Type::none;
  }
  return common;
}

}  // namespace thalweg::rules
