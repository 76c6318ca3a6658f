#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// Attribute numbers for the columns of a description. Logical decoding tells names, in the order of
// pg_attribute.attnum, and no numbers; the catalogue tells numbers, as they are by now.
//
// The catalogue keeps enough to bound what an earlier form can have been: numbers are given once, in their order, a
// dropped column keeps its own, and nobody drops a column and has it back. So of the columns up to the highest number
// of that time, those that live have been there, and some of those that are dropped by now. (A column that has lost its
// expression since then was generated, and not in the form; that is seen where an earlier form has not got it.)

namespace thalweg::capture {

struct FormColumn {
  int32_t number = 0;  // pg_attribute.attnum; 0: it cannot be told
  std::string name = {};
  bool operator==(const FormColumn&) const = default;
};
using Form = std::vector<FormColumn>;

struct Attribute {
  int32_t number = 0;
  std::string name = {};
  bool is_dropped = false;
  bool is_generated = false;
};
using Catalogue = std::vector<Attribute>;  // all of a relation's attributes, in the order of their numbers

// The form in which a table's changes come while its catalogue is so.
Form form_in(const Catalogue& catalogue);

// For each of `columns` columns of a form, the numbers that it may have, in their order. `catalogue` is not older than
// the form. `before` is not younger, and empty where none is known; attributes up to `highest` had been made by then.
// No number for a column: the relation cannot have had such a form.
std::vector<std::vector<int32_t>> possible_numbers(size_t columns, const Catalogue& catalogue, const Form& before,
                                                   int32_t highest);

}  // namespace thalweg::capture
